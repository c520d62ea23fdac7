//! Why there is not one request, by what became of the lines.

use core::fmt;

use super::input::{FileError, by_option};
use crate::text::harmless;
use crate::words::human;

/// What became of the lines that were read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LineCounts {
    pub(crate) read: u64,
    pub(crate) unusable: u64,
    /// Good records that the time range or a filter leaves out.
    pub(crate) left_out: u64,
    /// Good records that have none of the values that keys are made of.
    pub(crate) without_key: u64,
    /// Blank lines and headers.
    pub(crate) not_records: u64,
}

/// Why there is not one request.
#[derive(Debug)]
pub(crate) struct NothingToDecide {
    pub(crate) lines: LineCounts,
    /// What was read.
    pub(crate) sources: Vec<String>,
    /// The files that could not be read, or not to the end.
    pub(crate) unread: Vec<(String, FileError)>,
    pub(crate) key: String,
    pub(crate) key_option: &'static str,
    /// What is said of each field that no record has.
    pub(crate) unnamed: Vec<String>,
}

impl fmt::Display for NothingToDecide {
    /// What is wrong, where, and what to do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LineCounts { left_out, without_key, unusable, not_records, read } = self.lines;
        let place = match self.sources.as_slice() {
            [one] => harmless(one),
            several => format!("{} files", several.len()),
        };
        if without_key > 0 && left_out == 0 && !self.unnamed.is_empty() {
            write!(f, "{place}: {}", self.unnamed.join("\n"))?;
        } else if without_key > 0 {
            let words = format!("{} without a {}", records(without_key), harmless(&self.key));
            write!(f, "{place}: {words}: name another field {}", by_option(self.key_option))?;
        } else if left_out > 0 {
            write!(f, "{place}: {} left out by --from, --until or --where", records(left_out))?;
            if self.unnamed.is_empty() {
                f.write_str(": widen them")?;
            }
            self.unnamed.iter().try_for_each(|words| write!(f, "\n{words}"))?;
        } else if unusable > 0 {
            let lines = if unusable == 1 {
                "the only line is".to_owned()
            } else {
                format!("all {} lines are", human(unusable))
            };
            write!(
                f,
                "{place}: {lines} not what is expected, for the reasons above: say how lines are written with \
                 --log-format or --pattern, and where the time is with --time-column"
            )?;
        } else if not_records > 0 {
            write!(f, "{place}: all {} lines are blank or headers: name a log with requests", human(read))?;
        } else if self.unread.is_empty() {
            write!(f, "{place}: there is not one line: name a log with requests")?;
        } else if let [(file, error)] = self.unread.as_slice() {
            return write!(f, "{} {error}", harmless(file));
        } else {
            write!(f, "none of the {} files can be read", self.unread.len())?;
        }
        self.unread.iter().try_for_each(|(file, error)| write!(f, "\n{}: {error}", harmless(file)))
    }
}

/// All of so many, in words.
fn records(count: u64) -> String {
    if count == 1 { "the only record is".to_owned() } else { format!("all {} records are", human(count)) }
}
