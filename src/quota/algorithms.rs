//! The constructors of quotas: one for each algorithm, and its bounds.

use core::time::Duration;

use super::calendar::{Calendar, Zone};
use super::kind::{Code, Kind};
use super::value::Quota;
use crate::state::algorithms::of_quotas;

impl Quota {
    /// The largest limit of a sliding window log: 1,048,576 permits per window (2^20).
    ///
    /// ```
    /// use tollgate::{Quota, QuotaError};
    ///
    /// assert!(Quota::per_day(Quota::MAX_LIMIT).validate().is_ok());
    /// let limit = Quota::MAX_LIMIT + 1;
    /// assert_eq!(Quota::per_day(limit).validate(), Err(QuotaError::LimitTooLarge { limit }));
    /// ```
    pub const MAX_LIMIT: u32 = 1 << 20;

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
    pub const MAX_CAPACITY: u32 = 1 << 30;

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
    pub const MAX_STEPS: u32 = 1 << 14;

    /// The longest window: 2^60 - 1 nanoseconds, a little over 36 years.
    ///
    /// ```
    /// use tollgate::Quota;
    ///
    /// assert_eq!(Quota::MAX_WINDOW.as_secs() / (365 * 24 * 60 * 60), 36);
    /// assert!(Quota::new(1, Quota::MAX_WINDOW).validate().is_ok());
    /// ```
    pub const MAX_WINDOW: Duration = Duration::from_nanos((1 << 60) - 1);

    /// At most `limit` permits in any interval as long as `window`, as a sliding window log.
    ///
    /// A permit that is granted at `s` counts until just before `s + window`. At exactly
    /// `s + window` it is free again.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, MockClock, Quota};
    ///
    /// let clock = MockClock::new();
    /// let quota = Quota::new(2, Duration::from_secs(10));
    /// let limiter = Limiter::<String>::builder(quota).clock(clock.clone()).build()?;
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// clock.advance(Duration::from_secs(6));
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// // The first permit is free again 10 seconds after it was granted.
    /// assert_eq!(limiter.try_acquire("alice").retry_after(), Some(Duration::from_secs(4)));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub const fn new(limit: u32, window: Duration) -> Self {
        Self::of(Kind::Log, Code(&of_quotas::LOG), limit, window)
    }

    /// At most `limit` permits in any second.
    #[must_use]
    pub const fn per_second(limit: u32) -> Self {
        Self::new(limit, Duration::from_secs(1))
    }

    /// At most `limit` permits in any 60 seconds, not per calendar minute.
    #[must_use]
    pub const fn per_minute(limit: u32) -> Self {
        Self::new(limit, Duration::from_secs(60))
    }

    /// At most `limit` permits in any hour.
    #[must_use]
    pub const fn per_hour(limit: u32) -> Self {
        Self::new(limit, Duration::from_secs(60 * 60))
    }

    /// At most `limit` permits in any 24 hours.
    #[must_use]
    pub const fn per_day(limit: u32) -> Self {
        Self::new(limit, Duration::from_secs(24 * 60 * 60))
    }

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
        Self::of(Kind::TokenBucket { refill, per }, Code(&of_quotas::BUCKET), capacity, time_of(capacity, refill, per))
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
        Self::of(Kind::LeakyBucket { leak, per }, Code(&of_quotas::BUCKET), capacity, time_of(capacity, leak, per))
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
        let window = max_delay.saturating_add(time_of(limit, leak, per));
        Self::of(Kind::LeakyQueue { leak, per, max_delay }, Code(&of_quotas::QUEUE), limit, window)
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
        Self::of(Kind::FixedWindow, Code(&of_quotas::WINDOW), limit, window)
    }

    /// A fixed window of the calendar: `limit` permits in each day, week or month of a time zone.
    ///
    /// Windows begin at the same times for all keys: at midnight of the [zone](Zone)'s clocks, on
    /// Mondays for weeks, and on the first day for months. That is exact when clocks are set to daylight
    /// saving time and back, so a day may have 23 or 25 hours. As with any
    /// [fixed window](Self::fixed_window), a key can be granted `2 * limit` permits within an instant.
    ///
    /// The wall clock is read once, when the limiter's clock is made
    /// ([`Clock::since_1970`](crate::Clock::since_1970)). If it is set later, windows stay where they
    /// are, and after weeks the limiter's clock may be seconds off: see
    /// [`InstantClock`](crate::InstantClock). A clock that knows no wall clock, such as a
    /// [`MockClock`](crate::MockClock), counts from the start of 1970 (UTC).
    ///
    /// - `limit()`: the permits of a window. No request can be granted more.
    /// - `window()`: the length of the longest window.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Calendar, Limiter, MockClock, Quota, Zone};
    ///
    /// const TOKENS: Quota = Quota::calendar(1000, Calendar::Month, Zone::UTC);
    /// let clock = MockClock::new();
    /// let limiter = Limiter::<str>::builder(TOKENS).clock(clock.clone()).build()?;
    /// let day = Duration::from_secs(86_400);
    /// // The 28 January 1970.
    /// clock.advance(day * 27);
    /// assert!(limiter.try_acquire_n("alice", 1000)?.is_admitted());
    /// assert_eq!(limiter.try_acquire("alice").retry_after(), Some(day * 4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// In another time zone, with the feature `calendar`:
    ///
    /// ```
    /// use tollgate::{Calendar, Quota, Zone};
    ///
    /// # if cfg!(feature = "calendar") {
    /// let quota = Quota::calendar(1000, Calendar::Day, Zone::named("Europe/Berlin")?);
    /// assert_eq!(quota.to_string(), "fixed window, 1000 per day in Europe/Berlin");
    /// assert_eq!(quota.window().as_secs(), 25 * 3600);
    /// # }
    /// # Ok::<(), tollgate::ZoneError>(())
    /// ```
    #[must_use]
    pub const fn calendar(limit: u32, per: Calendar, zone: Zone) -> Self {
        Self::of(Kind::Calendar { per, zone }, Code(&of_quotas::CALENDAR), limit, zone.longest(per))
    }

    /// A sliding window counter: it approximates a moving window by the counts of two fixed
    /// windows.
    ///
    /// A request of cost n that comes `elapsed` after the start of the current window is admitted
    /// if and only if `current + previous * (window - elapsed) / window + n <= limit`, in exact
    /// arithmetic. A key takes its cell, where the log takes 8 bytes more per permit.
    ///
    /// **For limits of 10 and more.** The rule assumes that the permits of the previous window are
    /// evenly spread, and it counts whole ones. So it errs, the more the smaller the limit N:
    ///
    /// - If a client sends N requests a window at even intervals, one of them is denied. N - 1 of N
    ///   are admitted: half for a limit of 2, 80 % for 5, 90 % for 10, 99 % for 100. For a limit of
    ///   1, too, it is half. One that sends N - 1 so is never denied.
    /// - If the permits came late in the previous window, a moving window may hold more than N
    ///   permits: up to 2N - 1.
    ///
    /// For smaller limits take [`Quota::new`]. It is exact, and its stamps take little memory.
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
        Self::of(Kind::SlidingCounter { window }, Code(&of_quotas::COUNTER), limit, window.saturating_mul(2))
    }

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
        Self::of(Kind::QuantisedLog { window, resolution }, Code(&of_quotas::QUANTISED_LOG), limit, longest)
    }

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
        // The permits of a cold limiter take half the warm-up longer.
        let longest = time_of(limit, rate, per).saturating_add(time_of(1, 2, warm_up));
        let window = longest.saturating_add(warm_up);
        Self::of(Kind::WarmUp { rate, per, warm_up }, Code(&of_quotas::WARM_UP), limit, window)
    }

    /// A concurrency limit: at most `limit` requests of a key are in flight at once.
    ///
    /// A request is in flight from [`try_enter`](crate::Limiter::try_enter) until its
    /// [guard](crate::InFlight) is dropped, or while a [reservation](crate::Limiter::reserve) lasts.
    /// It counts once, whatever its cost. A request without either, such as one by
    /// [`try_acquire`](crate::Limiter::try_acquire), is over as soon as it is decided: it is
    /// admitted if one more request may be in flight, and leaves nothing behind.
    ///
    /// To limit both a rate and the requests in flight, give each a dimension of a
    /// [`JointLimiter`](crate::JointLimiter): a request gets both or neither.
    ///
    /// - `limit()`: the given limit, at most [`MAX_CAPACITY`](Self::MAX_CAPACITY).
    /// - `window()`: zero. A denial has no wait, because a request may end at any time
    ///   ([`DenialReason::InFlight`](crate::DenialReason::InFlight)).
    /// - A snapshot has no requests in flight.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::concurrent(2))?;
    /// let first = limiter.try_enter("alice")?;
    /// let second = limiter.try_enter("alice")?;
    /// assert!(limiter.try_enter("alice").is_err());
    /// drop(first);
    /// assert!(limiter.try_enter("alice").is_ok());
    /// # drop(second);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Source: E. W. Dijkstra, [Over de sequentialiteit van
    /// procesbeschrijvingen](https://www.cs.utexas.edu/~EWD/translations/EWD35-English.html), EWD 35,
    /// 1962: the counting semaphore.
    #[must_use]
    pub const fn concurrent(limit: u32) -> Self {
        Self::of(Kind::Concurrency { max_hold: None }, Code(&of_quotas::CONCURRENCY), limit, Duration::ZERO)
    }
}

/// The time in which so many permits flow at a rate of `rate` every `per`, rounded up to a
/// nanosecond; the longest duration if it is longer, or if nothing flows.
const fn time_of(permits: u32, rate: u32, per: Duration) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    let nanos = match rate {
        0 => u128::MAX,
        _ => (permits as u128 * per.as_nanos()).div_ceil(rate as u128),
    };
    if nanos > Duration::MAX.as_nanos() {
        return Duration::MAX;
    }
    #[expect(clippy::cast_possible_truncation, reason = "no more than that of the longest duration")]
    Duration::new((nanos / SECOND) as u64, (nanos % SECOND) as u32)
}
