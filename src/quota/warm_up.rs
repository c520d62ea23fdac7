//! The warm-up: [`Quota::warm_up`].

use core::time::Duration;

use super::value::{Kind, Quota, ceil_div, duration_of};

impl Quota {
    /// A rate that a cold limiter rises to: `rate` permits every `per` once it is warm, a third of
    /// that at first, and evenly more over `warm_up`.
    ///
    /// It is for what is slow after a pause: a cache that fills, a pool that connects, a service
    /// that starts. A limiter is cold when it is new, and once it has been idle for as long as
    /// `warm_up`. A shorter pause makes it colder in proportion.
    ///
    /// A request is admitted if the limiter is free. It then takes the limiter for the time that its
    /// permits take, one after the other: `per / rate` for each if the limiter is warm, up to three
    /// times as long if it is cold. So the next request waits for the permits of this one.
    ///
    /// - `limit()`: the most permits of a request. A request of the limit is admitted at once, and
    ///   takes the limiter for that long.
    /// - `window()`: the time after which any key is cold again, if it makes no other request.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{DirectLimiter, MockClock, Quota};
    ///
    /// // Two a second, four seconds after a cold start.
    /// const START: Quota = Quota::warm_up(1, 2, Duration::from_secs(1), Duration::from_secs(4));
    ///
    /// let clock = MockClock::new();
    /// let limiter = DirectLimiter::with_clock(START, clock.clone())?;
    /// let mut waits = Vec::new();
    /// for _ in 0..6 {
    ///     assert!(limiter.try_acquire().is_admitted());
    ///     let wait = limiter.peek().retry_after().unwrap_or_default();
    ///     waits.push(wait.as_millis());
    ///     clock.advance(wait);
    /// }
    /// assert_eq!(waits, [1375, 1125, 875, 625, 500, 500]);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    ///
    /// Source: Guava's `RateLimiter.create(permitsPerSecond, warmupPeriod, unit)`
    /// (`SmoothRateLimiter.SmoothWarmingUp`), with its cold factor of 3; Sentinel's
    /// `WarmUpController` stores permits by the same formula. Here the arithmetic is in integers,
    /// and a request is denied where Guava's `acquire` waits.
    #[must_use]
    pub const fn warm_up(limit: u32, rate: u32, per: Duration, warm_up: Duration) -> Self {
        let warm = ceil_div(limit as u128 * per.as_nanos(), rate as u128);
        // The permits of a cold limiter take half the warm-up longer.
        let longest = warm.saturating_add(warm_up.as_nanos().div_ceil(2));
        let window = duration_of(longest.saturating_add(warm_up.as_nanos()));
        Self::of(Kind::WarmUp { rate, per, warm_up }, limit, window)
    }
}
