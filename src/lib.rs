//! An exact, lock-free, in-process rate limiter for many keys.
//!
//! No key is granted more than its limit in any moving window. A decision takes nanoseconds.
//!
//! ```sh
//! cargo add tollgate
//! ```
//!
//! ```
//! use std::time::Duration;
//! use tollgate::{Decision, Limiter, Quota};
//!
//! // At most 5 requests of each user in any 10 seconds. A quota can be a `const`.
//! let limiter = Limiter::<String>::new(Quota::new(5, Duration::from_secs(10)))?;
//!
//! // Share the limiter by reference or `Arc`. It neither clones nor keeps keys.
//! match limiter.try_acquire("alice") {
//!     Decision::Admitted(_) => println!("200"),
//!     Decision::Denied(denial) => println!("429: {denial}"),
//! }
//! # Ok::<(), tollgate::BuildError>(())
//! ```
//!
//! # Features
//! All are off by default. This turns two of them on: `cargo add tollgate --features
//! serde,snapshot`.
//!
//! | feature | adds |
//! |---|---|
//! | `snapshot` | [`Snapshot`]: the state of a limiter as bytes or a file, for a restart |
//! | `serde` | [`Quota`] in configurations; decisions and statuses in logs and answers |
//! | `macros` | the attribute [`#[rate_limit]`][rate_limit]: a limit above a function |
//! | `tokio` | [`TokioClock`]: tests under the paused time of tokio |
//! | `calendar` | time zones other than UTC for [`Quota::calendar`] |
//! | `uuid` | keys of the type [`Uuid`](https://docs.rs/uuid) by value |
//!
//! The program shows the effect of a limit on the traffic of an access log:
//!
//! ```sh
//! cargo install tollgate-cli
//! tollgate suggest access.log
//! tollgate replay --limit 100 --per 1m access.log
//! ```
//!
//! Crates around the limiters:
//!
//! | crate | for |
//! |---|---|
//! | [`tollgate-tower`](https://docs.rs/tollgate-tower) | axum, hyper, tonic, and any other tower service |
//! | [`tollgate-actix`](https://docs.rs/tollgate-actix) | actix-web |
//! | [`tollgate-http`](https://docs.rs/tollgate-http) | header fields, answers and client addresses, for any framework |
//! | [`tollgate-serve`](https://docs.rs/tollgate-serve) | programs in any language, nginx and Envoy |
//! | [`tollgate-wait`](https://docs.rs/tollgate-wait) | requests that wait their turn, as tasks or threads |
//! | [`tollgate-observe`](https://docs.rs/tollgate-observe) | metrics, logs, and the keys that are denied most |
//! | [`tollgate-redis`](https://docs.rs/tollgate-redis) | several nodes that share a limit, on Redis or Valkey: the same quotas, but for the warm-up |
//! | [`tollgate-policy`](https://docs.rs/tollgate-policy) | dimensions and quotas from a TOML file, which may change while the service runs |
//!
//! # What is guaranteed
//! - **Exact sliding window.** A request of cost n is admitted if and only if at most N - n permits
//!   are *live*. A permit that is granted at `s` is live until just before `s + W`, and free again
//!   at exactly `s + W`. No interval as long as the window W ever holds more than N permits.
//! - **All or nothing.** A request is granted its whole cost, or is not charged. A cost above the
//!   limit is an error ([`CostExceedsLimit`]), because no wait would help.
//! - **Honest waits.** If nothing else is granted, a denied request succeeds after exactly
//!   [`retry_after`](Denial::retry_after), and not a nanosecond sooner.
//! - **Lock-free** in the strict sense: a thread that stops between any two instructions never
//!   keeps another thread from its decision, not for a new key and not while the table grows. This
//!   does not cover the allocator, a clock or a hasher of your own, nor targets on which
//!   [`is_lock_free`] is false.
//! - **Bounded memory.** Memory follows the live permits. There is a cap on keys
//!   ([`LimiterBuilder::key_cap`]), and a stated answer to new keys beyond it ([`AtKeyCap`]).
//!   Denied requests take no memory, unless a quota or a penalty counts them.
//! - **Robust against clocks.** If a reading goes back, nothing is admitted that would not be by a
//!   clock that stands still; [`Clock`] tells what else it does. A century of uptime does not overflow.
//! - **No `unsafe`** in this crate. `tollgate-root` has some lines.
//!
//! The other [algorithms](Algorithm) keep their own rules as exactly, in integers, with the same
//! guarantees. [`design`] explains how this works and why it is right, and the
//! [limitations](design::limitations) tell where it falls short.
//!
//! # Guide
//! | to do this | use this |
//! |---|---|
//! | one quota for each of many keys | [`Limiter`] |
//! | one quota for a service as a whole | [`DirectLimiter`] |
//! | one decision on user, address and endpoint | [`JointLimiter`] |
//! | a request that costs more than one permit | [`try_acquire_n`](Limiter::try_acquire_n) |
//! | a `Retry-After` header | [`retry_after_secs`](Denial::retry_after_secs) |
//! | response headers: limit, remaining, reset | [`try_acquire_status`](Limiter::try_acquire_status), [`peek`](Limiter::peek) |
//! | a decision as a `Result`, for `?` | [`into_result`](Decision::into_result) |
//! | wait for a permit | [`WaitingLimiter`](https://docs.rs/tollgate-wait/latest/tollgate_wait/struct.WaitingLimiter.html) of `tollgate-wait` |
//! | permits for later, or a look at what there would be | [`reserve`](Limiter::reserve), [`peek_reserve`](Limiter::peek_reserve) |
//! | attempts that count unless they succeed | [`reserve`](Limiter::reserve) and [`commit`](Reservation::commit) first, [`refund`](Limiter::refund) on success |
//! | a cost that is known afterwards | [`reserve`](Limiter::reserve) first, [`settle`](Reservation::settle) then; `examples/token_budget` is a proxy that does so for streams |
//! | so many requests at a time | [`try_enter`](Limiter::try_enter), with [`Quota::concurrent`] |
//! | a key cap, another clock or another hasher | [`Limiter::builder`] |
//! | tests that set the time | [`MockClock`] |
//! | tests under tokio's paused time | [`TokioClock`] (feature `tokio`) |
//! | one limiter type for the service and its tests | [`AnyClock`] |
//! | a clock whose reading costs one load | [`CoarseClock`] |
//! | windows of hours or days by the system's clock | [`InstantClock`] |
//! | a fresh start for a key, or for all keys | [`forget`](Limiter::forget), [`clear`](Limiter::clear) |
//! | changes of quotas at run time, for all keys or for one, and back | [`set_quotas`](Limiter::set_quotas), [`set_quotas_of`](Limiter::set_quotas_of), [`unset_quotas_of`](Limiter::unset_quotas_of) |
//! | other quotas for the customers of a plan, or a class of endpoints | a [`Tier`], which the request names with its key |
//! | other quotas for a few customers | [`set_quotas_of`](Limiter::set_quotas_of) when a customer's quotas change, not in each request |
//! | denied requests that count as well | [`Quota::counting_refused`] |
//! | a limit on trial, which denies nothing yet, or only some keys | [`shadow`](LimiterBuilder::shadow), [`enforced_percent`](LimiterBuilder::enforced_percent) |
//! | a block for keys that were denied too often, longer each time if asked for | [`Penalty`], [`growing`](Penalty::growing) |
//! | keys that are always admitted or always denied | [`allow`](Limiter::allow), [`deny`](Limiter::deny) |
//! | the number of keys, bytes and denials | [`counts`](Limiter::counts) |
//! | each decision as it is made: metrics, logs, and the keys that are denied most | [`Observer`], and those of [`tollgate-observe`](https://docs.rs/tollgate-observe) |
//! | limits that survive a restart | [`Snapshot`] (feature `snapshot`) |
//! | other changes at run time: a penalty, shadow mode, the answer at the key cap | [`settings`](Limiter::settings) |
//! | dimensions and quotas from a file, which may change while the service runs | `Policy` and `Watcher` of [`tollgate-policy`](https://docs.rs/tollgate-policy) |
//! | a limit above a function | [`#[rate_limit]`][rate_limit] (feature `macros`); with `wait = "2s"` its calls wait |
//! | the effect of a limit on last week's traffic | `tollgate replay`, also with the policy file of the service ([`tollgate-cli`](https://crates.io/crates/tollgate-cli)) |
//!
//! Which quota:
//!
//! | for this | use this quota |
//! |---|---|
//! | at most N permits in any window, exactly | [`Quota::new`], [`per_second`](Quota::per_second) and so on |
//! | several such limits at once, all or nothing | [`LimiterBuilder::and`], [`DirectLimiter::with_quotas`]; a denial says [which](Denial::quota) |
//! | bursts, and a steady rate in the long run | [`Quota::token_bucket`]; as a meter (GCRA) [`Quota::leaky_bucket`] |
//! | an even outflow, where each request gets a [delay](Admission::delay) | [`Quota::leaky_queue`] |
//! | a plain count per window | [`Quota::fixed_window`], [`aligned`](Quota::aligned) to full minutes |
//! | so many permits in each day, week or month of a time zone | [`Quota::calendar`] (zones other than UTC: feature `calendar`) |
//! | at most N permits in any window, for limits in the millions: each permit is free again up to one step late | [`Quota::quantised_log`] |
//! | nearly at most N permits in any window, for limits of 10 to 65,535, in the 32 bytes of a cell | [`Quota::sliding_counter`] |
//! | a rate that rises after a pause, for what is slow then | [`Quota::warm_up`] |
//! | at most N requests in flight at once | [`Quota::concurrent`], and a [`JointLimiter`] to limit their rate as well |
//!
//! # Recipes
//! ## A limiter for a whole service
//! ```
//! use std::net::IpAddr;
//! use std::sync::LazyLock;
//! use tollgate::{Denial, Limiter, Quota};
//!
//! static LIMITER: LazyLock<Limiter<IpAddr>> =
//!     LazyLock::new(|| Limiter::new(Quota::per_minute(100)).expect("the limit is valid"));
//!
//! fn handle(client: IpAddr) -> Result<&'static str, Denial> {
//!     LIMITER.try_acquire(&client).into_result()?;
//!     Ok("hello")
//! }
//! # assert!(handle([192, 0, 2, 7].into()).is_ok());
//! ```
//!
//! ## Own networks and `/health` pass
//! Requests that are not limited do not ask the limiter. The layers for HTTP have the option `skip`
//! for that, and `ClientIp::address`. The address is that of the connection, or one that a proxy of yours tells: a client
//! writes into `X-Forwarded-For` as it likes.
//!
//! ```
//! use std::net::IpAddr;
//! use tollgate::{Denial, Limiter, Quota};
//!
//! fn is_own(client: IpAddr) -> bool {
//!     match client.to_canonical() {
//!         IpAddr::V4(address) => address.is_loopback() || address.is_private(),
//!         IpAddr::V6(address) => address.is_loopback() || address.is_unique_local(),
//!     }
//! }
//!
//! fn admit(limiter: &Limiter<IpAddr>, client: IpAddr, path: &str) -> Result<(), Denial> {
//!     if path == "/health" || is_own(client) {
//!         return Ok(());
//!     }
//!     limiter.try_acquire(client).into_result().map(|_| ())
//! }
//!
//! let limiter = Limiter::<IpAddr>::new(Quota::per_minute(1))?;
//! let (own, client) = (IpAddr::from([10, 0, 0, 7]), IpAddr::from([203, 0, 113, 7]));
//! assert!((0..9).all(|_| admit(&limiter, own, "/").is_ok()));
//! assert!((0..9).all(|_| admit(&limiter, client, "/health").is_ok()));
//! assert!(admit(&limiter, client, "/").is_ok());
//! assert!(admit(&limiter, client, "/").is_err());
//! # Ok::<(), tollgate::BuildError>(())
//! ```
//!
//! ## A client with many IPv6 networks
//! A household has a network of 64 bits, which is one key. A client with a network of 43 bits has two
//! million of them, and fills the key cap: new clients are denied then. Wider networks with limits of
//! their own bound the keys that one client holds: a denied request takes no place. `tollgate serve`
//! adds such limits by itself.
//!
//! ```
//! use std::net::{IpAddr, Ipv6Addr};
//! use std::time::Duration;
//! use tollgate::{JointLimiter, Quota};
//!
//! /// The IPv6 network of so many bits. An IPv4 address is a network of its own.
//! fn network(client: IpAddr, bits: u32) -> IpAddr {
//!     match client.to_canonical() {
//!         IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (128 - bits))).into(),
//!         address => address,
//!     }
//! }
//!
//! // A bucket's key holds its place only until the bucket is full again.
//! let bucket = |permits| Quota::token_bucket(permits, permits, Duration::from_secs(60));
//! let limiter = JointLimiter::<(IpAddr, IpAddr, IpAddr)>::builder()
//!     .dimension("client", [Quota::per_minute(5)])
//!     .dimension("site", [bucket(500)])
//!     .dimension("provider", [bucket(5_000)])
//!     .build()?;
//! let admit = |client: IpAddr| limiter.try_acquire((network(client, 64), network(client, 48), network(client, 32)));
//!
//! let of_attacker = |network: u128| IpAddr::from(Ipv6Addr::from((0x2001_0db8 << 96) | (network << 64)));
//! assert!((0..600).any(|network| admit(of_attacker(network)).is_ok_and(|decision| !decision.is_admitted())));
//! assert!(admit("192.0.2.7".parse()?)?.is_admitted());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ## axum
//! `cargo add tollgate tollgate-tower --features tollgate-tower/axum,tollgate-tower/tracing`. A
//! layer limits each client address. The answer to a denied request is status 429, with
//! `Retry-After` and `RateLimit`:
//!
//! ```text
//! let limiter = Arc::new(Limiter::<IpAddr>::new(Quota::per_minute(100))?);
//! let app = Router::new()
//!     .route("/", get(|| async { "hello" }))
//!     .layer(RateLimitLayer::new(limiter).key(ClientIp::peer()));
//! axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
//! ```
//!
//! [`tollgate-tower`](https://docs.rs/tollgate-tower) has the whole program, and keys by user,
//! route, header field or proxy.
//!
//! ## Log-ins: charge first, refund on success
//! Only failed log-ins count. The attempt is charged before the password is checked: a client that
//! hangs up during the check has used it. A [`Reservation`] that is held across the `.await` would
//! be dropped with the future, and give its permit back.
//!
//! The key is the user at an address: a limit by user alone lets anybody lock a user out. The
//! example `login_by_user` also limits each address for all users, so that none tries a list of
//! names or fills the cap on keys.
//!
//! ```
//! use std::error::Error;
//! use std::net::IpAddr;
//! use std::time::Duration;
//! use tollgate::Limiter;
//! # async fn is_right(_: &str, password: &str) -> bool { password == "secret" }
//!
//! type Attempts = Limiter<(String, IpAddr)>;
//!
//! async fn log_in(limiter: &Attempts, user: (&str, IpAddr), password: &str) -> Result<bool, Box<dyn Error>> {
//!     let attempt = limiter.reserve(user, 1, Duration::ZERO)?.commit();
//!     let is_right = is_right(user.0, password).await;
//!     if is_right {
//!         limiter.refund(attempt)?;
//!     }
//!     Ok(is_right)
//! }
//! # let limiter = Attempts::new(tollgate::Quota::per_day(2))?;
//! # let alice = ("alice", IpAddr::from([192, 0, 2, 7]));
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # for (password, right) in [("secret", true), ("a", false), ("secret", true), ("b", false)] {
//! #     assert_eq!(runtime.block_on(log_in(&limiter, alice, password))?, right);
//! # }
//! # assert!(runtime.block_on(log_in(&limiter, alice, "secret")).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ## tokio: wait for a permit
//! In the crate [`tollgate-wait`](https://docs.rs/tollgate-wait) requests wait their turn: first
//! come, first served, each with a bound on its wait, as tasks or as threads.
//!
//! Without that crate, a reservation has the time to wait. One that is dropped while it waits is
//! refunded: a task that is cancelled takes no permit, and neither does one that forgets `commit`.
//! A log reserves at most one window ahead, and a bucket as far as it takes to fill, so few
//! requests can wait at a time.
//!
//! ```
//! use std::time::Duration;
//! use tollgate::{Limiter, ReserveError};
//!
//! async fn fetch(limiter: &Limiter<String>, host: &str) -> Result<(), ReserveError> {
//!     // A permit within the next 5 seconds, or an error.
//!     let permit = limiter.reserve(host, 1, Duration::from_secs(5))?;
//!     tokio::time::sleep(permit.delay()).await;
//!     permit.commit();
//!     // Send the request here.
//!     Ok(())
//! }
//! # let limiter = Limiter::<String>::new(tollgate::Quota::per_day(1))?;
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
//! # assert!(runtime.block_on(fetch(&limiter, "example.org")).is_ok());
//! # assert!(runtime.block_on(fetch(&limiter, "example.org")).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ## A restart
//! With the feature `snapshot`, save the state when the service stops, and load it when it starts:
//!
//! ```
//! # #[cfg(not(feature = "snapshot"))]
//! # fn main() {}
//! # #[cfg(feature = "snapshot")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("limits");
//! # for restart in [false, true] {
//! use std::io::ErrorKind;
//! use tollgate::{Limiter, Quota, Snapshot};
//!
//! let builder = Limiter::<String>::builder(Quota::per_day(1));
//! let limiter = match Snapshot::load(&path) {
//!     Ok(snapshot) => builder.restore(&snapshot)?,
//!     Err(error) if error.kind() == ErrorKind::NotFound => builder.build()?,
//!     Err(error) => return Err(error.into()),
//! };
//! # assert_eq!(limiter.try_acquire("alice").is_denied(), restart);
//! // Serve requests here.
//! limiter.snapshot().save(&path)?;
//! # }
//! # Ok(())
//! # }
//! ```
//!
//! # Cost
//! A decision on a known key takes one hash, one clock reading and one look-up: O(1). The look-up
//! executes two locked instructions, on memory of the thread's own. A denial writes nothing that
//! other threads read, but for a hint that a log leaves once for each wait. An admission executes
//! one compare-and-swap of 128 bits; a log also one of 64 bits for each permit of the grant before.
//! When a key's ring grows, an admission also copies its stamps. While a table grows, shrinks or
//! changes its quotas, each request also moves a few other keys.
//!
//! A key with one live permit takes a cell of 32 bytes and its share of free cells: 40 to 55 bytes.
//! Further permits take 8 bytes each, in rings of 4, 8, 16 ... slots and at last of as many as the
//! limit, which all quotas of the key share. A quantised log takes 8 bytes for each step that counts.
//! Under the other algorithms a key takes the cell alone.
//!
//! # Platforms
//! Rust 1.85 or later, and targets with 64-bit atomics. Decisions are lock-free on x86-64 and
//! aarch64. On targets without a swap of 128 bits, each load and swap of a key's state takes a lock
//! ([`is_lock_free`]). The default build
//! depends on `quanta` (the clock), `siphasher` (fingerprints that resist chosen keys),
//! `portable-atomic` (words of 128 bits), `tollgate-root` (memory that threads read while it is
//! replaced), `once_cell` (lock-free allocation behind a safe interface) and `tollgate-duration`
//! (durations as texts).
//!
// A link goes to its first address: to the item itself, if its feature is on.
#![cfg_attr(feature = "macros", doc = "[rate_limit]: crate::rate_limit")]
#![cfg_attr(feature = "snapshot", doc = "[`Snapshot`]: crate::Snapshot")]
#![cfg_attr(feature = "tokio", doc = "[`TokioClock`]: crate::TokioClock")]
//! [rate_limit]: https://docs.rs/tollgate/latest/tollgate/attr.rate_limit.html
//! [`Snapshot`]: https://docs.rs/tollgate/latest/tollgate/struct.Snapshot.html
//! [`TokioClock`]: https://docs.rs/tollgate/latest/tollgate/clock/struct.TokioClock.html

// First, because rustdoc shows the methods of a limiter in the order of these modules.
mod limiter;

mod direct;
mod joint;

#[cfg(feature = "macros")]
mod attribute;
mod builder;
mod caps;
mod change;
pub mod clock;
mod counts;
mod decision;
pub mod design;
mod dimensions;
mod draft;
mod engine;
mod error;
mod fingerprint;
mod keys;
mod lists;
mod live;
mod modes;
mod no_key;
mod observer;
mod penalty;
mod quota;
mod quotas;
mod reservation;
#[cfg(feature = "snapshot")]
mod snapshot;
mod state;
mod sync;
mod texts;
mod tier;

/// Whether decisions are lock-free on this target and processor.
///
/// A key's state is a word of 128 bits. x86-64 and aarch64 can swap it. On targets that can't, a lock
/// is taken for the time of one load or swap.
///
/// ```
/// if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
///     assert!(tollgate::is_lock_free());
/// }
/// ```
#[must_use]
pub fn is_lock_free() -> bool {
    state::is_lock_free()
}

pub use builder::joint::JointLimiterBuilder;
pub use builder::{DirectLimiterBuilder, LimiterBuilder};
pub use caps::{AtKeyCap, MAX_DIMENSIONS, MAX_DIMENSIONS_AND_TIERS, MAX_KEY_CAP};
#[cfg(feature = "tokio")]
pub use clock::TokioClock;
pub use clock::{AnyClock, Clock, CoarseClock, InstantClock, MockClock, MonotonicClock};
pub use counts::{Counts, DecisionCounts};
pub use decision::{Admission, Decision, Denial, DenialReason, NamedQuotas, QuotaStatus, Status};
pub use dimensions::{Absent, DimensionKey, Dimensions, Keys};
pub use error::{BuildError, CostExceedsLimit, JointError, PenaltyError};
pub use fingerprint::{DefaultFingerprinter, Fingerprint, Fingerprinter, HashTwice, SipFingerprinter};
pub use joint::JointLimiter;
pub use keys::AsKey;
pub use keys::{Tier, TierKey};
pub use limiter::{DirectLimiter, Limiter};
pub use lists::ListError;
pub use live::LiveSettings;
pub use no_key::{Key, NoKey};
pub use observer::{Observation, ObservedKey, Observer, Unasked, observe_overruled};
pub use penalty::Penalty;
pub use quota::{Algorithm, Calendar, Quota, QuotaError, Zone, ZoneError, schema};
pub use quotas::ChangeError;
pub use reservation::in_flight::InFlight;
pub use reservation::{Lender, OtherLimiter, Receipt, Reservation, ReserveError};
#[cfg(feature = "snapshot")]
pub use snapshot::{RestoreError, Snapshot, SnapshotError};
#[doc(inline)]
pub use tollgate_duration::{DurationError, format_duration, parse_duration};
#[cfg(feature = "macros")]
pub use tollgate_macros::rate_limit;

/// What expansions of [`by_value!`] name. It is for no other use.
#[doc(hidden)]
pub mod __private {
    pub use crate::keys::AlwaysKey;
}

/// The examples of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
