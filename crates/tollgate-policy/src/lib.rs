//! Policy files for the limiters of [tollgate](https://docs.rs/tollgate): the dimensions and quotas
//! of a service in a file, which the service and `tollgate replay` both read.
//!
//! ```sh
//! cargo add tollgate tollgate-policy
//! ```
//!
//! A policy is written in [TOML](https://toml.io). The whole file is checked when it is read. A
//! file with a problem gives only a [`PolicyError`] and changes no limiter that is in use.
//!
//! ```
//! use tollgate::Decision;
//! use tollgate_policy::Policy;
//!
//! let policy = Policy::from_toml(r#"
//!     key_cap = 100_000           # keys held at once, of all dimensions; default 1,048,576
//!     at_key_cap = "deny"         # the answer to a new key at the cap; or "admit"
//!
//!     [[dimension]]
//!     name = "address"
//!     key = ["client"]            # the fields that replay reads from each line
//!
//!     ## A quota without an algorithm is a sliding window log. Several quotas must all be.
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
//! let limiter = policy.builder::<(String, String)>()?.build()?;
//! match limiter.try_acquire(("192.0.2.7", "/login"))? {
//!     Decision::Admitted(_) => {}
//!     Decision::Denied(denial) => println!("{}: {denial}", limiter.dimension(denial.dimension())),
//! }
//!
//! let text = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"10x\" }]";
//! let error = Policy::from_toml(text).unwrap_err();
//! assert!(error.to_string().starts_with("line 3, column 29: dimension \"user\": `per`: "));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Fields
//! | field of the file | value |
//! |---|---|
//! | `key_cap` | the most keys held at once, of all dimensions together; default 1,048,576 |
//! | `at_key_cap` | the answer to a new key then ([`AtKeyCap`]): `"deny"` (default) or `"admit"` |
//! | `shadow` | whether to admit requests that a quota denies: `true` or `false` (default) |
//! | `enforced_percent` | the percentage of keys for which limits are enforced, in place of `shadow`: 0 to 100 (default) |
//! | `network_limits` | whether `tollgate serve` [adds](Policy::with_network_limits) limits of whole IPv6 networks: `true` (default) or `false` |
//! | `client` | [who a client is](#who-a-client-is); optional |
//! | `store` | the [server](#a-store) that decides, in place of this process; optional |
//! | `dimension` | the dimensions, one to [`MAX_DIMENSIONS`](tollgate::MAX_DIMENSIONS) |
//!
//! See [`JointLimiterBuilder::shadow`] for shadow mode, and
//! [`JointLimiterBuilder::enforced_percent`]. `tollgate replay` reports denials with and
//! without it.
//!
//! | field of a dimension | value |
//! |---|---|
//! | `name` | a name for messages, different for each dimension |
//! | `key` | the fields that form its keys; by default one, the dimension's name |
//! | `quota` | one quota, or several sliding window logs |
//! | `penalty` | `denials`, `within` and `blocked_for` of a [`Penalty`](tollgate::Penalty); optional |
//!
//! A field of `key` is `client`, `user`, `path`, `method`, or a column of the log. Several fields
//! form one key. The library only stores their names. `tollgate replay` reads the fields from each
//! line, as its option `--key` does. The field `client` is the address of the client, as `[client]`
//! says. `client/48` is its IPv6 network of 48 bits, which an IPv4 address has not: a dimension with
//! such a field is not asked for it.
//!
#![doc = include_str!("../QUOTAS.md")]
//!
//! Durations are texts with units, such as `"500ms"`, `"10s"` or `"1h30m"`
//! ([`parse_duration`](tollgate::parse_duration)). A number without a unit is an error, which tells
//! what to write.
//!
//! A policy with one dimension, or one dimension of several, makes a [`Limiter`](tollgate::Limiter) by
//! [`Policy::builder_of`].
//!
//! # Who a client is
//! ```toml
//! [client]
//! trusted_proxies = ["10.0.0.0/8", "2001:db8:7::/48"]
//! header = "x-forwarded-for"
//! ipv6_prefix = 64
//! ```
//!
//! | field of the client | value |
//! |---|---|
//! | `trusted_proxies` | the networks of the proxies whose header field counts, and `"unix"` for all peers by Unix sockets; without it only the address of the peer counts |
//! | `header` | the header field that they write: `"x-forwarded-for"` (default), `"forwarded"`, or the name of one with one address, such as `"x-real-ip"` |
//! | `ipv6_prefix` | the bits of an IPv6 address that are one key, 32 to 128; default 64 |
//!
//! [`ClientAddress`] has the rules. IPv4 in IPv6 (`::ffff:192.0.2.7`) is IPv4. Networks that overlap
//! are an error.
//!
//! [`Policy::client`] is the same for all: layers take it by `ClientIp::new(policy.client().clone())`,
//! `tollgate serve` for the values of the field `client`, and `tollgate replay`, `suggest` and
//! `compare` for the column of a log with the peer and the one with the header field.
//!
//! # A store
//! With a `[store]`, the same file is for a Redis or Valkey server on which several nodes share the
//! limits. `tollgate-redis` makes the limiter, and `tollgate serve` and `tollgate replay` take such a
//! file as well. A limiter in process refuses it ([`BuilderError::ForStore`]):
//! nothing decides in process by mistake. [`Policy::without_store`] does so on purpose.
//!
//! ```toml
//! [store]
//! url = "redis://127.0.0.1:6379"
//! secret = { env = "TOLLGATE_SECRET" }
//! timeout = "50ms"
//! on_failure = "local"
//! nodes = 4
//! ```
//!
//! | field of the store | value |
//! |---|---|
//! | `url` | the address, a text without a password, or where it is: `{ env = "NAME" }` or `{ file = "PATH" }` |
//! | `secret` | where the secret is by which keys are hashed, in the same way, and never the secret itself |
//! | `name` | the name of the limiter, by default `"policy"`: another name has other permits |
//! | `prefix`, `hash_tag` | what the names of keys on the server begin with, and their hash tag in a cluster |
//! | `timeout` | the longest time of a call of the server |
//! | `connect_timeout` | the longest time that making a connection takes |
//! | `on_failure` | the answer when the store does not decide: `"closed"` (default), `"open"` or `"local"` |
//! | `nodes` | for `"local"`: the number of nodes, each of which gets that share of the limits |
//! | `cache_denials` | the slots in which denials are kept, to deny again without the store |
//! | `lease` | `{ most = 100, slots = 4096 }`: takes up to so many permits of a key in advance, and spends them without the store. Needs one dimension with one quota, a quantised log, whose resolution is the step. No window holds more than the limit, but permits that other nodes hold are denied |
//! | `max_in_flight`, `max_clock_skew` | the most calls at a time, and how far the server's clock may be behind |
//! | `breaker` | `{ failures = 5, pause = "1s" }`: after so many failures the store is not asked for so long |
//!
//! What is not set is as `tollgate-redis` has it. No store keeps penalties or shadow mode, so
//! `tollgate-redis` refuses a policy with one of them and a store. `key_cap` and `at_key_cap` are for
//! the limiter in process of `on_failure = "local"`.
//!
//! # A file that changes
//! A [`Watcher`] applies a changed file to limiters in use, as a whole, or refuses it with file, line
//! and remedy. What keys have been granted stays.
//!
//! ```no_run
//! use std::net::IpAddr;
//! use std::sync::Arc;
//! use tollgate_policy::{Policy, Reloader, Watcher};
//!
//! let policy = Policy::load("limits.toml")?;
//! let limiter = Arc::new(policy.builder::<(IpAddr,)>()?.build()?);
//! let reloader = Reloader::new("limits.toml", policy, limiter.clone())
//!     .on_reload(|reloaded| eprintln!("limits.toml: {reloaded}"));
//! // It watches until it is dropped.
//! let watcher = Watcher::start(reloader, Watcher::EVERY)?;
//! // After a signal, for example.
//! watcher.reloader().reload_now();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `cargo run -p tollgate-policy --example reload` edits a file well and badly.
//!
//! | a change of | in use |
//! |---|---|
//! | limits, windows, the number of logs | [applied](Policy::apply), as [`Limiter::set_quotas`] says |
//! | `shadow`, `penalty`, `at_key_cap` | applied |
//! | dimensions, algorithms, `key_cap`, `[client]`, `[store]` | refused, unless the program [builds new limiters](Reloader::rebuild_with) |
//!
//! A phase counts from 1970 in process, on a store, in `tollgate serve` and in `tollgate replay`. In
//! process the wall clock is read once, when the limiter's clock is made: if it is set later, or that
//! clock runs at another rate, windows are off by as much. A clock that knows no wall clock, such as a
//! mock clock, has phases from its origin.
//!
//! [`AtKeyCap`]: tollgate::AtKeyCap
//! [`Limiter::set_quotas`]: tollgate::Limiter::set_quotas
//! [`JointLimiterBuilder::enforced_percent`]: tollgate::JointLimiterBuilder::enforced_percent
//! [`JointLimiterBuilder::shadow`]: tollgate::JointLimiterBuilder::shadow

mod apply;
mod apply_error;
mod condition;
mod error;
mod load;
mod matcher;
mod matches;
mod model;
mod networks;
mod placed;
mod quoted;
mod read;
mod read_client;
mod read_match;
mod read_quota;
mod read_store;
mod reload;
mod reloaded;
mod request_limiter;
#[cfg(test)]
mod request_tests;
mod rule;
mod store;
#[cfg(test)]
mod store_tests;
mod target;
#[cfg(test)]
mod tests;
mod values;
mod wanted;
mod watcher;

pub use apply_error::ApplyError;
pub use condition::MatchError;
pub use error::{BuilderError, PolicyError, PolicyProblem, UnknownDimension};
pub use load::LoadError;
pub use matcher::{Choice, Matcher};
pub use matches::Match;
pub use model::{Dimension, Policy};
pub use reload::Reloader;
pub use reloaded::{ReloadError, Reloaded};
pub use request_limiter::{Asked, RequestLimiter};
pub use rule::{Action, PolicyTier, Rule};
pub use store::{Given, OnFailure, StoreTable};
pub use target::{OfDimension, Target};
#[doc(inline)]
pub use tollgate_address::{ClientAddress, ClientConfigError};
pub use values::{Key, Value};
pub use watcher::Watcher;

/// The examples of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
