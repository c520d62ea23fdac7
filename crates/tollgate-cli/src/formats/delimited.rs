//! CSV and TSV with a header line.
//!
//! Each line is read on its own. A quoted value could run over several lines by the letter of RFC
//! 4180, but then one stray quote would swallow everything after it, and no access log is written
//! that way.

use super::columns::Columns;
use super::record::{LineParser, Stamp, Wanted, time_of};
use crate::errors::{FileError, LineError};
use crate::key::KeyText;
use crate::time::USUAL_NAMES;
use crate::times::Times;

/// Reads a table whose header is known.
#[derive(Debug)]
pub(super) struct Table {
    splitter: Splitter,
    width: usize,
    columns: Columns,
    times: Times,
    /// The header's own line is still to come.
    at_header: bool,
}

impl Table {
    pub(super) fn new(delimiter: u8, header: &[u8], wanted: &Wanted) -> Result<Self, FileError> {
        let mut splitter = Splitter::new(delimiter);
        // A header that can't be read as it should lacks columns, which is what is then said of it.
        let _ = splitter.split(header);
        let there: Vec<String> =
            splitter.values().map(|name| String::from_utf8_lossy(name.trim_ascii()).into_owned()).collect();

        let columns = Columns::find(&there, wanted, USUAL_NAMES)?;
        let times = Times::new(&wanted.times);
        Ok(Self { splitter, width: there.len(), columns, times, at_header: true })
    }
}

impl LineParser for Table {
    fn parse(&mut self, line: &[u8], key: &mut KeyText) -> Result<Option<Stamp>, LineError> {
        if core::mem::take(&mut self.at_header) {
            return Ok(None);
        }
        self.splitter.split(line)?;
        let there = self.splitter.count;
        let beyond_is_empty = self.splitter.values().skip(self.width).all(<[u8]>::is_empty);
        if there < self.width || !beyond_is_empty {
            return Err(LineError::Columns { there, expected: self.width });
        }
        let value = |at: usize| self.splitter.value(at);
        let time = time_of(value(self.columns.time), &mut self.times)?;
        let stamp = self.columns.costs.stamp(time, |&at| Some(value(at)))?;
        self.columns.push(key, |at| Some(value(at)));
        Ok(Some(stamp))
    }
}

/// Takes lines apart, in memory that is used again for each.
#[derive(Debug)]
struct Splitter {
    parser: csv_core::Reader,
    line: Vec<u8>,
    values: Vec<u8>,
    ends: Vec<usize>,
    count: usize,
}

impl Splitter {
    fn new(delimiter: u8) -> Self {
        // Lines come without their ends, so a carriage return in one belongs to a value.
        let line_end = csv_core::Terminator::Any(b'\n');
        let parser = csv_core::ReaderBuilder::new().delimiter(delimiter).terminator(line_end).build();
        Self { parser, line: Vec::new(), values: Vec::new(), ends: Vec::new(), count: 0 }
    }

    fn split(&mut self, line: &[u8]) -> Result<(), LineError> {
        self.line.clear();
        self.line.extend_from_slice(line);
        self.line.push(b'\n');
        // There are never more values, nor more bytes in them, than the line has bytes.
        self.values.resize(self.line.len().max(self.values.len()), 0);
        self.ends.resize(self.line.len().max(self.ends.len()), 0);
        self.parser.reset();
        let (result, _, _, count) = self.parser.read_record(&self.line, &mut self.values, &mut self.ends);
        self.count = count;
        // The line's end ends the record, unless a quote is still open there and takes it in.
        if result == csv_core::ReadRecordResult::Record { Ok(()) } else { Err(LineError::UnclosedQuote) }
    }

    fn value(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.values[start..self.ends[at]]
    }

    fn values(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.count).map(|at| self.value(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Field;
    use crate::time::TimeProblem;

    fn table(header: &str, wanted: &Wanted) -> Result<Table, FileError> {
        let mut table = Table::new(b',', header.as_bytes(), wanted)?;
        assert_eq!(table.parse(header.as_bytes(), &mut KeyText::new(&wanted.key)), Ok(None));
        Ok(table)
    }

    fn by_client() -> Wanted {
        Wanted { key: vec![Field::Client(Default::default())], ..Wanted::nothing() }
    }

    #[test]
    fn columns_are_found_by_their_usual_names() {
        let mut table = table(r#"id, Timestamp ,"Remote_Addr",x"#, &by_client()).unwrap();
        let mut key = KeyText::new(&[Field::Client(Default::default())]);
        let stamp = table.parse(br#"7,2015-05-17T10:05:03.5Z,"a, ""b""",y"#, &mut key).unwrap();
        assert_eq!(stamp, Some(Stamp { time: 1_431_857_103_500_000_000, cost: 1, actual: 1 }));
        assert_eq!(key.finished(), Some(r#"a, "b""#));
    }

    #[test]
    fn a_missing_column_names_those_there_are() {
        let message = table("when,client", &by_client()).unwrap_err().to_string();
        assert!(message.contains("\"when\", \"client\"") && message.contains("--time-column"), "{message}");
        let message = table("time,who", &by_client()).unwrap_err().to_string();
        assert!(message.contains("\"who\"") && message.contains("--key"), "{message}");
        let wanted = Wanted { cost_column: Some("weight".into()), ..by_client() };
        assert!(table("time,client", &wanted).unwrap_err().to_string().contains("--cost-column"));
    }

    #[test]
    fn a_bad_line_spoils_no_other() {
        let wanted = Wanted { cost_column: Some("cost".into()), ..by_client() };
        let mut table = table("time,client,cost", &wanted).unwrap();
        let mut key = KeyText::new(&[Field::Client(Default::default())]);
        let mut parse = |line: &str| table.parse(line.as_bytes(), &mut key);
        assert_eq!(parse(r#"1,"a,1"#), Err(LineError::UnclosedQuote));
        assert_eq!(parse("1,a"), Err(LineError::Columns { there: 2, expected: 3 }));
        assert_eq!(parse("1,a,1,extra"), Err(LineError::Columns { there: 4, expected: 3 }));
        assert_eq!(parse("1,a,x"), Err(LineError::Cost { text: "x".into(), option: "--cost-column" }));
        let problem = TimeProblem::NotATime;
        assert_eq!(parse("soon,a,1"), Err(LineError::Time { text: "soon".into(), problem }));
        assert_eq!(parse("1,a,3,"), Ok(Some(Stamp { time: 1_000_000_000, cost: 3, actual: 3 })));
    }
}
