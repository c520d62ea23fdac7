//! The list of invariants, read.

/// One invariant, as it is listed.
#[derive(Debug, Default)]
pub(crate) struct Invariant {
    pub(crate) name: String,
    pub(crate) models: Vec<String>,
    pub(crate) weakenings: Vec<String>,
    /// It has a statement and a reason.
    pub(crate) is_explained: bool,
}

/// The names between backquotes.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

pub(crate) fn invariants(list: &str) -> Vec<Invariant> {
    let mut found = vec![];
    for section in list.split("\n### ").skip(1) {
        let section = section.split("\n## ").next().unwrap_or_default();
        let (name, text) = section.split_once('\n').unwrap_or((section, ""));
        let mut invariant = Invariant { name: name.trim().to_owned(), ..Invariant::default() };
        let (mut has_statement, mut has_reason) = (false, false);
        for paragraph in text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
            if let Some(models) = paragraph.strip_prefix("Models:") {
                invariant.models = quoted(models);
            } else if let Some(weakenings) = paragraph.strip_prefix("Weakenings:") {
                invariant.weakenings = quoted(weakenings);
            } else if paragraph.starts_with("Why") {
                has_reason = true;
            } else {
                has_statement |= !has_reason && !paragraph.starts_with('[');
            }
        }
        invariant.is_explained = has_statement && has_reason;
        found.push(invariant);
    }
    found
}

/// The invariants that a text cites.
pub(crate) fn cited(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_uppercase() || c == '-';
    let mut found = vec![];
    for (at, _) in text.match_indices("INV-") {
        let rest = &text[at..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        found.push(rest[..end].trim_end_matches('-').to_owned());
    }
    found
}
