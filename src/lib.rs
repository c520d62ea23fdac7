//! An exact, lock-free, in-process rate limiter: at most N permits a key in any moving window, decided in nanoseconds.
//!
//! ```
//! use std::time::Duration;
//! use tollgate::{Decision, Limiter, Quota};
//!
//! // Five in any ten seconds, for each user. Plain integers; a quota can be a `const`.
//! let limiter = Limiter::<String>::new(Quota::new(5, Duration::from_secs(10)))?;
//!
//! // Share it by reference or `Arc`. Keys are taken in borrowed form: nothing is cloned or kept.
//! match limiter.try_acquire("alice") {
//!     Decision::Admitted(_) => println!("welcome"),
//!     Decision::Denied(denial) => println!("429: {denial}"),
//! }
//! # Ok::<(), tollgate::BuildError>(())
//! ```
//!
//! # What is guaranteed
//! - **Exact sliding window.** A request of cost n is admitted if and only if at most N - n permits are *live*. A permit granted at
//!   `s` is live until just before `s + W` and free again at exactly `s + W`. No interval of one window's length ever holds more
//!   than N, whatever the threads do.
//! - **All or nothing.** A request is granted its whole cost or is not charged at all. More than the limit at once is an error
//!   of its own ([`CostExceedsLimit`]), because no wait would help.
//! - **Honest advice.** With no other traffic a denied request succeeds after exactly [`retry_after`](Denial::retry_after), and not a
//!   nanosecond sooner.
//! - **Lock-free**, in the strict sense: a thread that is stalled anywhere, between any two instructions, keeps no other from getting
//!   a decision; not when a key is new, not while the table grows. (The allocator, and a clock or hasher of your own, are beyond us.)
//! - **Bounded memory.** It follows the live permits, with a hard cap on keys ([`LimiterBuilder::key_cap`]) and a stated answer
//!   beyond it ([`AtKeyCap`]). Requests that are denied cost nothing, however many.
//! - **Clocks can't hurt.** A reading that goes back counts as the newest stamp; a century of uptime does not overflow.
//! - **No `unsafe`** in this crate.
//!
//! The other [algorithms](Algorithm) keep their own rule as exactly, in integers, with the same promises.
//!
//! How this is done, and why it is right, is told in [`design`] and at the head of the source files.
//!
//! # Guide
//! | to do this | use this |
//! |---|---|
//! | one quota for each of many keys | [`Limiter`] |
//! | one quota for the whole of something | [`DirectLimiter`] |
//! | a request that weighs more than one | [`try_acquire_n`](Limiter::try_acquire_n) |
//! | a `Retry-After` header | [`retry_after_secs`](Denial::retry_after_secs) |
//! | response headers: limit, remaining, reset | [`try_acquire_status`](Limiter::try_acquire_status), [`peek`](Limiter::peek) |
//! | a key cap, another clock or hasher | [`Limiter::builder`] |
//! | tests that decide what time it is | [`MockClock`] |
//! | a clock that costs one load | [`CoarseClock`] |
//! | a key that starts afresh | [`forget`](Limiter::forget), [`clear`](Limiter::clear) |
//! | permits that are given back if they are not used, or for later | [`reserve`](Limiter::reserve), [`refund`](Limiter::refund) |
//! | other limits while requests come, for all keys or for one | [`set_quotas`](Limiter::set_quotas), [`set_quotas_of`](Limiter::set_quotas_of) |
//! | tiers: other quotas for some keys, by a function of the key | a dimension of a [`JointLimiter`] for each tier, of which a request is asked in one ([`Absent`] for the others) |
//! | refused requests that count as well | [`Quota::counting_refused`] |
//! | user, address and endpoint decided as one | [`JointLimiter`] |
//! | a restart that forgives nobody | `Limiter::snapshot` and `Snapshot` (feature `serde`) |
//! | dimensions and quotas from a file | `Policy` (feature `policy`) |
//! | what the limiter holds | [`counts`](Limiter::counts) |
//! | a limit that is tried out before it denies anybody | [`shadow`](LimiterBuilder::shadow) |
//! | keys that are blocked for a while once they were denied too often | [`Penalty`] |
//! | keys that are always admitted, and keys that never are | [`allow`](Limiter::allow), [`deny`](Limiter::deny) |
//! | a limit above a function | the attribute `#[rate_limit]` (feature `macros`) |
//! | what a limit would have done to last week's traffic | the program: `tollgate replay` (feature `cli`), by hand or with the very file that the service loads |
//!
//! Which quota:
//!
//! | what you want | quota |
//! |---|---|
//! | at most N in any window, exactly | [`Quota::new`], [`per_second`](Quota::per_second) and so on |
//! | bursts, and a steady rate in the long run | [`Quota::token_bucket`]; as a meter [`Quota::leaky_bucket`] |
//! | an even outflow, each request told its [delay](Admission::delay) | [`Quota::leaky_queue`] |
//! | a plain count a window | [`Quota::fixed_window`], [`aligned`](Quota::aligned) to full minutes |
//! | the same of very large limits, with stamps rounded up to steps | [`Quota::quantised_log`] |
//! | a moving window without a log, nearly | [`Quota::sliding_counter`] |
//! | several at once, all or nothing | [`LimiterBuilder::and`], [`DirectLimiter::with_quotas`]; a denial says [which](Denial::quota) |
//!
//! # Cost
//! A decision on a known key is one hash, one clock reading and one look-up, O(1). A denial executes no locked instruction and
//! writes nothing to shared memory. An admission executes two compare-and-swaps, and now and then, when a key's ring grows, copies its
//! stamps. Memory for a key with one live permit is 32 bytes and its share of the index; further permits are 8 bytes each, in rings
//! of 4, 8, 16 ... slots. By any other algorithm a key takes no more than the 32 bytes, but for
//! the quantised log: 8 bytes for each step that counts and for three words more. Several quotas on one key share a ring.
//!
//! # Platforms
//! Targets with 64-bit atomics. The default build depends on `quanta` (the clock), `siphasher` (fingerprints that hold up against
//! chosen keys) and `once_cell` (lock-free allocation behind a safe interface).

mod builder;
mod caps;
mod cell;
mod change;
pub mod clock;
mod counts;
mod decision;
mod direct;
mod duration;
mod engine;
mod error;
mod fingerprint;
mod joint;
mod keys;
mod limiter;
mod lists;
mod modes;
mod noted;
mod penalty;
#[cfg(feature = "policy")]
pub mod policy;
mod quota;
mod quotas;
mod reservation;
mod rule;
mod single;
mod slab;
#[cfg(feature = "serde")]
mod snapshot;
mod sync;
mod table;

pub use builder::LimiterBuilder;
pub use caps::{AtKeyCap, MAX_DIMENSIONS, MAX_KEY_CAP};
pub use change::ChangeError;
pub use clock::{Clock, CoarseClock, MockClock, MonotonicClock};
pub use counts::{Counts, DecisionCounts};
pub use decision::{Admission, Decision, Denial, DenialReason, Status};
pub use direct::{DirectLimiter, DirectLimiterBuilder};
pub use error::{BuildError, CostExceedsLimit, JointError, PenaltyError};
pub use fingerprint::{DefaultFingerprinter, Fingerprint, Fingerprinter, HashTwice, SipFingerprinter};
pub use joint::{JointLimiter, JointLimiterBuilder};
pub use keys::{Absent, AsKey, DimensionKey, Dimensions, Keys};
pub use limiter::Limiter;
pub use lists::ListError;
pub use penalty::Penalty;
#[cfg(feature = "policy")]
pub use policy::{ApplyError, Policy, PolicyError};
pub use quota::{Algorithm, Quota, QuotaError};
pub use reservation::{Lender, OtherLimiter, Receipt, Reservation, ReserveError};
#[cfg(feature = "serde")]
pub use snapshot::{RestoreError, Snapshot, SnapshotError};
#[cfg(feature = "macros")]
pub use tollgate_macros::rate_limit;

#[doc = include_str!("../DESIGN.md")]
pub mod design {}

/// The examples of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
