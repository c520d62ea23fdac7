//! The quotas beside the sliding window log: buckets, queue, windows that stand still, and the counter of two windows.

use core::time::Duration;

use super::value::{Kind, Quota, ceil_div, duration_of};

impl Quota {
    /// The largest capacity of a bucket, limit of a fixed window, refill or leak: 1,073,741,824 permits (2^30).
    pub const MAX_CAPACITY: u32 = super::bounds::MAX_CAPACITY;

    /// The largest limit of a sliding window counter: 65,535 permits a window (two such counts share a word).
    pub const MAX_COUNTER_LIMIT: u32 = (1 << 16) - 1;

    /// A token bucket: holds up to `capacity` permits, and `refill` come back every `per`, evenly and not all at once.
    ///
    /// A request of cost n is admitted if and only if the bucket holds n whole permits; fractions are kept, exactly, and never
    /// rounded away. A bucket starts full unless [`starting_with`](Self::starting_with) says otherwise.
    ///
    /// - `limit()`: the capacity, which is the most that can be had at once. A window of length w can see up to
    ///   `capacity + refill * w / per` permits.
    /// - `window()`: how long an empty bucket takes to be full, rounded up to a nanosecond.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// // Bursts of up to 20, and 5 a second in the long run.
    /// const API: Quota = Quota::token_bucket(20, 5, Duration::from_secs(1));
    /// assert_eq!(API.limit(), 20);
    /// assert_eq!(API.window(), Duration::from_secs(4));
    /// assert!(API.validate().is_ok());
    /// ```
    ///
    /// Source: the token bucket of RFC 2215 (`TOKEN_BUCKET_TSPEC`), in permits instead of bytes.
    #[must_use]
    pub const fn token_bucket(capacity: u32, refill: u32, per: Duration) -> Self {
        let window = duration_of(ceil_div(capacity as u128 * per.as_nanos(), refill as u128));
        Self::of(Kind::TokenBucket { refill, per }, capacity, window)
    }

    /// This token bucket, but a key that was never seen finds `permits` in it instead of a full one.
    ///
    /// Such a bucket is never forgotten to make room for another key: who came back would find fewer permits than it left.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Quota, QuotaError};
    ///
    /// // A new customer earns every permit.
    /// const EARNED: Quota = Quota::token_bucket(20, 5, Duration::from_secs(1)).starting_with(0);
    /// assert!(EARNED.validate().is_ok());
    /// assert_eq!(Quota::per_minute(5).starting_with(1).validate(), Err(QuotaError::StartNeedsTokenBucket));
    /// ```
    #[must_use]
    pub const fn starting_with(self, permits: u32) -> Self {
        Self { start: Some(permits), ..self }
    }

    /// This sliding window log, in which requests that are refused count as well: one is admitted if, with it, there have been no more than
    /// the limit within the window, whatever became of them. Who does not slow down is never admitted again.
    ///
    /// A refused request takes the permits that it asked for off the time when the next can pass; the denial tells when that is. It costs a
    /// copy of the key's live stamps, where other denials write nothing. If one of several quotas of a key counts them, all do.
    ///
    /// - A [reservation](crate::Limiter::reserve) is for now: nothing is reserved ahead. One that is refused counts too.
    /// - A [refund](crate::Limiter::refund) gives back what was granted. What was refused still counts.
    /// - A key remembers its newest requests: twice as many permits as the largest limit that it has had, and at most
    ///   [`MAX_LIMIT`](Self::MAX_LIMIT). Under none of these limits more would count. Under a [larger
    ///   one](crate::Limiter::set_quotas) refused requests from before that are not remembered do not count.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, MockClock, Quota};
    ///
    /// let quota = Quota::new(2, Duration::from_secs(10)).counting_refused();
    /// let clock = MockClock::new();
    /// let limiter = Limiter::<String>::builder(quota).clock(clock.clone()).build()?;
    /// assert!(limiter.try_acquire_n("alice", 2)?.is_admitted());
    /// clock.advance(Duration::from_secs(4));
    /// assert_eq!(limiter.try_acquire("alice").retry_after(), Some(Duration::from_secs(6)));
    /// assert_eq!(limiter.try_acquire("alice").retry_after(), Some(Duration::from_secs(10)), "two at four seconds");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn counting_refused(self) -> Self {
        Self { counts_refused: true, ..self }
    }

    /// Whether requests that are refused count as well.
    #[must_use]
    pub const fn is_counting_refused(&self) -> bool {
        self.counts_refused
    }

    /// A leaky bucket, used as a meter: each permit is a drop, and `leak` drops flow out every `per`, evenly.
    ///
    /// A request of cost n is admitted if and only if n drops fit below `capacity`. That is the token bucket seen from the other
    /// side (permits that are left are the space that is left), and with an even leak it is the generic cell rate algorithm, GCRA.
    ///
    /// - `limit()`: the capacity, which is the most that can be had at once.
    /// - `window()`: how long a full bucket takes to run dry, rounded up to a nanosecond.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// const UPLOADS: Quota = Quota::leaky_bucket(3, 1, Duration::from_secs(10));
    /// assert_eq!(UPLOADS.limit(), 3);
    /// assert_eq!(UPLOADS.window(), Duration::from_secs(30));
    /// ```
    ///
    /// Source: J. S. Turner, "New directions in communications (or which way to the information age?)", IEEE Communications
    /// Magazine 24 (10), 1986; as the continuous-state leaky bucket in ITU-T I.371.
    #[must_use]
    pub const fn leaky_bucket(capacity: u32, leak: u32, per: Duration) -> Self {
        let window = duration_of(ceil_div(capacity as u128 * per.as_nanos(), leak as u128));
        Self::of(Kind::LeakyBucket { leak, per }, capacity, window)
    }

    /// A leaky bucket, used as a queue: requests leave one behind the other, `leak` places every `per`, evenly. Each is told how
    /// long to wait for its place, and is denied if that would be longer than `max_delay`.
    ///
    /// A request of cost n takes n places, and its delay is that of the first one. The limiter itself never waits.
    ///
    /// - `limit()`: the places within the maximum delay, `max_delay * leak / per` rounded down and one more. It is the most that
    ///   one request may ask for, and the number of requests of cost 1 that can be admitted at once.
    /// - `window()`: the longest that it can take until the queue is empty, if nothing else joins it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// // One every 100 ms; whoever would have to wait longer than half a second is turned away.
    /// const CALLS: Quota = Quota::leaky_queue(10, Duration::from_secs(1), Duration::from_millis(500));
    /// assert_eq!(CALLS.limit(), 6);
    /// assert_eq!(CALLS.window(), Duration::from_millis(1100));
    /// ```
    ///
    /// Source: the other reading of the leaky bucket, as a first-come-first-served queue with an even outflow, in A. S. Tanenbaum,
    /// "Computer Networks", in the chapter on the network layer under traffic shaping.
    #[must_use]
    pub const fn leaky_queue(leak: u32, per: Duration, max_delay: Duration) -> Self {
        let waiting = match (max_delay.as_nanos().saturating_mul(leak as u128)).checked_div(per.as_nanos()) {
            Some(places) if places < u32::MAX as u128 => places,
            _ => u32::MAX as u128 - 1,
        };
        #[expect(clippy::cast_possible_truncation, reason = "below 2^32 - 1, as was just seen to")]
        let limit = waiting as u32 + 1;
        let until_empty = ceil_div(limit as u128 * per.as_nanos(), leak as u128);
        let window = duration_of(max_delay.as_nanos().saturating_add(until_empty));
        Self::of(Kind::LeakyQueue { leak, per, max_delay }, limit, window)
    }

    /// A fixed window: `limit` permits from the first request until `window` later; the next request opens the next window.
    ///
    /// Cheap and easily explained, but two windows' permits can fall close together: up to `2 * limit` in an interval that is
    /// hardly longer than nothing. [`Quota::new`] has no such seam.
    ///
    /// - `limit()`: the permits of a window, which is the most that can be had at once.
    /// - `window()`: the length of the window.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// const MAILS: Quota = Quota::fixed_window(50, Duration::from_secs(3600));
    /// assert_eq!((MAILS.limit(), MAILS.window()), (50, Duration::from_secs(3600)));
    /// ```
    ///
    /// Source: common practice; for instance "Pattern: Rate limiter 2" in the documentation of Redis' `INCR`.
    #[must_use]
    pub const fn fixed_window(limit: u32, window: Duration) -> Self {
        Self::of(Kind::FixedWindow, limit, window)
    }

    /// This fixed window or sliding window counter, with windows that begin `phase` after the clock's origin, and one window's
    /// length after that, and so on (and before it as well): only what is left of `phase` after whole windows counts.
    ///
    /// A fixed window without a phase begins with a key's first request; a sliding window counter without one has phase zero.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Quota, QuotaError};
    ///
    /// // The clock was started 20 seconds past the full minute: windows that change at full minutes begin 40 seconds later.
    /// let minutes = Quota::fixed_window(10, Duration::from_secs(60)).aligned(Duration::from_secs(40));
    /// assert!(minutes.validate().is_ok());
    /// let log = Quota::per_minute(5).aligned(Duration::ZERO);
    /// assert_eq!(log.validate(), Err(QuotaError::PhaseNeedsFixedWindow));
    /// ```
    #[must_use]
    pub const fn aligned(self, phase: Duration) -> Self {
        Self { phase: Some(phase), ..self }
    }

    /// A sliding window counter: permits are counted in windows that stand still, and the count of the window before the
    /// current one is weighed by the part of it that a window ending now would still cover.
    ///
    /// `elapsed` into the current window, a request of cost n is admitted if and only if
    /// `current + previous * (window - elapsed) / window + n <= limit`, in exact arithmetic. It needs two words where the log needs
    /// one for each permit, and takes the permits of the previous window as evenly spread, which they need not be.
    ///
    /// - `limit()`: the most that can be had at once. At most [`MAX_COUNTER_LIMIT`](Self::MAX_COUNTER_LIMIT).
    /// - `window()`: twice the window that is given here, because a permit can count until the end of the next one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// const SITE: Quota = Quota::sliding_counter(50, Duration::from_secs(60));
    /// assert_eq!((SITE.limit(), SITE.window()), (50, Duration::from_secs(120)));
    /// ```
    ///
    /// Source: J. Desgats, [How we built rate limiting capable of scaling to millions of
    /// domains](https://blog.cloudflare.com/counting-things-a-lot-of-different-things/), Cloudflare 2017.
    #[must_use]
    pub const fn sliding_counter(limit: u32, window: Duration) -> Self {
        Self::of(Kind::SlidingCounter { window }, limit, window.saturating_mul(2))
    }
}
