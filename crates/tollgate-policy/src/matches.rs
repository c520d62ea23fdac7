//! [`Match`]: which requests a part of a policy is for, as the file says it.

use core::fmt;
use std::path::{Path, PathBuf};

use crate::quoted::Quoted;

/// Which requests a rule, a dimension or a tier is for: the `match` of a policy file.
///
/// A request matches if each named field has one of the values. Without a condition all do. See
/// [the crate](crate#which-requests-a-limit-is-for) for the fields.
///
/// ```
/// use tollgate_policy::Policy;
///
/// let policy = Policy::from_toml(r#"
///     [[dimension]]
///     name = "login"
///     key = ["client"]
///     match = { path = "/login", method = ["POST", "PUT"] }
///     quota = [{ limit = 5, per = "1m" }]
/// "#)?;
/// let login = policy.dimensions()[0].matches();
/// assert_eq!(login.fields().collect::<Vec<_>>(), ["method", "path"]);
/// assert_eq!(login.values("method").collect::<Vec<_>>(), ["POST", "PUT"]);
/// assert_eq!(login.to_string(), "method POST or PUT, path /login");
/// # Ok::<(), tollgate_policy::PolicyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Match {
    /// In the order of the fields' names.
    pub(crate) conditions: Vec<Condition>,
}

/// The values that a field may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) field: Box<str>,
    pub(crate) values: Vec<Box<str>>,
    /// The file that has the values, in place of the policy.
    pub(crate) file: Option<PathBuf>,
}

impl Match {
    /// Whether all requests match.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.conditions.is_empty()
    }

    /// The fields that are looked at. A header field is `header.` and its name.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.conditions.iter().map(|condition| &*condition.field)
    }

    /// The values that a field may have, each in the form of the file.
    pub fn values(&self, field: &str) -> impl Iterator<Item = &str> {
        let of_field = self.conditions.iter().filter(move |condition| *condition.field == *field);
        of_field.flat_map(|condition| &condition.values).map(|value| &**value)
    }

    /// The file that has the values of a field, if it is not the policy.
    #[must_use]
    pub fn file(&self, field: &str) -> Option<&Path> {
        self.conditions.iter().find(|condition| *condition.field == *field)?.file.as_deref()
    }

    /// The files that have values.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.conditions.iter().filter_map(|condition| condition.file.as_deref())
    }
}

/// The most values that are shown in words.
const SHOWN: usize = 5;

/// The match in words: `method POST, path /login`.
impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_any() {
            return f.write_str("any");
        }
        for (at, Condition { field, values, file }) in self.conditions.iter().enumerate() {
            write!(f, "{}{field} ", if at == 0 { "" } else { ", " })?;
            match file {
                Some(file) => write!(f, "in {} ({})", file.display(), values.len())?,
                None => f.write_str(&values[..values.len().min(SHOWN)].join(" or "))?,
            }
            if file.is_none() && values.len() > SHOWN {
                write!(f, " or {} more", values.len() - SHOWN)?;
            }
        }
        Ok(())
    }
}

/// Writes a match as a field of a table, or nothing for any request.
pub(crate) fn write_match(f: &mut fmt::Formatter<'_>, matches: &Match) -> fmt::Result {
    if matches.is_any() {
        return Ok(());
    }
    let condition = |Condition { field, values, file }: &Condition| {
        let field = match field.strip_prefix("header.") {
            Some(name) => format!("header.{}", Quoted(name)),
            None => Quoted(field).to_string(),
        };
        match file {
            Some(file) => format!("{field} = {{ file = {} }}", Quoted(&file.to_string_lossy())),
            None => {
                let values: Vec<String> = values.iter().map(|value| Quoted(value).to_string()).collect();
                format!("{field} = [{}]", values.join(", "))
            }
        }
    };
    let conditions: Vec<String> = matches.conditions.iter().map(condition).collect();
    writeln!(f, "match = {{ {} }}", conditions.join(", "))
}
