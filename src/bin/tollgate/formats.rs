//! Log formats: telling them apart, and getting time, key and cost out of a line.

mod clf;
mod delimited;
mod json;

use clap::ValueEnum;

use crate::errors::{FileError, LineError};
use crate::input::Lines;
use crate::key::{Field, KeyText};
use crate::terminal::excerpt;
use crate::time::{self, Nanos, TimeUnit};

/// How many lines at the start of a file its format is told by.
const LINES_TO_TELL_BY: usize = 32;

/// How the lines of a log are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Common or combined access log, as Apache and nginx write it
    #[value(alias = "combined", alias = "common")]
    Clf,
    /// Comma-separated values with a header line
    Csv,
    /// Tab-separated values with a header line
    Tsv,
    /// A JSON object on every line
    #[value(alias = "ndjson", alias = "json")]
    Jsonl,
}

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

/// The parser for a source, after a look at its first lines.
pub(crate) fn parser_for(
    lines: &mut Lines,
    format: Option<Format>,
    wanted: &Wanted,
) -> Result<Box<dyn LineParser>, FileError> {
    let first: Vec<&[u8]> = lines.look_ahead(LINES_TO_TELL_BY).filter(|line| !is_blank(line)).collect();
    let Some(&header) = first.first() else {
        // An empty file has no format, and needs none.
        return Ok(Box::new(clf::AccessLog::new(&Wanted { key: vec![Field::Client], ..Wanted::nothing() })?));
    };
    let format = match format.or_else(|| detect(&first)) {
        Some(format) => format,
        None => return Err(FileError::UnknownFormat { first_line: header.to_vec() }),
    };
    Ok(match format {
        Format::Clf => Box::new(clf::AccessLog::new(wanted)?),
        Format::Csv => Box::new(delimited::Table::new(b',', header, wanted)?),
        Format::Tsv => Box::new(delimited::Table::new(b'\t', header, wanted)?),
        Format::Jsonl => Box::new(json::JsonLines::new(wanted)),
    })
}

impl Wanted {
    fn nothing() -> Self {
        let (key, filters) = (Vec::new(), Vec::new());
        Self { key, key_option: "--key", filters, time_column: None, time_unit: None, cost_column: None }
    }

    /// Every value of a record that is asked for, in the order to be pushed, and what asks for it.
    fn parts(&self) -> impl Iterator<Item = (&Field, &'static str)> {
        let key = self.key.iter().map(|field| (field, self.key_option));
        key.chain(self.filters.iter().map(|field| (field, "--where")))
    }
}

/// A single good line settles it for access logs and JSON, since neither is mistaken for anything else; a table shows
/// by its header.
fn detect(first: &[&[u8]]) -> Option<Format> {
    if first.iter().any(|line| clf::Line::split(line).is_ok()) {
        return Some(Format::Clf);
    }
    if first.iter().any(|line| json::is_object(line)) {
        return Some(Format::Jsonl);
    }
    let header = first.first()?;
    if is_binary(header) || header.starts_with(b"{") {
        return None;
    }
    let has = |delimiter| header.contains(&delimiter);
    if has(b'\t') {
        Some(Format::Tsv)
    } else if has(b',') {
        Some(Format::Csv)
    } else {
        None
    }
}

pub(crate) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

/// Text has no zero bytes and few other control characters.
pub(crate) fn is_binary(line: &[u8]) -> bool {
    let controls = line.iter().filter(|byte| byte.is_ascii_control() && **byte != b'\t').count();
    line.contains(&0) || controls * 10 > line.len()
}

fn time_of(text: &[u8], unit: Option<TimeUnit>) -> Result<Nanos, LineError> {
    let text = String::from_utf8_lossy(text);
    time::parse_any(&text, unit).map_err(|problem| LineError::Time { text: text.into_owned(), problem })
}

/// A cost past what a limiter can count is as much out of reach as the largest that it can.
fn cost_of(text: &[u8]) -> Result<u32, LineError> {
    let text = String::from_utf8_lossy(text);
    let digits = text.trim();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(LineError::Cost(text.into_owned()));
    }
    Ok(digits.parse().unwrap_or(u32::MAX))
}

/// The first of the names that there is a column for.
fn column(names: &[&str], there: &[String]) -> Option<usize> {
    names.iter().find_map(|name| {
        let exactly = there.iter().position(|column| column == name);
        exactly.or_else(|| there.iter().position(|column| column.eq_ignore_ascii_case(name)))
    })
}

fn no_column(wanted: String, option: &'static str, there: &[String]) -> FileError {
    FileError::NoColumn { wanted, option, there: there.to_vec() }
}

/// How an explicit choice of column is called in messages.
fn named(what: &str, name: Option<&str>) -> String {
    name.map_or_else(|| what.to_owned(), |name| format!("{what} called {}", excerpt(name.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_apart() {
        let clf: &[u8] = br#"10.0.0.1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5"#;
        assert_eq!(detect(&[clf]), Some(Format::Clf));
        assert_eq!(detect(&[br#"HTTP/1.1" 200 5"#, clf]), Some(Format::Clf), "half a line first");
        assert_eq!(detect(&[br#"{"time": 1, "client": "a"}"#]), Some(Format::Jsonl));
        assert_eq!(detect(&[b"time,client", b"1,a"]), Some(Format::Csv));
        assert_eq!(detect(&[b"time\tuser,agent"]), Some(Format::Tsv));
        assert_eq!(detect(&[b"hello"]), None);
        assert_eq!(detect(&[b"\x00\x01,\x02"]), None);
    }

    #[test]
    fn costs_are_whole_numbers() {
        assert_eq!(cost_of(b" 7 "), Ok(7));
        assert_eq!(cost_of(b"99999999999999999999999"), Ok(u32::MAX));
        for text in ["", "-1", "1.5", "x"] {
            assert_eq!(cost_of(text.as_bytes()), Err(LineError::Cost(text.to_owned())));
        }
    }
}
