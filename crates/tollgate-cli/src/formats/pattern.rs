//! Lines of text, taken apart by a regular expression whose groups name the columns.

use regex::bytes::{CaptureLocations, Regex};

use super::columns::Columns;
use super::record::{LineParser, Stamp, Wanted, time_of};
use crate::errors::{FileError, LineError};
use crate::key::KeyText;
use crate::time::USUAL_NAMES;
use crate::times::Times;

/// Reads such lines.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    found: CaptureLocations,
    /// The numbers of the groups that have a name.
    groups: Vec<usize>,
    columns: Columns,
    times: Times,
}

impl Pattern {
    pub(super) fn new(regex: &Regex, wanted: &Wanted) -> Result<Self, FileError> {
        let named = regex.capture_names().enumerate().filter_map(|(group, name)| Some((group, name?.to_owned())));
        let (groups, there): (Vec<usize>, Vec<String>) = named.unzip();
        let columns = Columns::find(&there, wanted, USUAL_NAMES)?;
        let (found, times) = (regex.capture_locations(), Times::new(&wanted.times));
        Ok(Self { regex: regex.clone(), found, groups, columns, times })
    }
}

impl LineParser for Pattern {
    fn parse(&mut self, line: &[u8], key: &mut KeyText) -> Result<Option<Stamp>, LineError> {
        self.regex.captures_read(&mut self.found, line).ok_or(LineError::NoMatch)?;
        let value = |column: usize| self.found.get(self.groups[column]).map(|(start, end)| &line[start..end]);
        let no_time = || LineError::NoField { wanted: "time".to_owned(), option: "--time-column" };
        let time = time_of(value(self.columns.time).ok_or_else(no_time)?, &mut self.times)?;
        let stamp = self.columns.costs.stamp(time, |&column| value(column))?;
        self.columns.push(key, value);
        Ok(Some(stamp))
    }
}

/// Reads `--pattern`.
pub(super) fn parse(text: &str) -> Result<Regex, String> {
    // The reason is the last line; those before it show where it is, which takes more room than a
    // message has.
    let reason = |error: regex::Error| error.to_string().lines().last().unwrap_or_default().trim().to_owned();
    let regex = Regex::new(text).map_err(reason)?;
    if regex.capture_names().flatten().next().is_none() {
        return Err("its groups name the columns: write (?<time>...) and (?<client>...)".to_owned());
    }
    Ok(regex)
}
