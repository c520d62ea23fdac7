//! The quantised sliding window log: [`Quota::quantised_log`].

use core::time::Duration;

use super::error::QuotaError;
use super::value::{Kind, Quota};

impl Quota {
    /// The most steps that the window of a quantised log may have: 16,384 (2^14). Whoever begins a step copies those that count.
    pub const MAX_STEPS: u32 = super::bounds::MAX_STEPS;

    /// A sliding window log for very large limits: at most `limit` permits in any interval of `window`, remembered in steps of one
    /// `resolution`, however many there are.
    ///
    /// Time is divided into steps of one `resolution`, from the clock's origin. A permit counts as granted at the **end** of its step
    /// (one that is granted at the very end of a step counts as of that moment, and not as of a step later), and is free again
    /// one `window` after that: to the nanosecond, at the end of a step. So it never admits more than [`Quota::new`] with the same
    /// limit and window would, and each permit is free again at most one `resolution` later. What a denial says of the wait is exact.
    ///
    /// - `limit()`: the permits in any window, which is the most that can be had at once. At most
    ///   [`MAX_CAPACITY`](Self::MAX_CAPACITY).
    /// - `window()`: the window that is given here and one `resolution`, because a permit can count for so long.
    ///
    /// The window has to be a multiple of the resolution, and of at most [`MAX_STEPS`](Self::MAX_STEPS) steps. A hundred to a thousand
    /// are a good choice: with a thousand, a permit is free again a thousandth of the window late at most.
    ///
    /// A key takes a word for each step in which it was granted something in the last window, three more, and its cell; blocks come in
    /// sizes of 4, 16, 128, 1024 ... words, up to just what a window can need. A request costs one compare-and-swap, as in any other
    /// algorithm; the first that is admitted in a step copies the words of the steps that count.
    /// Permits can be given back ([`Limiter::refund`](crate::Limiter::refund)), exactly; nothing can be reserved ahead.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, MockClock, Quota};
    ///
    /// // A million a minute, to 60 milliseconds: 8 kilobytes a busy key, where the log would take 8 megabytes.
    /// const INGEST: Quota = Quota::quantised_log(1_000_000, Duration::from_secs(60), Duration::from_millis(60));
    ///
    /// let clock = MockClock::new();
    /// let limiter = Limiter::<String>::builder(INGEST).clock(clock.clone()).build()?;
    /// clock.advance(Duration::from_millis(1));
    /// assert!(limiter.try_acquire_n("sensors", 1_000_000)?.is_admitted());
    /// // Stamped with the end of the step, at 60 ms: 59 from now.
    /// let denied = limiter.try_acquire("sensors");
    /// assert_eq!(denied.retry_after(), Some(Duration::from_millis(60_059)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Source: the sliding window log with its time stamps put into buckets, as in the exponential histograms of M. Datar, A. Gionis, P.
    /// Indyk and R. Motwani, "Maintaining stream statistics over sliding windows", SIAM Journal on Computing 31 (6), 2002, but with
    /// buckets of equal length, so that what the answer is off by is known as a time.
    #[must_use]
    pub const fn quantised_log(limit: u32, window: Duration, resolution: Duration) -> Self {
        let longest = match window.checked_add(resolution) {
            Some(longest) => longest,
            None => Duration::MAX,
        };
        Self::of(Kind::QuantisedLog { window, resolution }, limit, longest)
    }

    /// How long a step of a [quantised log](Self::quantised_log) is; `None` of any other quota.
    #[must_use]
    pub const fn resolution(&self) -> Option<Duration> {
        match self.kind {
            Kind::QuantisedLog { resolution, .. } => Some(resolution),
            _ => None,
        }
    }

    pub(super) const fn check_steps(&self, window: Duration, resolution: Duration) -> Result<(), QuotaError> {
        if resolution.is_zero() {
            return Err(QuotaError::ZeroResolution);
        }
        // First: zero, and what is too long or too many.
        let windows = self.check_windows(window, Self::MAX_CAPACITY);
        if windows.is_err() {
            return windows;
        }
        if !window.as_nanos().is_multiple_of(resolution.as_nanos()) {
            return Err(QuotaError::UnevenResolution { resolution, window });
        }
        let steps = window.as_nanos() / resolution.as_nanos();
        if steps > Self::MAX_STEPS as u128 { Err(QuotaError::TooManySteps { steps }) } else { Ok(()) }
    }
}
