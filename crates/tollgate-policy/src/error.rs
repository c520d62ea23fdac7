//! The problems that a policy file can have.

use core::fmt;
use std::path::PathBuf;

use tollgate::schema::Field;
use tollgate::{Algorithm, BuildError, Calendar, DurationError, QuotaError, ZoneError};
use tollgate_address::ClientConfigError;

use crate::condition::MatchError;

/// Why a policy file was refused: the problem, its line and column. Usual mistakes have a remedy.
///
/// ```
/// use tollgate_policy::{Policy, PolicyProblem};
///
/// let text = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"10x\" }]";
/// let error = Policy::from_toml(text).unwrap_err();
/// assert_eq!((error.line(), error.column(), error.dimension()), (3, 29, Some("user")));
/// assert!(matches!(error.problem(), PolicyProblem::Duration { field: "per", .. }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError {
    line: usize,
    column: usize,
    problem: PolicyProblem,
    dimension: Option<String>,
}

impl PolicyError {
    /// The error for a problem at this byte of the text, in this dimension.
    pub(crate) fn at(text: &str, (byte, problem): (usize, PolicyProblem), dimension: Option<&str>) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        Self { line, column, problem, dimension: dimension.map(str::to_owned) }
    }

    /// The line, counted from 1.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// The column in characters, counted from 1.
    #[must_use]
    pub const fn column(&self) -> usize {
        self.column
    }

    /// The name of the dimension with the problem. `None` for [`PolicyProblem::Toml`], and when the
    /// problem is not in a single dimension.
    #[must_use]
    pub fn dimension(&self) -> Option<&str> {
        self.dimension.as_deref()
    }

    /// The problem at that place.
    #[must_use]
    pub const fn problem(&self) -> &PolicyProblem {
        &self.problem
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: ", self.line, self.column)?;
        if let Some(name) = &self.dimension {
            write!(f, "dimension {name:?}: ")?;
        }
        self.problem.fmt(f)
    }
}

impl core::error::Error for PolicyError {}

/// A problem in a policy file.
///
/// ```
/// use tollgate_policy::{Policy, PolicyProblem};
///
/// let text = "[[dimension]]\nname = \"\"\nquota = [{ limit = 5, per = \"1m\" }]";
/// let error = Policy::from_toml(text).unwrap_err();
/// assert_eq!(error.problem(), &PolicyProblem::EmptyName);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyProblem {
    /// The text is not TOML, has an unknown field, or has a value of the wrong type or out of
    /// range.
    Toml {
        /// The message of the parser. It names the allowed fields or values. After a usual mistake
        /// it has a remedy.
        message: String,
    },
    /// The file names an unknown algorithm.
    UnknownAlgorithm {
        /// The name in the file.
        name: String,
    },
    /// The algorithm needs a field that the quota lacks.
    MissingField {
        /// The field.
        field: &'static str,
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// The field belongs to other algorithms.
    ForeignField {
        /// The field.
        field: &'static str,
        /// The quota's algorithm.
        algorithm: Algorithm,
    },
    /// The value is not a duration.
    Duration {
        /// The field.
        field: &'static str,
        /// The reason.
        error: DurationError,
    },
    /// `zone` is no time zone that is known.
    Zone {
        /// The name in the file.
        name: String,
        /// The reason.
        error: ZoneError,
    },
    /// `per` is a window of the calendar, and the algorithm is not a fixed window.
    CalendarNeedsFixedWindow {
        /// The window.
        calendar: Calendar,
        /// The quota's algorithm.
        algorithm: Algorithm,
    },
    /// A quota has a `zone`, and `per` is not a window of the calendar.
    ZoneNeedsCalendar,
    /// `at_key_cap` is neither `deny` nor `admit`.
    UnknownAtKeyCap {
        /// The word in the file.
        word: String,
    },
    /// A penalty has some of `factor`, `longest` and `quiet_for`, by which its blocks grow, and lacks
    /// this one.
    GrowthLacks {
        /// The field.
        field: &'static str,
    },
    /// The file has `shadow` and `enforced_percent`.
    ShadowAndPercentage,
    /// A dimension has an empty name.
    EmptyName,
    /// Two dimensions have the same name.
    RepeatedName {
        /// The name.
        name: String,
    },
    /// A key has no field, or a field with an empty name.
    EmptyKey,
    /// `[client]` can't say this.
    Client(ClientConfigError),
    /// `[client]` has a `header`, and no proxies that write it.
    HeaderWithoutProxies,
    /// The value of a field of `[store]` is neither a text nor a place where it is.
    Given {
        /// The field.
        field: &'static str,
    },
    /// A secret, or an address with a password, is in the file itself.
    InTheFile {
        /// The field.
        field: &'static str,
    },
    /// `on_failure` of `[store]` is none of the known words.
    UnknownOnFailure {
        /// The word in the file.
        word: String,
    },
    /// A store with `on_failure = "local"` has no `nodes`, or zero.
    NoNodes,
    /// A store has `nodes`, and not `on_failure = "local"`.
    NodesWithoutLocal,
    /// A `match` has no condition.
    EmptyMatch,
    /// A condition of a `match` has no value.
    EmptyCondition {
        /// The field.
        field: String,
    },
    /// A value of a `match` is none.
    Match {
        /// The field.
        field: String,
        /// The reason.
        error: Box<MatchError>,
        /// The file with the value and its line, if it is not the policy.
        line: Option<Box<(PathBuf, usize)>>,
    },
    /// A file with the values of a `match` can't be read.
    List {
        /// The path.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// `action` of a rule is none of the known words.
    UnknownAction {
        /// The word in the file.
        word: String,
    },
    /// A tier has an empty name.
    EmptyTierName,
    /// Two tiers of a dimension have the same name.
    RepeatedTier {
        /// The name.
        name: String,
    },
    /// A tier has `unlimited` and a quota, or `unlimited = false`.
    QuotaAndUnlimited,
    /// A dimension has `tier_by`, and no tier that is chosen by its name.
    NoTierByName,
    /// The fields are complete, but no limiter can be built with their values.
    Refused(BuildError),
}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Toml { message } => f.write_str(message),
            Self::UnknownAlgorithm { name } => {
                let names = in_words(Algorithm::ALL.iter().map(|known| known.name().to_owned()).collect(), "or");
                write!(f, "there is no algorithm {name:?}: write {names}")
            }
            Self::MissingField { field, algorithm } => write!(f, "a {algorithm} needs `{field}`: add it"),
            Self::ForeignField { field, algorithm } => {
                let optional = algorithm.optional_fields().iter().filter(|field| is_in_policies(field));
                let mut fields: Vec<String> = algorithm.needed_fields().iter().map(quoted).collect();
                fields.extend(optional.map(|field| format!("optionally {}", quoted(field))));
                let fields = in_words(fields, "and");
                write!(f, "a {algorithm} has no `{field}`: it has {fields}; remove it, or choose another `algorithm`")
            }
            Self::Duration { field, error } => write!(f, "`{field}`: {error}"),
            Self::Zone { name, error } => write!(f, "`zone` is {name:?}: {error}"),
            Self::CalendarNeedsFixedWindow { calendar, algorithm } => write!(
                f,
                "a {algorithm} has no window of a calendar {calendar}: write `algorithm = \"fixed-window\"`, or a \
                 duration as `per`"
            ),
            Self::ZoneNeedsCalendar => f.write_str(
                "`zone` is for windows of the calendar: write \"day\", \"week\" or \"month\" as `per`, or remove it",
            ),
            Self::UnknownAtKeyCap { word } => write!(f, "`at_key_cap` is {word:?}: write \"deny\" or \"admit\""),
            Self::GrowthLacks { field } => {
                write!(f, "the blocks of a penalty grow by `factor`, `longest` and `quiet_for` together: add `{field}`")
            }
            Self::ShadowAndPercentage => f.write_str(
                "`shadow` and `enforced_percent` are both there: remove `shadow`, or write `enforced_percent = 0` for \
                 shadow mode",
            ),
            Self::EmptyName => f.write_str("a dimension's name is empty: give it one"),
            Self::RepeatedName { name } => {
                write!(f, "there are two dimensions {name:?}: give each a name of its own")
            }
            Self::EmptyKey => f.write_str(
                "`key` has no field, or one with an empty name: name each field, or leave `key` out to use the \
                 dimension's name",
            ),
            Self::Client(error) => error.fmt(f),
            Self::HeaderWithoutProxies => f.write_str(
                "`header` counts from proxies alone: name their networks in `trusted_proxies`, or leave it out",
            ),
            Self::Given { field } => write!(
                f,
                "`{field}` is no text: write one, or {{ env = \"NAME\" }} or {{ file = \"PATH\" }} to have it read there"
            ),
            Self::InTheFile { field } => write!(
                f,
                "`{field}` has a secret in the file: put it elsewhere, and write {{ env = \"NAME\" }} or \
                 {{ file = \"PATH\" }}"
            ),
            Self::UnknownOnFailure { word } => {
                write!(f, "`on_failure` is {word:?}: write \"closed\", \"open\" or \"local\"")
            }
            Self::NoNodes => f.write_str(
                "`on_failure = \"local\"` needs `nodes`, the number of nodes, at least 1: each gets its share of the \
                 limits",
            ),
            Self::NodesWithoutLocal => {
                f.write_str("`nodes` is only for `on_failure = \"local\"`: remove it, or write that")
            }
            Self::EmptyMatch => f.write_str("`match` has no condition: add one, or leave it out to match all requests"),
            Self::EmptyCondition { field } => write!(f, "`{field}` has no value to match: add one, or leave it out"),
            Self::Match { field, error, line: None } => write!(f, "`{field}`: {error}"),
            Self::Match { field, error, line: Some(line) } => {
                write!(f, "`{field}`: line {} of {}: {error}", line.1, line.0.display())
            }
            Self::List { path, reason } => write!(f, "the list {} can't be read: {reason}", path.display()),
            Self::UnknownAction { word } => write!(f, "`action` is {word:?}: write \"admit\" or \"deny\""),
            Self::EmptyTierName => f.write_str("a tier's name is empty: give it one"),
            Self::RepeatedTier { name } => write!(f, "there are two tiers {name:?}: give each a name of its own"),
            Self::QuotaAndUnlimited => {
                f.write_str("a tier has quotas or `unlimited = true`: remove `unlimited`, or the quotas")
            }
            Self::NoTierByName => f.write_str(
                "`tier_by` chooses a tier without a `match` by its name, and there is none: add one, or remove \
                 `tier_by`",
            ),
            Self::Refused(error @ BuildError::Quota(QuotaError::ZeroLimit)) => {
                write!(f, "{error}; to deny requests, write a `[[rule]]` with `action = \"deny\"`")
            }
            Self::Refused(error) => error.fmt(f),
        }
    }
}

/// Whether a policy has the field. It makes joint limiters, which cannot count refused requests.
pub(crate) fn is_in_policies(field: &Field) -> bool {
    *field != Field::CountingRefused
}

fn quoted(field: &Field) -> String {
    format!("`{}`", field.name())
}

/// The words, with another before the last: `one, two or three`.
fn in_words(mut words: Vec<String>, before_last: &str) -> String {
    match words.pop() {
        Some(last) if !words.is_empty() => format!("{} {before_last} {last}", words.join(", ")),
        last => last.unwrap_or_default(),
    }
}

impl From<ClientConfigError> for PolicyProblem {
    fn from(error: ClientConfigError) -> Self {
        Self::Client(error)
    }
}

/// A policy has no dimension of this name.
///
/// ```
/// use tollgate_policy::{Policy, UnknownDimension};
///
/// let text = "[[dimension]]\nname = \"address\"\nquota = [{ limit = 5, per = \"1m\" }]";
/// let error: UnknownDimension = Policy::from_toml(text)?.dimension("user").unwrap_err();
/// assert_eq!((error.dimension(), error.to_string().contains("only \"address\"")), ("user", true));
/// # Ok::<(), tollgate_policy::PolicyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownDimension {
    pub(crate) dimension: String,
    pub(crate) known: Vec<Box<str>>,
}

impl UnknownDimension {
    /// The name that was asked for.
    #[must_use]
    pub fn dimension(&self) -> &str {
        &self.dimension
    }
}

impl fmt::Display for UnknownDimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the policy has no dimension {:?}, only ", self.dimension)?;
        for (at, known) in self.known.iter().enumerate() {
            write!(f, "{}{known:?}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownDimension {}

/// Why no limiter in process can be built of a policy.
///
/// ```
/// use tollgate_policy::{BuilderError, Policy};
///
/// let text = "[[dimension]]\nname = \"address\"\nquota = [{ limit = 5, per = \"1m\" }]";
/// let policy = Policy::from_toml(text)?;
/// let error = policy.builder_of::<str>("user").unwrap_err();
/// assert!(matches!(error, BuilderError::UnknownDimension(_)));
///
/// let store = "[store]\nurl = \"redis://127.0.0.1\"\nsecret = { env = \"SECRET\" }\n";
/// let policy = Policy::from_toml(&format!("{store}{text}"))?;
/// assert_eq!(policy.builder_of::<str>("address").unwrap_err(), BuilderError::ForStore);
/// # Ok::<(), tollgate_policy::PolicyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuilderError {
    /// The policy has a `[store]`, and the limiter would decide in process.
    ForStore,
    /// The policy has no dimension of this name.
    UnknownDimension(UnknownDimension),
    /// The policy has rules, matches, or tiers by the value of a field. A limiter alone does not see
    /// requests.
    ForRequests,
    /// The options of the program make no limiter.
    Build(BuildError),
}

impl From<UnknownDimension> for BuilderError {
    fn from(error: UnknownDimension) -> Self {
        Self::UnknownDimension(error)
    }
}

impl fmt::Display for BuilderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ForStore => f.write_str(
                "the policy has a `[store]`, and this program decides in process: remove the table, or take a program \
                 that decides on a store (`tollgate-redis`)",
            ),
            Self::UnknownDimension(error) => error.fmt(f),
            Self::Build(error) => error.fmt(f),
            Self::ForRequests => f.write_str(
                "the policy has a `[[rule]]`, a `match` or a `tier_by`, which a limiter does not see: remove them, or \
                 take `Policy::request_limiter`",
            ),
        }
    }
}

impl core::error::Error for BuilderError {}
