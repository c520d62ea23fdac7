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
//! let limiter = policy.builder::<(String, String)>().build()?;
//! match limiter.try_acquire(("192.0.2.7", "/login"))? {
//!     Decision::Admitted(_) => {}
//!     Decision::Denied(denial) => println!("{}: {denial}", limiter.dimension(denial.dimension())),
//! }
//!
//! let error = Policy::from_toml("[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"10x\" }]").unwrap_err();
//! assert!(error.to_string().starts_with("line 3, column 29: dimension \"user\": `per`: "));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Fields
//! | of the file | |
//! |---|---|
//! | `key_cap` | the most keys held at once, of all dimensions together; 1,048,576 unless said |
//! | `at_key_cap` | what a request with a new key is told then: `"deny"` (unless said) or `"admit"`, see [`AtKeyCap`](crate::AtKeyCap) |
//! | `shadow` | whether to admit what would be denied: `true`, or `false` (unless said), see [`JointLimiterBuilder::shadow`](crate::JointLimiterBuilder::shadow). `tollgate replay` tells what would be denied either way |
//! | `dimension` | one to [`MAX_DIMENSIONS`](crate::MAX_DIMENSIONS) of them |
//!
//! | of a dimension | |
//! |---|---|
//! | `name` | for messages; every dimension has one of its own |
//! | `key` | what its keys are made of, several fields together: `client`, `user`, `path`, `method`, or a column of the log. Only carried by the library; `tollgate replay` reads it from each line, as its `--key`. The dimension's name unless said |
//! | `quota` | one quota, or several sliding window logs |
//! | `penalty` | if keys that are denied too often are blocked: `denials`, `within` and `blocked_for`, see [`Penalty`](crate::Penalty) |
//!
//! | `algorithm` of a quota | its other fields | as |
//! |---|---|---|
//! | `sliding-window-log`, or none | `limit`, `per` | [`Quota::new`](crate::Quota::new) |
//! | `token-bucket` | `capacity`, `refill`, `per`, and `start` if a new key's bucket is not full | [`Quota::token_bucket`](crate::Quota::token_bucket), [`starting_with`](crate::Quota::starting_with) |
//! | `leaky-bucket` | `capacity`, `leak`, `per` | [`Quota::leaky_bucket`](crate::Quota::leaky_bucket) |
//! | `leaky-queue` | `leak`, `per`, `max_delay` | [`Quota::leaky_queue`](crate::Quota::leaky_queue) |
//! | `fixed-window` | `limit`, `per`, and `phase` if windows don't begin with a key's first request | [`Quota::fixed_window`](crate::Quota::fixed_window), [`aligned`](crate::Quota::aligned) |
//! | `sliding-counter` | `limit`, `per`, and `phase` if it is not zero | [`Quota::sliding_counter`](crate::Quota::sliding_counter), [`aligned`](crate::Quota::aligned) |
//! | `quantised-log` | `limit`, `per`, `resolution` | [`Quota::quantised_log`](crate::Quota::quantised_log) |
//!
//! Any quota may have a `name`, for messages and header fields: see [`Quota::named`](crate::Quota::named).
//!
//! Durations are whole seconds (`10`, or `"10"`), or texts such as `"500ms"`, `"10s"` or `"1h30m"` ([`parse_duration`]).
//!
//! A file that has changed can be [applied](Policy::apply) to a limiter that is in use.
//!
//! A phase counts from the origin of the limiter's clock. For the default clock that is when it was made; `tollgate replay` has its
//! windows begin where they would if the clock had been started in 1970.

mod apply;
mod duration;
mod error;
mod load;
mod model;
mod names;
mod read;
#[cfg(test)]
mod tests;

pub use crate::duration::{DurationError, parse_duration};
pub use apply::ApplyError;
pub use error::{PolicyError, PolicyProblem};
pub use load::LoadError;
pub use model::{Dimension, Policy};
