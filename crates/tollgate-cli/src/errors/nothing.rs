//! Why there is not one request, by what became of the lines.

use core::fmt;

use super::input::FileError;
use crate::text::harmless;

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
    /// The files that could not be read, or not to the end.
    pub(crate) unread: Vec<(String, FileError)>,
    pub(crate) key: String,
    pub(crate) key_option: &'static str,
}

/// What follows from each cause.
const NOTHING: &str = ", so there is nothing to decide";

impl fmt::Display for NothingToDecide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LineCounts { left_out, without_key, unusable, read, .. } = self.lines;
        if left_out > 0 && without_key == 0 {
            write!(
                f,
                "none of the {left_out} records passes --from, --until and --where{NOTHING}: ask for more of them"
            )?;
        } else if without_key > 0 {
            let (key, option) = (&self.key, self.key_option);
            write!(f, "{without_key} records were read but none has a {key}{NOTHING}: choose another {option}")?;
        } else if unusable > 0 {
            write!(
                f,
                "none of the {unusable} lines could be used{NOTHING}: see the reasons above, and --log-format, \
                 --time-column and {}",
                self.key_option
            )?;
        } else if read > 0 || self.unread.is_empty() {
            write!(f, "the input has no records{NOTHING}")?;
        } else if let [(file, error)] = self.unread.as_slice() {
            return write!(f, "{} {error}{NOTHING}", harmless(file));
        } else {
            write!(f, "no file could be read{NOTHING}")?;
        }
        self.unread.iter().try_for_each(|(file, error)| write!(f, "\n{}: {error}", harmless(file)))
    }
}
