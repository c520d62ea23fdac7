//! The trait [`Clock`], and durations as clocks count them.

use core::time::Duration;

/// A source of time: nanoseconds since an origin that never moves.
///
/// Implement it for a time of your own, for example that of a simulation. A reference to a clock is
/// a clock, and so is an `Arc` of a clock.
///
/// # Readings that go back
/// A clock should not go back. Some clocks do, between processor cores or after a virtual machine
/// has moved. If a reading is earlier than the stamp of the key's newest permit, a log uses that stamp
/// in its place, and a bucket has had less refilled. So a limiter admits no more than it would by a
/// clock that stands still.
///
/// One effect remains: a limiter drops keys that have expired, and those that are forgotten. By a
/// clock that went back, the permits of a key that has none count as granted when the last of the
/// keys dropped near it ended. That is never later than the latest reading of any thread.
///
/// # Range
/// A limiter distinguishes readings up to 109 years after the origin. Later it denies too many
/// requests and never admits too many.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use tollgate::{Clock, Limiter, Quota};
///
/// /// The time of a simulation that counts milliseconds.
/// struct Ticks(AtomicU64);
///
/// impl Clock for Ticks {
///     fn now(&self) -> u64 {
///         self.0.load(Ordering::Relaxed) * 1_000_000
///     }
/// }
///
/// let ticks = Arc::new(Ticks(AtomicU64::new(0)));
/// let builder = Limiter::<String>::builder(Quota::per_second(1)).clock(Arc::clone(&ticks));
/// let limiter = builder.build()?;
/// assert!(limiter.try_acquire("alice").is_admitted());
/// ticks.0.store(999, Ordering::Relaxed);
/// assert!(limiter.try_acquire("alice").is_denied());
/// ticks.0.store(1000, Ordering::Relaxed);
/// assert!(limiter.try_acquire("alice").is_admitted());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
pub trait Clock {
    /// The current time, in nanoseconds since the clock's own origin.
    fn now(&self) -> u64;
}

impl<C: Clock + ?Sized> Clock for &C {
    #[inline]
    fn now(&self) -> u64 {
        (**self).now()
    }
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    #[inline]
    fn now(&self) -> u64 {
        (**self).now()
    }
}

/// The duration in nanoseconds; the longest that fits if it is longer.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
