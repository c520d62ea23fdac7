//! The quantised sliding window log: [`Quota::quantised_log`].

use core::time::Duration;

use super::value::{Kind, Quota};

impl Quota {
    /// The most steps in the window of a quantised log: 16,384 (2^14).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// let resolution = Duration::from_millis(1);
    /// let quota = Quota::quantised_log(1_000_000, resolution * Quota::MAX_STEPS, resolution);
    /// assert!(quota.validate().is_ok());
    /// ```
    pub const MAX_STEPS: u32 = super::bounds::MAX_STEPS;

    /// A sliding window log for very large limits: its memory follows the steps of time, not the
    /// limit.
    ///
    /// Time is divided into steps of one `resolution`, from the clock's origin. The stamp of a
    /// permit is the **end** of its step. A permit that is granted exactly at the end of a step
    /// belongs to that step. The permit is free again one `window` after its stamp. So no interval
    /// as long as `window` holds more than `limit` permits, as with [`Quota::new`]. Each permit is
    /// free again at most one `resolution` later than with [`Quota::new`]. The wait of a denial is
    /// exact.
    ///
    /// - `limit()`: the permits per window, at most [`MAX_CAPACITY`](Self::MAX_CAPACITY). No
    ///   request can be granted more.
    /// - `window()`: the given window plus one `resolution`, the longest time for which a permit
    ///   counts.
    ///
    /// The window must be a multiple of the resolution and have at most
    /// [`MAX_STEPS`](Self::MAX_STEPS) steps. A hundred to a thousand steps are a good choice. With
    /// a thousand, a permit is free again at most a thousandth of the window late.
    ///
    /// A key takes its cell, and 8 bytes for each step of the last window in which it was granted a
    /// permit, in rings of 2, 4, 8 ... slots. An admission costs one compare-and-swap. The first
    /// admission in a step also writes the step before to the ring, or copies the ring if that is
    /// full. A [refund](crate::Limiter::refund) is exact, and copies the ring. Permits
    /// cannot be reserved ahead.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, MockClock, Quota};
    ///
    /// // A million per minute in steps of 60 ms: 8 kB for a busy key. `Quota::new` takes 8 MB.
    /// const INGEST: Quota = Quota::quantised_log(1_000_000, Duration::from_secs(60), Duration::from_millis(60));
    ///
    /// let clock = MockClock::new();
    /// let limiter = Limiter::<String>::builder(INGEST).clock(clock.clone()).build()?;
    /// clock.advance(Duration::from_millis(1));
    /// assert!(limiter.try_acquire_n("sensors", 1_000_000)?.is_admitted());
    /// // The stamp is the end of the step, 60 ms, which is 59 ms from now.
    /// let denied = limiter.try_acquire("sensors");
    /// assert_eq!(denied.retry_after(), Some(Duration::from_millis(60_059)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Source: the sliding window log with its stamps put into buckets, as in the exponential
    /// histograms of M. Datar, A. Gionis, P. Indyk and R. Motwani, "Maintaining stream statistics
    /// over sliding windows", SIAM Journal on Computing 31 (6), 2002. Here all buckets have the
    /// same length, so the error has a bound in time.
    #[must_use]
    pub const fn quantised_log(limit: u32, window: Duration, resolution: Duration) -> Self {
        let longest = match window.checked_add(resolution) {
            Some(longest) => longest,
            None => Duration::MAX,
        };
        Self::of(Kind::QuantisedLog { window, resolution }, limit, longest)
    }

    /// The length of a step of a [quantised log](Self::quantised_log); `None` for any other quota.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// let (minute, step) = (Duration::from_secs(60), Duration::from_millis(60));
    /// assert_eq!(Quota::quantised_log(1_000_000, minute, step).resolution(), Some(step));
    /// assert_eq!(Quota::per_minute(100).resolution(), None);
    /// ```
    #[must_use]
    pub const fn resolution(&self) -> Option<Duration> {
        match self.kind {
            Kind::QuantisedLog { resolution, .. } => Some(resolution),
            _ => None,
        }
    }
}
