//! Tables as markdown.

use std::fmt;

/// What is written where somebody can't do something.
pub const NOT_APPLICABLE: &str = "n/a";

/// A table, which is displayed as markdown.
#[derive(Debug)]
pub struct Table(String);

impl Table {
    /// A table with a column of text and then columns of numbers.
    #[must_use]
    pub fn new(headings: &[impl AsRef<str>]) -> Self {
        Self::with_text_at(0, headings)
    }

    /// A table whose column at this place has text, and each other numbers.
    #[must_use]
    pub fn with_text_at(place: usize, headings: &[impl AsRef<str>]) -> Self {
        let mut table = Self(String::new());
        table.row(headings);
        let rules: Vec<&str> = (0..headings.len()).map(|at| if at == place { "---" } else { "---:" }).collect();
        table.row(&rules);
        table
    }

    /// Adds a row.
    pub fn row(&mut self, cells: &[impl AsRef<str>]) {
        for cell in cells {
            self.0 += &format!("| {} ", cell.as_ref());
        }
        self.0 += "|\n";
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A ratio, and whether it is within what we aim for.
#[must_use]
pub fn ratio(ratio: Option<f64>, most: Option<f64>) -> String {
    match (ratio, most) {
        (None, _) => NOT_APPLICABLE.into(),
        (Some(ratio), None) => format!("{ratio:.2}"),
        (Some(ratio), Some(most)) if ratio <= most => format!("{ratio:.2} (<= {most:.2}: met)"),
        (Some(ratio), Some(most)) => format!("{ratio:.2} (<= {most:.2}: **not met**)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_on_the_right() {
        let mut table = Table::new(&["what", "ns"]);
        table.row(&["a decision", "20"]);
        assert_eq!(table.to_string(), "| what | ns |\n| --- | ---: |\n| a decision | 20 |\n");
        assert_eq!(Table::with_text_at(1, &["ns", "what"]).to_string(), "| ns | what |\n| ---: | --- |\n");
    }

    #[test]
    fn a_ratio_stands_beside_what_we_aim_for() {
        assert_eq!(ratio(None, Some(1.0)), "n/a");
        assert_eq!(ratio(Some(0.5), None), "0.50");
        assert_eq!(ratio(Some(0.5), Some(0.5)), "0.50 (<= 0.50: met)");
        assert_eq!(ratio(Some(0.6), Some(0.5)), "0.60 (<= 0.50: **not met**)");
    }
}
