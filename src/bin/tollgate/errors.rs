//! What can go wrong, each with what to do about it: with the run as a whole, with one file, with one line.

use core::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tollgate::policy::PolicyProblem;
use tollgate::{BuildError, PolicyError, Quota, QuotaError};

use crate::log::LineCounts;
use crate::terminal::{excerpt, harmless};
use crate::time::{TimeProblem, length};

/// Why there is no report.
#[derive(Debug)]
pub(crate) enum RunError {
    /// The limit or the window is one that the library refuses.
    Limit(BuildError),
    /// The options contradict each other, or lack something.
    Options(String),
    /// The policy file can't be used.
    Policy { path: String, error: Box<PolicyError> },
    /// The policy file can't be read.
    PolicyUnread { path: String, error: io::Error },
    /// A file to be written is one of those to be read.
    WouldOverwriteInput { option: &'static str, path: PathBuf },
    /// Not one event came out of all the input.
    NothingToDecide(Box<NothingToDecide>),
    /// The plot would not be what the file's name says.
    NotSvg { path: PathBuf },
    /// More different keys than a limiter can hold.
    TooManyKeys,
    /// More requests than can be numbered.
    TooManyRequests,
    /// The events cover more time than a limiter's clock can count, even with pauses cut down to a window.
    LogTooLong,
    /// A result could not be written.
    Write { what: String, error: io::Error },
    /// The drawing failed for another reason than its file.
    Draw(String),
}

impl RunError {
    /// Whether whoever read the output has stopped reading, which is no error of ours.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write { error, .. } if error.kind() == io::ErrorKind::BrokenPipe)
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Limit(_)
            | Self::Options(_)
            | Self::Policy { .. }
            | Self::WouldOverwriteInput { .. }
            | Self::NotSvg { .. } => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(error) => f.write_str(&refusal(error)),
            Self::Options(message) => f.write_str(message),
            Self::Policy { path, error } => write!(
                f,
                "{}: line {}, column {}: {}",
                harmless(path),
                error.line(),
                error.column(),
                harmless(&policy_problem(error))
            ),
            Self::PolicyUnread { path, error } => {
                write!(f, "the policy {} can't be read: {error}: check its name and permissions", harmless(path))
            }
            Self::WouldOverwriteInput { option, path } => {
                write!(f, "{option} {} would overwrite a file that is being read: name another file", path.display())
            }
            Self::NothingToDecide(why) => why.fmt(f),
            Self::NotSvg { path } => {
                write!(f, "--plot {}: plots are drawn as SVG: name a file that ends in .svg", path.display())
            }
            Self::TooManyKeys => write!(
                f,
                "more than {} keys at once, which is all that a limiter holds: replay a shorter log or a coarser --key",
                tollgate::MAX_KEY_CAP
            ),
            Self::TooManyRequests => f.write_str("more than 4,294,967,296 requests: replay a shorter log"),
            Self::LogTooLong => f.write_str(
                "the log covers more than the 109 years that a limiter's clock can count: look for absurd dates in it, or \
                 replay a shorter log or a shorter window",
            ),
            Self::Write { what, error } => write!(f, "{what} could not be written: {error}"),
            Self::Draw(error) => write!(f, "the plot could not be drawn: {error}"),
        }
    }
}

impl core::error::Error for RunError {}

/// Why the library refuses a limit; long times in days, as people count them.
fn refusal(error: &BuildError) -> String {
    let words = |time: &Duration| length(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    let most = words(&Quota::MAX_WINDOW);
    match error {
        BuildError::Quota(QuotaError::WindowTooLong { window }) => {
            format!("the window {} is too long: at most {most}", words(window))
        }
        BuildError::Quota(QuotaError::PeriodTooLong { per }) => {
            format!("the period {} of the rate is too long: at most {most}", words(per))
        }
        BuildError::Quota(QuotaError::ResetTooLong { reset }) => format!(
            "a key that is left alone would be as new only after {}: that may take at most {most}",
            words(reset)
        ),
        other => other.to_string(),
    }
}

/// What is wrong with a policy.
pub(crate) fn policy_problem(error: &PolicyError) -> String {
    match error.problem() {
        PolicyProblem::Refused(why) => refusal(why),
        other => other.to_string(),
    }
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

impl fmt::Display for NothingToDecide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LineCounts { left_out, without_key, unusable, read, .. } = self.lines;
        f.write_str("nothing to decide: ")?;
        if left_out > 0 && without_key == 0 {
            write!(f, "none of the {left_out} records passes --from, --until and --where: ask for more of them")?;
        } else if without_key > 0 {
            let (key, option) = (&self.key, self.key_option);
            write!(f, "{without_key} records were read but none has a {key}: choose another {option}")?;
        } else if unusable > 0 {
            write!(
                f,
                "none of the {unusable} lines could be used: see the reasons above, and --log-format, --time-column and {}",
                self.key_option
            )?;
        } else if read > 0 || self.unread.is_empty() {
            f.write_str("the input has no records")?;
        } else if let [(file, error)] = self.unread.as_slice() {
            return write!(f, "{} {error}", harmless(file));
        } else {
            f.write_str("no file could be read")?;
        }
        self.unread.iter().try_for_each(|(file, error)| write!(f, "\n{}: {error}", harmless(file)))
    }
}

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
        first_line: Vec<u8>,
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
            Self::UnknownFormat { first_line } => write!(
                f,
                "is in no format that is known by its first lines ({}): if it is one, say which with --log-format",
                excerpt(first_line)
            ),
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
    NoField(String),
    UnclosedQuote,
    Columns {
        there: usize,
        expected: usize,
    },
    NotJson(String),
    NotAnObject,
    Cost(String),
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { most } => write!(f, "longer than {most} bytes"),
            Self::Binary => f.write_str("binary data, not text"),
            Self::Lacks(part) => write!(f, "cut off or malformed: {part}"),
            Self::Time { text, problem } => write!(f, "{} {problem}", excerpt(text.as_bytes())),
            Self::NoField(name) => write!(f, "has no {name}"),
            Self::UnclosedQuote => f.write_str("a quote is opened and not closed on the same line"),
            Self::Columns { there, expected } => write!(f, "{there} columns where the header has {expected}"),
            Self::NotJson(error) => write!(f, "not JSON: {error}"),
            Self::NotAnObject => f.write_str("JSON, but not an object with fields"),
            Self::Cost(text) => write!(f, "{} is not a cost (a whole number from 0)", excerpt(text.as_bytes())),
        }
    }
}

impl core::error::Error for LineError {}
