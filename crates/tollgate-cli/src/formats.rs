//! Log formats: telling them apart, and getting time, key and cost out of a line.

mod alb;
mod clf;
mod columns;
mod costs;
mod delimited;
mod guess;
mod haproxy;
mod headed;
mod json;
mod pattern;
mod proxy;
mod record;

use regex::bytes::Regex;

use crate::errors::FileError;
use crate::input::Lines;
use crate::key::Field;
use headed::{Dialect, Headed};
use pattern::Pattern;
use proxy::Proxy;
pub(crate) use record::{Format, LineParser, MATCH, Stamp, Wanted};

/// How many lines at the start of a file its format is told by.
const LINES_TO_TELL_BY: usize = 32;

/// How many of them are shown where that fails.
const LINES_SHOWN: usize = 3;

/// The parser for a source, after a look at its first lines.
pub(crate) fn parser_for(lines: &mut Lines, wanted: &Wanted) -> Result<Box<dyn LineParser>, FileError> {
    let first: Vec<&[u8]> = lines.look_ahead(LINES_TO_TELL_BY).filter(|line| !is_blank(line)).collect();
    let Some(&header) = first.first() else {
        // An empty file has no format, and needs none.
        return Ok(Box::new(clf::AccessLog::new(&Wanted { key: vec![Field::Method], ..Wanted::nothing() })?));
    };
    if let Some(pattern) = &wanted.pattern {
        return Ok(Box::new(Pattern::new(pattern, wanted)?));
    }
    let format = wanted.format.or_else(|| detect(&first)).ok_or_else(|| unknown(&first))?;
    Ok(match format {
        Format::Clf => Box::new(clf::AccessLog::new(wanted)?),
        Format::Csv => Box::new(delimited::Table::new(b',', header, wanted)?),
        Format::Tsv => Box::new(delimited::Table::new(b'\t', header, wanted)?),
        Format::Jsonl => Box::new(json::JsonLines::new(wanted)),
        Format::W3c => Box::new(Headed::new(Dialect::W3c, &first, wanted)?),
        Format::Zeek => Box::new(Headed::new(Dialect::Zeek, &first, wanted)?),
        Format::Haproxy => Box::new(Proxy::new(&haproxy::HAPROXY, wanted)?),
        Format::Alb => Box::new(Proxy::new(&alb::ALB, wanted)?),
    })
}

/// How the first lines look, and what would read them.
fn unknown(first: &[&[u8]]) -> FileError {
    let guess = first.iter().filter(|line| !is_binary(line)).find_map(|line| guess::guess(line));
    let remedy = guess.map(|guess| {
        let format = guess.format.map(|format| format!(" --time-format '{format}'")).unwrap_or_default();
        let year = guess.year.map(|year| format!(" --year {year}")).unwrap_or_default();
        let pattern = format!("--pattern '{}'{format}{year}", guess.pattern);
        if guess.has_client {
            format!("a time and an address are in them, which {pattern} reads")
        } else {
            format!("a time is in them, which {pattern} reads; add a group for the key, such as (?<user>\\S+)")
        }
    });
    let first = first.iter().take(LINES_SHOWN).map(|line| line.to_vec()).collect();
    FileError::UnknownFormat { first, remedy }
}

/// Reads `--pattern`.
pub(crate) fn parse_pattern(text: &str) -> Result<Regex, String> {
    pattern::parse(text)
}

/// A single good line settles it for access logs, JSON and proxies, since none is mistaken for
/// anything else; a table shows by its header.
fn detect(first: &[&[u8]]) -> Option<Format> {
    if let Some(dialect) = first.iter().find_map(|line| Dialect::of_line(line)) {
        return Some(if dialect == Dialect::W3c { Format::W3c } else { Format::Zeek });
    }
    if first.iter().any(|line| clf::Line::split(line).is_ok()) {
        return Some(Format::Clf);
    }
    if first.iter().any(|line| json::is_object(line)) {
        return Some(Format::Jsonl);
    }
    if first.iter().any(|line| alb::is_line(line)) {
        return Some(Format::Alb);
    }
    if first.iter().any(|line| haproxy::split(line).is_ok()) {
        return Some(Format::Haproxy);
    }
    let header = first.first()?;
    // A header has names, and no time of day.
    if is_binary(header) || header.starts_with(b"{") || guess::guess(header).is_some() {
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
        let haproxy = b"lb haproxy[1]: 192.0.2.7:80 [06/Feb/2009:12:12:51.443] in bck/srv1 0/0/5 212 -- 0/0/0/0/3 0/0";
        assert_eq!(detect(&[haproxy]), Some(Format::Haproxy));
        assert_eq!(detect(&[b"time,client", b"1,a"]), Some(Format::Csv));
        assert_eq!(detect(&[b"time\tuser,agent"]), Some(Format::Tsv));
        assert_eq!(detect(&[b"#Version: 1.0", b"#Fields: date time c-ip", b"x"]), Some(Format::W3c));
        assert_eq!(detect(&[b"#separator \\x09", b"#path\thttp"]), Some(Format::Zeek));
        assert_eq!(detect(&[b"#fields\tts\tuid", b"1\ta"]), Some(Format::Zeek));
        assert_eq!(detect(&[b"May  7 10:05:03 web1 app: one, two"]), None, "no header of CSV");
        assert_eq!(detect(&[b"hello"]), None);
        assert_eq!(detect(&[b"\x00\x01,\x02"]), None);
    }
}
