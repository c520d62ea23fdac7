//! What can go wrong, each with what to do about it: with the run as a whole, with one file, with
//! one line.

mod input;
mod nothing;

use core::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tollgate::{BuildError, Quota, QuotaError};
use tollgate_policy::{LoadError, PolicyError, PolicyProblem};

use crate::text::harmless;
use crate::time::{length, lengths};
pub(crate) use input::{FileError, LineError, fields_in_words};
pub(crate) use nothing::{LineCounts, NothingToDecide};

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
    PolicyUnread(Box<LoadError>),
    /// The charges of the policy can't be settled to the actual costs of a log.
    Unsettled { path: String, why: Unsettled },
    /// Requests in flight are counted, and no log tells when its requests have ended.
    InFlight { what: String },
    /// A file to be written is one of those to be read.
    WouldOverwriteInput { option: &'static str, path: PathBuf },
    /// Not one event came out of all the input.
    NothingToDecide(Box<NothingToDecide>),
    /// A file would not be what its name says.
    WrongEnding { option: &'static str, ending: &'static str, path: PathBuf },
    /// More different keys than a limiter can hold.
    TooManyKeys,
    /// More requests than can be numbered.
    TooManyRequests,
    /// The events cover more time than a limiter's clock can count, even with pauses cut down to a
    /// window.
    LogTooLong,
    /// The requests cover less time than each of the windows that limits are looked for in.
    LogTooShort { span: u64, windows: Vec<u64> },
    /// The store did not decide.
    #[cfg(feature = "redis")]
    Store(String),
    /// A server can't begin, or did not end as it should.
    #[cfg(feature = "serve")]
    Serve(String),
    /// A result could not be written.
    Write { what: String, error: io::Error },
}

/// Why the charges of a policy can't be settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsettled {
    /// They are on a store.
    OnStore,
    /// A policy's limiter has no receipts for the later places of a leaky queue.
    Queue,
}

impl RunError {
    /// Whether whoever read the output has stopped reading, which is no error of ours.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write { error, .. } if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The policy has a store, and this program can't decide on one.
    #[cfg(not(feature = "redis"))]
    pub(crate) fn no_store(file: &str) -> Self {
        Self::Options(format!(
            "{}: the policy has a `[store]`, and this program is built without the feature `redis`: \
             `cargo install tollgate-cli --features serve,redis`, or remove the table to decide in process",
            harmless(file)
        ))
    }

    /// The command is of another build.
    #[cfg(not(feature = "serve"))]
    pub(crate) fn no_serve() -> Self {
        let install = "`cargo install tollgate-cli --features serve`";
        Self::Options(format!("this program is built without the command `serve`: {install}"))
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Limit(_)
            | Self::Options(_)
            | Self::Policy { .. }
            | Self::Unsettled { .. }
            | Self::InFlight { .. }
            | Self::WouldOverwriteInput { .. }
            | Self::WrongEnding { .. } => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(error) => f.write_str(&refusal(error)),
            Self::Options(message) => f.write_str(message),
            #[cfg(feature = "redis")]
            Self::Store(message) => f.write_str(message),
            #[cfg(feature = "serve")]
            Self::Serve(message) => f.write_str(message),
            Self::Policy { path, error } => write!(
                f,
                "{}: line {}, column {}: {}",
                harmless(path),
                error.line(),
                error.column(),
                harmless(&policy_problem(error))
            ),
            Self::PolicyUnread(error) => {
                write!(f, "the policy {} {}", harmless(&error.path().display().to_string()), unread(error))
            }
            Self::Unsettled { path, why } => {
                let why = match why {
                    Unsettled::OnStore => {
                        "the policy has a `[store]`, and a store settles no charges: replay it with --in-process, or \
                         remove the table"
                    }
                    Unsettled::Queue => {
                        "the policy has a leaky queue, and a policy settles no charges of requests that wait in one: \
                         replay the queue by --algorithm leaky-queue"
                    }
                };
                write!(f, "{}: {why}, or leave out --actual-cost-column", harmless(path))
            }
            Self::InFlight { what } => write!(
                f,
                "{}: a log does not tell when its requests have ended, so that requests in flight can't be counted: leave \
                 the concurrency limit out, and replay the other limits",
                harmless(what)
            ),
            Self::WouldOverwriteInput { option, path } => {
                write!(f, "{option} {} would overwrite a file that is being read: name another file", path.display())
            }
            Self::NothingToDecide(why) => why.fmt(f),
            Self::WrongEnding { option, ending, path } => {
                write!(f, "{option} {}: name a file that ends in .{ending}", path.display())
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
            Self::LogTooShort { span, windows } => {
                let log = if *span == 0 { "one moment".to_owned() } else { length(*span) };
                let windows = lengths(windows);
                write!(f, "a log of {log} says nothing of windows of {windows}: give a longer log or a shorter --window")
            }
            Self::Write { what, error } => write!(f, "{what} could not be written: {error}"),
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
        BuildError::Quota(QuotaError::ResetTooLong { reset }) => {
            format!("all permits of a key are free again only after {}: that may take at most {most}", words(reset))
        }
        other => other.to_string(),
    }
}

/// Why a policy file is not read.
pub(crate) fn unread(error: &LoadError) -> String {
    match error {
        LoadError::Read { error, .. } => format!("can't be read: {error}: check its name and permissions"),
        LoadError::NotRegular { .. } => "is not a regular file".to_owned(),
        LoadError::TooLarge { most, .. } => format!("has more than {most} bytes: is it the right file?"),
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
