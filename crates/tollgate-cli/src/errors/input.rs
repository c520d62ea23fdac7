//! What can go wrong with one file, and with one line.

use core::fmt;
use std::io;

use crate::text::excerpt;
use crate::time::TimeProblem;

/// Why a file, or the rest of it, could not be read.
#[derive(Debug)]
pub(crate) enum FileError {
    Open(io::Error),
    Read {
        after_line: u64,
        error: io::Error,
    },
    /// Starts as a file of another kind does, with the way to read it all the same.
    Foreign {
        kind: &'static str,
        remedy: &'static str,
    },
    UnknownFormat {
        /// The first few lines.
        first: Vec<Vec<u8>>,
        /// The options that would read them.
        remedy: Option<String>,
    },
    /// The columns that are there don't include one that is needed.
    NoColumn {
        wanted: String,
        option: &'static str,
        there: Vec<String>,
    },
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => write!(f, "can't be opened: {error}: check its name and permissions"),
            Self::Read { after_line: 0, error } => write!(f, "can't be read: {error}"),
            Self::Read { after_line, error } => {
                write!(f, "can't be read past line {after_line}: {error} (what came before is counted)")
            }
            Self::Foreign { kind, remedy } => write!(f, "is {kind}, which is not read as it is: {remedy}"),
            Self::UnknownFormat { first, remedy } => {
                let first = first.iter().map(|line| excerpt(line)).collect::<Vec<_>>().join(", ");
                write!(f, "is in no format that is known by its first lines ({first}): ")?;
                match remedy {
                    Some(remedy) => f.write_str(remedy),
                    None => f.write_str(
                        "if it is one, say which with --log-format; or take it apart with --pattern, and say with \
                         --time-format how its times are written",
                    ),
                }
            }
            Self::NoColumn { wanted, option, there } => {
                let there = there.iter().map(|name| excerpt(name.as_bytes())).collect::<Vec<_>>().join(", ");
                write!(f, "has no column for the {wanted}: its columns are {there}; name one of them with {option}")
            }
        }
    }
}

impl core::error::Error for FileError {}

/// Why a line is not an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LineError {
    TooLong {
        most: usize,
    },
    Binary,
    /// An access log's line lacks a part, or is cut off before it.
    Lacks(&'static str),
    Time {
        text: String,
        problem: TimeProblem,
    },
    /// The line has fields of its own, and none that fits.
    NoField {
        wanted: String,
        option: &'static str,
    },
    /// The lines above have named the columns, and there is none that fits.
    NoColumn(String),
    UnclosedQuote,
    Columns {
        there: usize,
        expected: usize,
    },
    NotJson(String),
    NoMatch,
    NotAnObject,
    Cost {
        text: String,
        option: &'static str,
    },
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { most } => write!(f, "longer than {most} bytes"),
            Self::Binary => f.write_str("binary data, not text"),
            Self::Lacks(part) => write!(f, "cut off or malformed: {part}"),
            Self::Time { text, problem } => write!(f, "{} {problem}", excerpt(text.as_bytes())),
            Self::NoField { wanted, .. } => write!(f, "has no {wanted}"),
            Self::NoColumn(name) => write!(f, "has no {name}"),
            Self::UnclosedQuote => f.write_str("a quote is opened and not closed on the same line"),
            Self::Columns { there, expected } => write!(f, "{there} columns where the header has {expected}"),
            Self::NotJson(error) => write!(f, "not JSON: {error}"),
            Self::NoMatch => f.write_str("does not match --pattern"),
            Self::NotAnObject => f.write_str("JSON, but not an object with fields"),
            Self::Cost { text, option } => {
                let text = excerpt(text.as_bytes());
                write!(f, "{text} is not a cost (a whole number from 0): look whether {option} names the right column")
            }
        }
    }
}

impl core::error::Error for LineError {}

/// The fields that there are, and the option that names one of them; nothing if there are none.
pub(crate) fn fields_in_words(fields: &[String], option: &str) -> String {
    const MOST: usize = 40;
    if fields.is_empty() {
        return String::new();
    }
    let names = fields.iter().take(MOST).map(|name| excerpt(name.as_bytes())).collect::<Vec<_>>().join(", ");
    let more = match fields.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(": the fields are {names}{more}; name one of them {}", by_option(option))
}

/// `with --key`, or ``in `key` in the policy``.
pub(super) fn by_option(option: &str) -> String {
    format!("{} {option}", if option.starts_with("--") { "with" } else { "in" })
}
