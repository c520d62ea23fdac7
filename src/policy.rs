//! [`Policy`]: the dimensions and quotas of a service in a file, which the service and `tollgate replay` both read.
//!
//! A policy is written in [TOML](https://toml.io). All of it is checked when it is read: a file with anything wrong in it gives a
//! [`PolicyError`] and nothing else, so a limiter that is in use is not touched by it.
//!
//! ```
//! use tollgate::Decision;
//! use tollgate::policy::Policy;
//!
//! let policy = Policy::from_toml(r#"
//!     key_cap = 100_000           # keys held at once, of all dimensions; 1,048,576 unless said
//!     at_key_cap = "deny"         # what a request with a new key is told then; or "admit"
//!
//!     [[dimension]]
//!     name = "address"
//!     key = ["client"]            # what replay reads from each line; several are one key together
//!
//!     ## Several quotas on a key have to be sliding window logs, which is what a quota is unless said.
//!     [[dimension.quota]]
//!     limit = 10
//!     per = "1s"
//!
//!     [[dimension.quota]]
//!     limit = 100
//!     per = "1m"
//!
//!     [[dimension]]
//!     name = "endpoint"
//!     key = ["path"]
//!
//!     [[dimension.quota]]
//!     algorithm = "token-bucket"
//!     capacity = 1000
//!     refill = 100
//!     per = "1s"
//! "#)?;
//!
//! let limiter = policy.builder().build()?;
//! match limiter.try_acquire(("192.0.2.7", "/login"))? {
//!     Decision::Admitted(_) => {}
//!     Decision::Denied(denial) => println!("{}: {denial}", limiter.dimension(denial.dimension())),
//! }
//!
//! let error = Policy::from_toml("[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"10\" }]").unwrap_err();
//! assert_eq!(error.to_string(), "line 3, column 29: `per`: a unit is missing: did you mean 10s?");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Fields
//! | of the file | |
//! |---|---|
//! | `key_cap` | the most keys held at once, of all dimensions together; 1,048,576 unless said |
//! | `at_key_cap` | what a request with a new key is told then: `"deny"` (unless said) or `"admit"`, see [`AtKeyCap`] |
//! | `shadow` | whether to admit what would be denied: `true`, or `false` (unless said), see [`JointLimiterBuilder::shadow`]. `tollgate replay` tells what would be denied either way |
//! | `dimension` | one to [`JointLimiter::MAX_DIMENSIONS`] of them |
//!
//! | of a dimension | |
//! |---|---|
//! | `name` | for messages; every dimension has one of its own |
//! | `key` | what its keys are made of, several fields together: `client`, `user`, `path`, `method`, or a column of the log. Only carried by the library; `tollgate replay` reads it from each line, as its `--key`. The dimension's name unless said |
//! | `quota` | one quota, or several sliding window logs |
//!
//! | `algorithm` of a quota | its other fields | as |
//! |---|---|---|
//! | `sliding-window-log`, or none | `limit`, `per` | [`Quota::new`] |
//! | `token-bucket` | `capacity`, `refill`, `per`, and `start` if a new key's bucket is not full | [`Quota::token_bucket`], [`starting_with`](Quota::starting_with) |
//! | `leaky-bucket` | `capacity`, `leak`, `per` | [`Quota::leaky_bucket`] |
//! | `leaky-queue` | `leak`, `per`, `max_delay` | [`Quota::leaky_queue`] |
//! | `fixed-window` | `limit`, `per`, and `phase` if windows don't begin with a key's first request | [`Quota::fixed_window`], [`aligned`](Quota::aligned) |
//! | `sliding-counter` | `limit`, `per`, and `phase` if it is not zero | [`Quota::sliding_counter`], [`aligned`](Quota::aligned) |
//! | `quantised-log` | `limit`, `per`, `resolution` | [`Quota::quantised_log`] |
//!
//! Durations are texts such as `"500ms"`, `"10s"` or `"1h30m"` ([`parse_duration`]).
//!
//! A phase counts from the origin of the limiter's clock. For the default clock that is when it was made; `tollgate replay` has its
//! windows begin where they would if the clock had been started in 1970.

mod error;
mod read;
#[cfg(test)]
mod tests;

use core::fmt;
use core::str::FromStr;

use crate::builder::AtKeyCap;
use crate::duration::Plain;
pub use crate::duration::{DurationError, parse_duration};
use crate::joint::{JointLimiter, JointLimiterBuilder};
use crate::quota::{Kind, Quota};
pub use error::{PolicyError, PolicyProblem};

/// Dimensions and their quotas, as a file says them. See [the module](self) for the file.
///
/// Printed, it is such a file again: what is read from that is equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    key_cap: Option<usize>,
    at_key_cap: Option<AtKeyCap>,
    shadow: Option<bool>,
    dimensions: Vec<Dimension>,
}

/// One dimension of a [`Policy`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dimension {
    name: Box<str>,
    key: Vec<String>,
    quotas: Vec<Quota>,
}

impl Policy {
    /// Reads and checks the text of a policy file.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] for the first thing that is wrong with it.
    pub fn from_toml(text: &str) -> Result<Self, PolicyError> {
        read::policy(text)
    }

    /// Starts a limiter with these dimensions, in this order, and this cap on keys. What a policy does not say, such as the clock,
    /// can still be set. It can be built: all that could be wrong with a policy was seen to when it was read.
    pub fn builder(&self) -> JointLimiterBuilder {
        let mut builder = JointLimiter::builder();
        for dimension in &self.dimensions {
            builder = builder.dimension(dimension.name.clone(), dimension.quotas.iter().copied());
        }
        if let Some(key_cap) = self.key_cap {
            builder = builder.key_cap(key_cap);
        }
        builder.at_key_cap(self.at_key_cap.unwrap_or_default()).shadow(self.shadow.unwrap_or_default())
    }

    /// The dimensions, in the order of the file. Requests give their keys in this order.
    #[must_use]
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// The most keys held at once, if the policy says so.
    #[must_use]
    pub const fn key_cap(&self) -> Option<usize> {
        self.key_cap
    }

    /// What a request with a new key is told at the cap, if the policy says so.
    #[must_use]
    pub const fn at_key_cap(&self) -> Option<AtKeyCap> {
        self.at_key_cap
    }

    /// Whether to admit what would be denied, if the policy says so.
    #[must_use]
    pub const fn shadow(&self) -> Option<bool> {
        self.shadow
    }
}

impl Dimension {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its keys are made of, together; at least one field. The library makes nothing of it.
    pub fn key(&self) -> impl ExactSizeIterator<Item = &str> {
        self.key.iter().map(String::as_str)
    }

    /// The quotas that each of its keys has, at least one.
    #[must_use]
    pub fn quotas(&self) -> &[Quota] {
        &self.quotas
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        Self::from_toml(text)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(key_cap) = self.key_cap {
            writeln!(f, "key_cap = {key_cap}")?;
        }
        match self.at_key_cap {
            None => {}
            Some(AtKeyCap::Admit) => writeln!(f, "at_key_cap = \"admit\"")?,
            Some(_) => writeln!(f, "at_key_cap = \"deny\"")?,
        }
        if let Some(shadow) = self.shadow {
            writeln!(f, "shadow = {shadow}")?;
        }
        for Dimension { name, key, quotas } in &self.dimensions {
            writeln!(f, "\n[[dimension]]\nname = {}", Quoted(name))?;
            let fields: Vec<String> = key.iter().map(|field| Quoted(field).to_string()).collect();
            writeln!(f, "key = [{}]", fields.join(", "))?;
            for quota in quotas {
                writeln!(f, "\n[[dimension.quota]]")?;
                write_quota(f, quota)?;
            }
        }
        Ok(())
    }
}

fn write_quota(f: &mut fmt::Formatter<'_>, quota: &Quota) -> fmt::Result {
    let (algorithm, limit) = (quota.algorithm(), quota.limit());
    if let Some((name, _)) = read::ALGORITHMS.iter().find(|(_, known)| *known == algorithm) {
        writeln!(f, "algorithm = \"{name}\"")?;
    }
    match quota.kind() {
        Kind::Log | Kind::FixedWindow => writeln!(f, "limit = {limit}\nper = \"{}\"", Plain(quota.window()))?,
        Kind::SlidingCounter { window } => writeln!(f, "limit = {limit}\nper = \"{}\"", Plain(window))?,
        Kind::QuantisedLog { window, resolution } => {
            writeln!(f, "limit = {limit}\nper = \"{}\"\nresolution = \"{}\"", Plain(window), Plain(resolution))?;
        }
        Kind::TokenBucket { refill, per } => {
            writeln!(f, "capacity = {limit}\nrefill = {refill}\nper = \"{}\"", Plain(per))?;
        }
        Kind::LeakyBucket { leak, per } => {
            writeln!(f, "capacity = {limit}\nleak = {leak}\nper = \"{}\"", Plain(per))?;
        }
        Kind::LeakyQueue { leak, per, max_delay } => {
            writeln!(f, "leak = {leak}\nper = \"{}\"\nmax_delay = \"{}\"", Plain(per), Plain(max_delay))?;
        }
    }
    if let Some(start) = quota.start() {
        writeln!(f, "start = {start}")?;
    }
    if let Some(phase) = quota.phase() {
        writeln!(f, "phase = \"{}\"", Plain(phase))?;
    }
    Ok(())
}

/// A text as a basic string of TOML.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for char in self.0.chars() {
            match char {
                '"' | '\\' => write!(f, "\\{char}")?,
                _ if char.is_control() => write!(f, "\\u{:04X}", u32::from(char))?,
                _ => write!(f, "{char}")?,
            }
        }
        f.write_str("\"")
    }
}
