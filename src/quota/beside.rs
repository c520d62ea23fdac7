//! The constructors of all quotas but the sliding window log and the quantised log: buckets, the
//! leaky queue, the fixed window and the sliding window counter.

use core::time::Duration;

use super::value::{Kind, Quota, ceil_div, duration_of};

impl Quota {
    /// The largest capacity, refill and leak of a bucket or queue, and the largest limit of a fixed
    /// window or a quantised log: 1,073,741,824 permits (2^30).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// let bytes = Quota::token_bucket(Quota::MAX_CAPACITY, 1 << 20, Duration::from_secs(1));
    /// assert!(bytes.validate().is_ok());
    /// ```
    pub const MAX_CAPACITY: u32 = super::bounds::MAX_CAPACITY;

    /// The largest limit of a sliding window counter: 65,535 permits per window.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// let (most, minute) = (Quota::MAX_COUNTER_LIMIT, Duration::from_secs(60));
    /// assert!(Quota::sliding_counter(most, minute).validate().is_ok());
    /// assert!(Quota::sliding_counter(most + 1, minute).validate().is_err());
    /// ```
    pub const MAX_COUNTER_LIMIT: u32 = (1 << 16) - 1;

    /// A token bucket: it holds up to `capacity` permits and regains `refill` permits every `per`,
    /// evenly.
    ///
    /// A request of cost n is admitted if and only if the bucket holds n whole permits. Fractions
    /// of a permit are kept exactly. A new key's bucket is full, unless
    /// [`starting_with`](Self::starting_with) sets another content.
    ///
    /// - `limit()`: the capacity. No request can be granted more. An interval of length w can hold
    ///   up to `capacity + refill * w / per` permits.
    /// - `window()`: the time in which an empty bucket fills, rounded up to a nanosecond.
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

    /// This token bucket, with `permits` in a new key's bucket in place of its capacity.
    ///
    /// The limiter never drops such a bucket to make room for another key: the key would return to
    /// fewer permits than it had.
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

    /// This sliding window log, with denied requests counted as well as admitted ones.
    ///
    /// A request is admitted if and only if it and all requests of the last window, admitted or
    /// denied, ask for at most `limit` permits together. So a client that keeps sending faster than
    /// the limit is denied until it slows down.
    ///
    /// The wait of a denial holds if the key sends no other request until then. Each denial copies
    /// the key's live stamps. Without this option a denial writes nothing. If one of several quotas
    /// on a key counts denied requests, all of them do.
    ///
    /// - A [reservation](crate::Limiter::reserve) is for now and never for later. A denied
    ///   reservation counts.
    /// - A [refund](crate::Limiter::refund) gives back granted permits. Denied requests still
    ///   count.
    /// - A key keeps only its newest requests, for up to twice the largest limit that it has had
    ///   since the last restart. Older requests can't change a decision under these limits. After a
    ///   [change](crate::Limiter::set_quotas) to a larger limit, they do not count either.
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
    /// // The window holds 2 admitted and 1 denied; the 2 are free again at 10 s.
    /// assert_eq!(limiter.try_acquire("alice").retry_after(), Some(Duration::from_secs(6)));
    /// // Now 2 were denied at 4 s, so the next is admitted at 14 s.
    /// assert_eq!(limiter.try_acquire("alice").retry_after(), Some(Duration::from_secs(10)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn counting_refused(self) -> Self {
        Self { counts_refused: true, ..self }
    }

    /// Whether denied requests count: see [`counting_refused`](Self::counting_refused).
    ///
    /// ```
    /// use tollgate::Quota;
    ///
    /// assert!(!Quota::per_minute(5).is_counting_refused());
    /// assert!(Quota::per_minute(5).counting_refused().is_counting_refused());
    /// ```
    #[must_use]
    pub const fn is_counting_refused(&self) -> bool {
        self.counts_refused
    }

    /// A leaky bucket as a meter: each permit adds a drop, and `leak` drops leak out every `per`,
    /// evenly.
    ///
    /// A request of cost n is admitted if and only if n more drops fit into the `capacity`. The
    /// free space of a leaky bucket is the content of a token bucket, so both decide alike. With an
    /// even leak this is the generic cell rate algorithm, GCRA.
    ///
    /// - `limit()`: the capacity. No request can be granted more.
    /// - `window()`: the time in which a full bucket empties, rounded up to a nanosecond.
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
    /// Source: J. S. Turner, "New directions in communications (or which way to the information
    /// age?)", IEEE Communications Magazine 24 (10), 1986; the continuous-state leaky bucket of
    /// ITU-T I.371.
    #[must_use]
    pub const fn leaky_bucket(capacity: u32, leak: u32, per: Duration) -> Self {
        let window = duration_of(ceil_div(capacity as u128 * per.as_nanos(), leak as u128));
        Self::of(Kind::LeakyBucket { leak, per }, capacity, window)
    }

    /// A leaky bucket as a queue: requests leave it in order, `leak` permits every `per`, evenly.
    ///
    /// An [admission](crate::Admission::delay) has the delay after which the caller may go on. The
    /// limiter itself never waits. A request is denied if its delay would be longer than
    /// `max_delay`. A request of cost n takes n places in the queue. Its delay is that of the first
    /// place.
    ///
    /// - `limit()`: the places of an empty queue, `max_delay * leak / per` rounded down, plus one.
    ///   No request can be granted more. As many requests of cost 1 can be admitted at the same
    ///   time.
    /// - `window()`: the longest time until the queue is empty, if no other request joins it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{DirectLimiter, MockClock, Quota};
    ///
    /// // One call every 100 ms. A call that would wait longer than half a second is denied.
    /// const CALLS: Quota = Quota::leaky_queue(10, Duration::from_secs(1), Duration::from_millis(500));
    /// assert_eq!(CALLS.limit(), 6);
    /// assert_eq!(CALLS.window(), Duration::from_millis(1100));
    ///
    /// let limiter = DirectLimiter::with_clock(CALLS, MockClock::new())?;
    /// assert_eq!(limiter.try_acquire().into_result()?.delay(), Duration::ZERO);
    /// assert_eq!(limiter.try_acquire().into_result()?.delay(), Duration::from_millis(100));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Source: the leaky bucket as a first-come-first-served queue with an even outflow, in A. S.
    /// Tanenbaum, "Computer Networks", chapter on the network layer, section on traffic shaping.
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

    /// A fixed window: `limit` permits from a key's first request until `window` later.
    ///
    /// The first request after that begins the next window. A key can be granted `2 * limit`
    /// permits within an instant: `limit` at the end of a window, and `limit` at the start of the
    /// next. [`Quota::new`] never grants more than `limit` in any window.
    ///
    /// - `limit()`: the permits of a window. No request can be granted more.
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
    /// Source: common practice; for instance "Pattern: Rate limiter 2" in the documentation of
    /// Redis `INCR`.
    #[must_use]
    pub const fn fixed_window(limit: u32, window: Duration) -> Self {
        Self::of(Kind::FixedWindow, limit, window)
    }

    /// This fixed window or sliding window counter, with windows that begin at the same times for
    /// all keys.
    ///
    /// A window begins at `phase` after the origin of the clock, and at each whole number of
    /// windows before or after that. Without a phase, a fixed window begins with a key's first
    /// request, and a window of a sliding window counter begins at the origin.
    ///
    /// The origin of the default clock is the time at which it was made. If windows are to begin at
    /// the same times after a restart (`Snapshot`), take the phase from the wall clock at each
    /// start.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Quota, QuotaError};
    ///
    /// // The clock started 20 s past a full minute, so the next full minute is at 40 s.
    /// let minutes = Quota::fixed_window(10, Duration::from_secs(60)).aligned(Duration::from_secs(40));
    /// assert!(minutes.validate().is_ok());
    /// let log = Quota::per_minute(5).aligned(Duration::ZERO);
    /// assert_eq!(log.validate(), Err(QuotaError::PhaseNeedsFixedWindow));
    /// ```
    #[must_use]
    pub const fn aligned(self, phase: Duration) -> Self {
        Self { phase: Some(phase), ..self }
    }

    /// A sliding window counter: it approximates a moving window by the counts of two fixed
    /// windows.
    ///
    /// A request of cost n that comes `elapsed` after the start of the current window is admitted
    /// if and only if `current + previous * (window - elapsed) / window + n <= limit`, in exact
    /// arithmetic. The rule assumes that the permits of the previous window are evenly spread. If
    /// they are not, a moving window may hold more than `limit`. A key takes its cell, where the
    /// log takes 8 bytes more per permit.
    ///
    /// - `limit()`: the given limit, at most [`MAX_COUNTER_LIMIT`](Self::MAX_COUNTER_LIMIT). No
    ///   request can be granted more.
    /// - `window()`: twice the given window, because a permit counts until the end of the next
    ///   window.
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
    /// domains](https://blog.cloudflare.com/counting-things-a-lot-of-different-things/), Cloudflare
    /// 2017.
    #[must_use]
    pub const fn sliding_counter(limit: u32, window: Duration) -> Self {
        Self::of(Kind::SlidingCounter { window }, limit, window.saturating_mul(2))
    }
}
