//! The trait [`Clock`].

/// A source of time: nanoseconds since an origin that never moves.
///
/// Implement it for a time of your own, for example that of a simulation. A reference to a clock is
/// a clock, and so is an `Arc` of a clock.
///
/// # Readings that go back
/// A clock should not go back. Some clocks do, between processor cores or after a virtual machine
/// has moved. If a reading is earlier than the stamp of the key's newest permit, the limiter uses
/// that stamp in its place. So it admits no more than it would by a clock that stands still.
///
/// Two effects remain:
/// - A limiter drops stamps when a key expires, when it is forgotten and when its ring grows. By a
///   clock that went back, the stamp of the next permit may be as late as the newest dropped stamp.
///   The key's live permits stay live until then. Such a stamp is never later than the latest
///   reading of any thread.
/// - After a [change of quotas](crate::Limiter::set_quotas), a sliding window log may admit one
///   permit too many to one window. This needs a thread that stops halfway through a request, and
///   another thread that completes the request with an earlier reading. The permit is then early by
///   the difference of the two readings.
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
