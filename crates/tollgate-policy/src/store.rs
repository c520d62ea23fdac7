//! [`StoreTable`]: what a policy says of the store that decides.

use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;
use std::path::PathBuf;

use tollgate::format_duration;

use super::quoted::Quoted;

/// The `[store]` of a policy: where a Redis or Valkey server is that decides, and how it is asked.
///
/// This crate only reads the table. `tollgate-redis` makes a limiter of it, and says what is not set.
///
/// ```
/// use std::time::Duration;
/// use tollgate_policy::{Given, OnFailure, Policy, StoreTable};
///
/// let policy = Policy::from_toml(r#"
///     [store]
///     url = "redis://127.0.0.1:6379"
///     secret = { file = "/run/secrets/tollgate" }
///     timeout = "20ms"
///     on_failure = "open"
///
///     [[dimension]]
///     name = "user"
///     quota = [{ limit = 5, per = "1m" }]
/// "#)?;
/// let store = policy.store().expect("there is one");
/// assert_eq!(store.url(), &Given::Text("redis://127.0.0.1:6379".into()));
/// assert_eq!(store.secret(), &Given::File("/run/secrets/tollgate".into()));
/// assert_eq!((store.timeout(), store.prefix()), (Some(Duration::from_millis(20)), None));
/// assert_eq!(store.on_failure(), OnFailure::Open);
/// assert_eq!((store.name(), store.hash_tag()), (StoreTable::NAME, None));
/// assert_eq!((store.max_calls(), store.max_clock_skew()), (None, None));
/// assert_eq!((store.breaker(), store.cache_denials(), store.lease()), (None, None, None));
/// # Ok::<(), tollgate_policy::PolicyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreTable {
    pub(super) url: Given,
    pub(super) secret: Given,
    pub(super) name: Option<String>,
    pub(super) prefix: Option<String>,
    pub(super) hash_tag: Option<String>,
    pub(super) timeout: Option<Duration>,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) max_calls: Option<usize>,
    pub(super) max_clock_skew: Option<Duration>,
    pub(super) breaker: Option<(u32, Duration)>,
    pub(super) on_failure: OnFailure,
    pub(super) cache_denials: Option<usize>,
    pub(super) lease: Option<(u32, usize)>,
}

impl StoreTable {
    /// The address of the server.
    #[must_use]
    pub const fn url(&self) -> &Given {
        &self.url
    }

    /// The secret by which keys are hashed. It is never a text of the file.
    #[must_use]
    pub const fn secret(&self) -> &Given {
        &self.secret
    }

    /// The name of the limiter: another name has other permits. [`StoreTable::NAME`] if it is not set.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(Self::NAME)
    }

    /// The name of the limiter if the table has none.
    pub const NAME: &'static str = "policy";

    /// What the names of all keys on the server begin with.
    #[must_use]
    pub fn prefix(&self) -> Option<&str> {
        self.prefix.as_deref()
    }

    /// The hash tag that all keys have in a cluster.
    #[must_use]
    pub fn hash_tag(&self) -> Option<&str> {
        self.hash_tag.as_deref()
    }

    /// The longest time of a call.
    #[must_use]
    pub const fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// The longest time that making a connection takes.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tollgate_policy::Policy;
    /// let policy = Policy::from_toml(r#"
    ///     [store]
    ///     url = "redis://10.0.0.7:6379"
    ///     secret = { file = "/run/secrets/tollgate" }
    ///     connect_timeout = "5s"
    ///
    ///     [[dimension]]
    ///     name = "user"
    ///     quota = [{ limit = 5, per = "1m" }]
    /// "#)?;
    /// let store = policy.store().expect("there is one");
    /// assert_eq!(store.connect_timeout(), Some(Duration::from_secs(5)));
    /// # Ok::<(), tollgate_policy::PolicyError>(())
    /// ```
    #[must_use]
    pub const fn connect_timeout(&self) -> Option<Duration> {
        self.connect_timeout
    }

    /// The most calls that are on their way at once.
    #[must_use]
    pub const fn max_calls(&self) -> Option<usize> {
        self.max_calls
    }

    /// How far the server's clock may be behind the newest permit of a key.
    #[must_use]
    pub const fn max_clock_skew(&self) -> Option<Duration> {
        self.max_clock_skew
    }

    /// After so many failures in a row, the store is not asked for so long.
    #[must_use]
    pub const fn breaker(&self) -> Option<(u32, Duration)> {
        self.breaker
    }

    /// What to do with requests that the store does not decide.
    #[must_use]
    pub const fn on_failure(&self) -> OnFailure {
        self.on_failure
    }

    /// The slots in which denials are kept.
    #[must_use]
    pub const fn cache_denials(&self) -> Option<usize> {
        self.cache_denials
    }

    /// The most permits of a lease, and the slots for leases.
    #[must_use]
    pub const fn lease(&self) -> Option<(u32, usize)> {
        self.lease
    }
}

/// A value of a `[store]`: itself, or where it is read when the limiter is built.
///
/// ```
/// use tollgate_policy::Given;
///
/// assert_eq!(Given::Env("TOLLGATE_SECRET".into()).to_string(), "the environment variable TOLLGATE_SECRET");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Given {
    /// The value.
    Text(String),
    /// The name of an environment variable.
    Env(String),
    /// The path of a file. A line break at its end is no part of the value.
    File(PathBuf),
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Env(name) => write!(f, "the environment variable {name}"),
            Self::File(path) => write!(f, "the file {}", path.display()),
        }
    }
}

/// What a policy says of requests that its store does not decide.
///
/// ```
/// use tollgate_policy::OnFailure;
///
/// assert_eq!(OnFailure::default(), OnFailure::Closed);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnFailure {
    /// They are not admitted.
    #[default]
    Closed,
    /// They are admitted, and not counted.
    Open,
    /// A limiter in this process decides, with a share of each limit.
    Local {
        /// How many nodes share the limits.
        nodes: NonZeroU32,
    },
}

/// The table as a policy file has it.
impl fmt::Display for StoreTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "[store]\nurl = {}\nsecret = {}", Place(&self.url), Place(&self.secret))?;
        for (field, text) in [("name", &self.name), ("prefix", &self.prefix), ("hash_tag", &self.hash_tag)] {
            text.as_ref().map_or(Ok(()), |text| writeln!(f, "{field} = {}", Quoted(text)))?;
        }
        for (field, time) in [
            ("timeout", self.timeout),
            ("connect_timeout", self.connect_timeout),
            ("max_clock_skew", self.max_clock_skew),
        ] {
            time.map_or(Ok(()), |time| writeln!(f, "{field} = \"{}\"", format_duration(time)))?;
        }
        for (field, number) in [("max_calls", self.max_calls), ("cache_denials", self.cache_denials)] {
            number.map_or(Ok(()), |number| writeln!(f, "{field} = {number}"))?;
        }
        if let Some((failures, pause)) = self.breaker {
            writeln!(f, "breaker = {{ failures = {failures}, pause = \"{}\" }}", format_duration(pause))?;
        }
        if let Some((most, slots)) = self.lease {
            writeln!(f, "lease = {{ most = {most}, slots = {slots} }}")?;
        }
        match self.on_failure {
            OnFailure::Closed => Ok(()),
            OnFailure::Open => writeln!(f, "on_failure = \"open\""),
            OnFailure::Local { nodes } => writeln!(f, "on_failure = \"local\"\nnodes = {nodes}"),
        }
    }
}

/// Displays a value as a policy file has it.
struct Place<'a>(&'a Given);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Given::Text(text) => Quoted(text).fmt(f),
            Given::Env(name) => write!(f, "{{ env = {} }}", Quoted(name)),
            Given::File(path) => write!(f, "{{ file = {} }}", Quoted(&path.to_string_lossy())),
        }
    }
}
