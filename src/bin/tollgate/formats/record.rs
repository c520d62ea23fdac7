//! What parsers of all formats share: what is wanted of a line, and what it gives.

use crate::errors::{FileError, LineError};
use crate::key::{Field, KeyText};
use crate::text::excerpt;
use crate::time::{self, Nanos, TimeUnit};

/// What is wanted of each line.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// The parts of every key, one key after the other.
    pub(crate) key: Vec<Field>,
    /// What says the key.
    pub(crate) key_option: &'static str,
    /// What filters look at, after the key.
    pub(crate) filters: Vec<Field>,
    pub(crate) time_column: Option<String>,
    pub(crate) time_unit: Option<TimeUnit>,
    pub(crate) cost_column: Option<String>,
}

/// When a request came and what it costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) time: Nanos,
    pub(crate) cost: u32,
}

/// Reads the lines of one source.
pub(crate) trait LineParser {
    /// The line's stamp; what makes up its key is pushed to `key`, which the caller has cleared. `None` for a line that
    /// is not a record and isn't meant to be one, such as a header.
    fn parse(&mut self, line: &[u8], key: &mut KeyText) -> Result<Option<Stamp>, LineError>;
}

impl Wanted {
    pub(super) fn nothing() -> Self {
        let (key, filters) = (Vec::new(), Vec::new());
        Self { key, key_option: "--key", filters, time_column: None, time_unit: None, cost_column: None }
    }

    /// Every value of a record that is asked for, in the order to be pushed, and what asks for it.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&Field, &'static str)> {
        let key = self.key.iter().map(|field| (field, self.key_option));
        key.chain(self.filters.iter().map(|field| (field, "--where")))
    }
}

pub(super) fn time_of(text: &[u8], unit: Option<TimeUnit>) -> Result<Nanos, LineError> {
    let text = String::from_utf8_lossy(text);
    time::parse_any(&text, unit).map_err(|problem| LineError::Time { text: text.into_owned(), problem })
}

/// A cost past what a limiter can count is as much out of reach as the largest that it can.
pub(super) fn cost_of(text: &[u8]) -> Result<u32, LineError> {
    let text = String::from_utf8_lossy(text);
    let digits = text.trim();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(LineError::Cost(text.into_owned()));
    }
    Ok(digits.parse().unwrap_or(u32::MAX))
}

/// The first of the names that there is a column for.
pub(super) fn column(names: &[&str], there: &[String]) -> Option<usize> {
    names.iter().find_map(|name| {
        let exactly = there.iter().position(|column| column == name);
        exactly.or_else(|| there.iter().position(|column| column.eq_ignore_ascii_case(name)))
    })
}

pub(super) fn no_column(wanted: String, option: &'static str, there: &[String]) -> FileError {
    FileError::NoColumn { wanted, option, there: there.to_vec() }
}

/// How an explicit choice of column is called in messages.
pub(super) fn named(what: &str, name: Option<&str>) -> String {
    name.map_or_else(|| what.to_owned(), |name| format!("{what} called {}", excerpt(name.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_whole_numbers() {
        assert_eq!(cost_of(b" 7 "), Ok(7));
        assert_eq!(cost_of(b"99999999999999999999999"), Ok(u32::MAX));
        for text in ["", "-1", "1.5", "x"] {
            assert_eq!(cost_of(text.as_bytes()), Err(LineError::Cost(text.to_owned())));
        }
    }
}
