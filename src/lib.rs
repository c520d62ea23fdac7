//! An exact, lock-free, in-process keyed rate limiter.

mod builder;
mod cell;
pub mod clock;
mod counts;
mod decision;
mod direct;
mod error;
mod fingerprint;
mod limiter;
mod quota;
mod single;
mod slab;
mod sync;
mod table;

pub use builder::{AtKeyCap, LimiterBuilder, MAX_KEY_CAP};
pub use clock::{Clock, CoarseClock, MockClock, MonotonicClock};
pub use counts::{Counts, DecisionCounts};
pub use decision::{Admission, Decision, Denial, DenialReason, Status};
pub use direct::DirectLimiter;
pub use error::{BuildError, CostExceedsLimit, QuotaError};
pub use fingerprint::{Fingerprint, Fingerprinter, HashTwice, SipFingerprinter};
pub use limiter::Limiter;
pub use quota::Quota;
