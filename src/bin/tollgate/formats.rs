//! Log formats: telling them apart, and getting time, key and cost out of a line.

mod clf;
mod delimited;
mod json;
mod record;

use clap::ValueEnum;

use crate::errors::FileError;
use crate::input::Lines;
use crate::key::Field;
pub(crate) use record::{LineParser, Stamp, Wanted};

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
}
