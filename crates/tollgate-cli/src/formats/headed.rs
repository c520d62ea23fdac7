//! Logs whose columns are named by lines that begin with `#`: the W3C extended format, as IIS and
//! CloudFront write it, and Zeek's.
//!
//! Such lines may come again, with other columns: a server writes them each time it is started, and
//! files are put together.

use super::columns::{Columns, column, no_column};
use super::record::{LineParser, Stamp, Wanted, time_of};
use crate::errors::{FileError, LineError};
use crate::key::KeyText;
use crate::time::USUAL_NAMES;
use crate::times::Times;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `#Fields: date time c-ip ...`; values are set apart by spaces or by tabs, and may be in
    /// quotes.
    W3c,
    /// `#separator \x09`, `#fields`, `#unset_field`; values are set apart by the separator.
    Zeek,
}

impl Dialect {
    /// The dialect of a log that has such a line.
    pub(super) fn of_line(line: &[u8]) -> Option<Self> {
        if directive(line, b"#Fields:").is_some() {
            Some(Self::W3c)
        } else if line.starts_with(b"#separator ") || directive(line, b"#fields").is_some() {
            Some(Self::Zeek)
        } else {
            None
        }
    }
}

/// Reads such a log.
#[derive(Debug)]
pub(super) struct Headed {
    dialect: Dialect,
    wanted: Wanted,
    times: Times,
    /// `Err` where the columns that are there lack one that is needed: its name.
    table: Result<Table, String>,
    separator: u8,
    /// What stands for no value, beside `-`.
    unset: Vec<Vec<u8>>,
    /// Where the values of a line begin and end.
    values: Vec<(usize, usize)>,
}

#[derive(Debug)]
struct Table {
    columns: Columns,
    /// The day, where the time has a column of its own.
    date: Option<usize>,
    width: usize,
}

impl Headed {
    /// `first` are the first lines of the log.
    pub(super) fn new(dialect: Dialect, first: &[&[u8]], wanted: &Wanted) -> Result<Self, FileError> {
        let mut headed = Self {
            dialect,
            wanted: wanted.clone(),
            times: Times::new(&wanted.times),
            table: Err("line that names the columns (#Fields)".to_owned()),
            separator: b'\t',
            unset: vec![b"(empty)".to_vec()],
            values: Vec::new(),
        };
        for line in first.iter().take_while(|line| line.starts_with(b"#")) {
            headed.read_directive(line)?;
        }
        Ok(headed)
    }

    fn read_directive(&mut self, line: &[u8]) -> Result<(), FileError> {
        match self.dialect {
            Dialect::W3c => {
                let Some(fields) = directive(line, b"#Fields:") else { return Ok(()) };
                let names = fields.split(u8::is_ascii_whitespace).filter(|name| !name.is_empty());
                self.set_columns(names)
            }
            Dialect::Zeek => {
                if let Some(separator) = line.strip_prefix(b"#separator ") {
                    self.separator = separator_of(separator).unwrap_or(b'\t');
                }
                let separator = self.separator;
                let mut values = line.split(|byte| *byte == separator);
                match values.next() {
                    Some(b"#fields") => self.set_columns(values),
                    Some(b"#unset_field" | b"#empty_field") => {
                        self.unset.extend(values.next().map(<[u8]>::to_vec));
                        Ok(())
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    fn set_columns<'a>(&mut self, names: impl Iterator<Item = &'a [u8]>) -> Result<(), FileError> {
        let there: Vec<String> = names.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        match self.find(&there) {
            Ok(table) => {
                self.table = Ok(table);
                Ok(())
            }
            Err(error) => {
                self.table = Err(match &error {
                    FileError::NoColumn { wanted, .. } => format!("column for the {wanted}"),
                    other => other.to_string(),
                });
                Err(error)
            }
        }
    }

    fn find(&self, there: &[String]) -> Result<Table, FileError> {
        let columns = Columns::find(there, &self.wanted, USUAL_NAMES)?;
        let mut table = Table { columns, date: None, width: there.len() };
        let has_date = self.dialect == Dialect::W3c && self.wanted.time_column.is_none();
        if let Some(time) = column(&["time"], there).filter(|_| has_date) {
            let date = column(&["date"], there);
            let missing = || no_column("date, and a time of day alone is no time".to_owned(), "--time-column", there);
            table.date = Some(date.ok_or_else(missing)?);
            table.columns.time = time;
        }
        Ok(table)
    }

    fn split(&mut self, line: &[u8]) {
        self.values.clear();
        let separator = match self.dialect {
            Dialect::Zeek => self.separator,
            Dialect::W3c if memchr::memchr(b'\t', line).is_some() => b'\t',
            Dialect::W3c => {
                self.split_at_spaces(line);
                return;
            }
        };
        let mut start = 0;
        for end in memchr::memchr_iter(separator, line).chain([line.len()]) {
            self.values.push((start, end));
            start = end + 1;
        }
    }

    /// Several spaces in a row are as good as one. A value in quotes goes on to the quote that is
    /// not doubled.
    fn split_at_spaces(&mut self, line: &[u8]) {
        let mut start = 0;
        while let Some(skipped) = line[start..].iter().position(|byte| *byte != b' ') {
            start += skipped;
            let rest = &line[start..];
            let end = if rest[0] == b'"' {
                let closing = closing_quote(rest).unwrap_or(rest.len());
                self.values.push((start + 1, start + closing));
                start + closing + 1
            } else {
                let end = start + memchr::memchr(b' ', rest).unwrap_or(rest.len());
                self.values.push((start, end));
                end
            };
            start = end.min(line.len());
        }
    }
}

/// Where the quote is that closes the one which the text begins with.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        at += memchr::memchr(b'"', text.get(at..)?)?;
        if text.get(at + 1) != Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

impl LineParser for Headed {
    fn parse(&mut self, line: &[u8], key: &mut KeyText) -> Result<Option<Stamp>, LineError> {
        if line.starts_with(b"#") {
            // What is missing is told with each of the lines that lack it.
            let _ = self.read_directive(line);
            return Ok(None);
        }
        self.split(line);
        let table = self.table.as_ref().map_err(|missing| LineError::NoColumn(missing.clone()))?;
        let (there, expected) = (self.values.len(), table.width);
        if there != expected {
            return Err(LineError::Columns { there, expected });
        }
        let value = |at: usize| {
            let (start, end) = self.values[at];
            &line[start..end]
        };
        let time = value(table.columns.time);
        let time = match table.date {
            Some(date) => time_of(&[value(date), b"T", time].concat(), &mut self.times)?,
            None => time_of(time, &mut self.times)?,
        };
        let stamp = table.columns.costs.stamp(time, |&at| Some(value(at)))?;
        let is_set = |value: &&[u8]| !self.unset.iter().any(|unset| unset == value);
        table.columns.push(key, |at| Some(value(at)).filter(is_set));
        Ok(Some(stamp))
    }
}

/// What follows the name of a directive.
fn directive<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    line.strip_prefix(name).filter(|rest| rest.first().is_some_and(|next| !next.is_ascii_alphanumeric()))
}

/// The separator, as a byte or as `\x09`.
fn separator_of(text: &[u8]) -> Option<u8> {
    match text {
        [byte] => Some(*byte),
        [b'\\', b'x', digits @ ..] => u8::from_str_radix(std::str::from_utf8(digits).ok()?.trim(), 16).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Field;

    fn values(dialect: Dialect, line: &str) -> Vec<String> {
        let mut headed = Headed::new(dialect, &[], &Wanted::nothing()).unwrap();
        headed.split(line.as_bytes());
        headed.values.iter().map(|&(start, end)| line[start..end].to_owned()).collect()
    }

    #[test]
    fn values_are_set_apart_by_spaces_or_tabs_or_quotes() {
        assert_eq!(values(Dialect::W3c, "a b  -  c"), ["a", "b", "-", "c"]);
        assert_eq!(values(Dialect::W3c, "a b\tc d\t\te"), ["a b", "c d", "", "e"]);
        assert_eq!(values(Dialect::W3c, r#""a b" c "d ""e"" f" g"#), ["a b", "c", r#"d ""e"" f"#, "g"]);
        assert_eq!(values(Dialect::W3c, r#"a "b c"#), ["a", "b c"]);
        assert_eq!(values(Dialect::W3c, ""), [""; 0]);
        assert_eq!(values(Dialect::Zeek, "a b\t\tc"), ["a b", "", "c"]);
    }

    #[test]
    fn columns_may_change() {
        let wanted = Wanted { key: vec![Field::Client(Default::default())], ..Wanted::nothing() };
        let first: &[u8] = b"#Fields: date time c-ip";
        let mut headed = Headed::new(Dialect::W3c, &[first], &wanted).unwrap();
        let mut key = KeyText::new(&wanted.key);
        let mut parse = |line: &str| {
            key.clear();
            let stamp = headed.parse(line.as_bytes(), &mut key)?;
            Ok(stamp.map(|stamp| (stamp.time, key.finished().map(str::to_owned))))
        };
        let expected = Ok(Some((1_431_857_103_500_000_000, Some("10.0.0.1".to_owned()))));
        assert_eq!(parse("2015-05-17 10:05:03.5 10.0.0.1"), expected);
        assert_eq!(parse("#Fields: c-ip time date"), Ok(None));
        assert_eq!(parse("10.0.0.1 10:05:03.5 2015-05-17"), expected);
        assert_eq!(parse("10.0.0.1 10:05:03.5"), Err(LineError::Columns { there: 2, expected: 3 }));
        assert_eq!(parse("#Fields: date time"), Ok(None));
        assert_eq!(parse("2015-05-17 10:05:03"), Err(LineError::NoColumn("column for the key client".to_owned())));
        assert!(Headed::new(Dialect::W3c, &[b"#Fields: time c-ip"], &wanted).is_err());
    }
}
