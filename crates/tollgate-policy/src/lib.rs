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
//! | `rule` | [requests](#which-requests-a-limit-is-for) that are admitted or denied before any limit; optional |
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
//! | `match` | [the requests](#which-requests-a-limit-is-for) that it limits; by default all |
//! | `quota` | one quota, or several sliding window logs |
//! | `tier` | [other quotas](#tiers) for some requests; optional |
//! | `tier_by` | the field whose value names a tier; optional |
//! | `shadow` | whether requests pass that only such dimensions deny: `true` or `false` (default) |
//! | `penalty` | `denials`, `within` and `blocked_for` of a [`Penalty`](tollgate::Penalty); with `factor`, `longest` and `quiet_for` its blocks [grow](tollgate::Penalty::growing); optional |
//!
//! A field of `key` is `client`, `method`, `path`, `host`, `header.` with the name of a header field, or
//! any other name, such as `user`. Several fields form one key. Layers find the first five kinds in
//! requests, and the program says the others; `tollgate serve` is told the values; `tollgate replay`
//! has them in columns of the log. The field `client` is the address of the client, as `[client]`
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
//! # Which requests a limit is for
//! ```
//! # let text = r#"
//! [[rule]]                                    # Before any limit; the first that matches decides.
//! match = { client = { file = "blocked.txt" } }
//! action = "deny"
//!
//! [[rule]]
//! match = { path = "/health" }
//! action = "admit"
//!
//! [[dimension]]
//! name = "log-ins"
//! key = ["client"]
//! match = { method = "POST", path = ["/login", "/oauth/{*rest}"] }
//! quota = [{ limit = 5, per = "1m" }]
//! # "#;
//! # let folder = tempfile::tempdir()?;
//! # std::fs::write(folder.path().join("blocked.txt"), "192.0.2.0/24")?;
//! # std::fs::write(folder.path().join("limits.toml"), text)?;
//! # assert_eq!(tollgate_policy::Policy::load(folder.path().join("limits.toml"))?.rules().len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A request matches if each field that `match` names has one of the values: a text, a list, or a file
//! beside the policy with one value a line, where `#` begins a comment. Without a value of the field it
//! does not match.
//!
//! | field of a match | a value |
//! |---|---|
//! | `client` | an address or a network, such as `"192.0.2.0/24"`; the whole address counts, whatever `ipv6_prefix` is |
//! | `method` | a method, such as `"POST"` |
//! | `path` | a path, `"/users/{id}"` with one segment of any text, or `"/static/{*rest}"` with all under it, as axum writes routes |
//! | `host` | a name without a port, or `"*.example.com"` for all names under it |
//! | `header.NAME` | the exact value of a header field |
//! | any other | the exact text |
//!
//! Paths are compared in their normal form: `//x/../%6cogin/` is `/login`. As a part of a key, a path is
//! as it was sent: make the client another part, or another dimension.
//!
//! - A [`Rule`] decides before any limit, and nothing is charged. Those that it denies get 403.
//! - A dimension is asked if its `match` holds. All dimensions that are asked must admit a request. If
//!   none is, no limit is for it, and it is admitted.
//!
//! # Tiers
//! ```
//! # let text = r#"
//! [[dimension]]
//! name = "tenant"
//! quota = [{ limit = 100, per = "1m" }]
//! tier_by = "header.x-plan"                   # Set by the proxy that authenticates.
//!
//! [[dimension.tier]]
//! name = "premium"
//! quota = [{ limit = 1000, per = "1m" }]
//!
//! [[dimension.tier]]
//! name = "export"
//! match = { path = "/export/{*rest}" }
//! quota = [{ limit = 2, per = "1m" }]
//!
//! [[dimension.tier]]
//! name = "office"
//! match = { client = "10.0.0.0/8" }
//! unlimited = true
//! # "#;
//! # assert_eq!(tollgate_policy::Policy::from_toml(text)?.dimensions()[0].tiers().len(), 3);
//! # Ok::<(), tollgate_policy::PolicyError>(())
//! ```
//!
//! A dimension decides a request by the quotas of
//!
//! 1. the first tier whose `match` holds; else
//! 2. the tier without a `match` whose name is the value of `tier_by`; else
//! 3. the dimension itself. A value that names no tier is [counted](Requests::unknown_tiers).
//!
//! Each key has permits of its own in each [`Tier`](tollgate::Tier). A client that could send the field
//! of `tier_by` would choose its own limit: let the proxy that authenticates set or remove it.
//!
//! With `unlimited = true`, the dimension does not limit the request, but others may. At most
//! [`MAX_DIMENSIONS_AND_TIERS`](tollgate::MAX_DIMENSIONS_AND_TIERS) have quotas, so let tenants with the
//! same quotas share a tier, by a list.
//!
//! Rules, matches and `tier_by` look at requests, which a limiter alone does not see: take
//! [`Policy::request_limiter`]. A policy with tiers alone makes any limiter, and the program chooses by
//! [`Tier::key`](tollgate::Tier::key).
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
//! | `max_calls`, `max_clock_skew` | the most calls at a time, and how far the server's clock may be behind |
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
//! | rules, matches and tiers, also a list in a file of its own, by the same fields of requests and with the same names of tiers | applied to a [`RequestLimiter`] |
//! | dimensions, algorithms, tiers, fields, `key_cap`, `[client]`, `[store]` | refused, unless the program [builds new limiters](Reloader::rebuild_with) |
//!
//! A phase counts from 1970 in process, on a store, in `tollgate serve` and in `tollgate replay`, and
//! a day, a week or a month is that of its zone. In process the wall clock is read once, when the
//! limiter's clock is made: if it is set later, or that clock runs at another rate, windows are off by
//! as much. To a clock that knows no wall clock, such as a mock clock, its origin is the start of 1970.
//!
//! [`AtKeyCap`]: tollgate::AtKeyCap
//! [`Limiter::set_quotas`]: tollgate::Limiter::set_quotas
//! [`JointLimiterBuilder::enforced_percent`]: tollgate::JointLimiterBuilder::enforced_percent
//! [`JointLimiterBuilder::shadow`]: tollgate::JointLimiterBuilder::shadow

mod apply;
mod apply_error;
mod condition;
mod enter;
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
pub use enter::EnterError;
pub use error::{BuilderError, PolicyError, PolicyProblem, UnknownDimension};
pub use load::LoadError;
pub use matcher::{Choice, Matcher};
pub use matches::Match;
pub use model::{Dimension, Policy};
pub use reload::Reloader;
pub use reloaded::{ReloadError, Reloaded};
pub use request_limiter::{Asked, RequestLimiter, Requests};
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
