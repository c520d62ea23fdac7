//! [`Quota`]: a limit, its algorithm with that one's numbers, and its options.

use core::fmt;
use core::time::Duration;

use tollgate_duration::format_duration as text;

use super::calendar::{Calendar, Zone};
use super::kind::{Algorithm, Code, Kind};
use crate::clock::nanos;

/// The number of permits that a key may be granted, and the algorithm that counts them.
///
/// [`Quota::new`] and its short forms ([`per_second`](Self::per_second) and so on) are sliding
/// window logs. They count exactly: no half-open interval as long as the window holds more than
/// `limit` permits. The other constructors choose other [algorithms](Algorithm), and define
/// [`limit`](Self::limit) and [`window`](Self::window) for them.
///
/// A quota is a plain value and can be a `const`. Building a limiter checks it: an invalid quota is
/// a typed error ([`QuotaError`](crate::QuotaError)) and never a panic. To check it earlier, call
/// [`validate`](Self::validate).
///
/// ```
/// use std::time::Duration;
/// use tollgate::Quota;
///
/// const LOGIN: Quota = Quota::new(5, Duration::from_secs(10));
/// assert_eq!((LOGIN.limit(), LOGIN.window()), (5, Duration::from_secs(10)));
///
/// // Short forms for a second, a minute, an hour and a day.
/// let short = [Quota::per_second(9), Quota::per_minute(9), Quota::per_hour(9), Quota::per_day(9)];
/// assert_eq!(short.map(|quota| quota.window().as_secs()), [1, 60, 3600, 86_400]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    pub(super) limit: u32,
    pub(super) window: Duration,
    pub(super) kind: Kind,
    pub(crate) code: Code,
    /// The permits in a new key's token bucket; `None` if it starts full.
    pub(super) start: Option<u32>,
    /// The start of one of the aligned windows, after the start of 1970.
    pub(super) phase: Option<Duration>,
    /// Whether a longest time to hold requests was given to another algorithm, which has none.
    pub(super) has_foreign_hold: bool,
    /// Whether denied requests count.
    pub(super) counts_refused: bool,
    pub(super) name: Option<Name>,
}

impl Quota {
    pub(super) const fn of(kind: Kind, code: Code, limit: u32, window: Duration) -> Self {
        Self {
            limit,
            window,
            kind,
            code,
            start: None,
            phase: None,
            has_foreign_hold: false,
            counts_refused: false,
            name: None,
        }
    }

    /// The most permits that a request can be granted.
    ///
    /// For a bucket this is the capacity, for a [queue](Self::leaky_queue) the number of places, and
    /// for any other quota the permits per window.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// assert_eq!(Quota::per_minute(100).limit(), 100);
    /// assert_eq!(Quota::token_bucket(20, 5, Duration::from_secs(1)).limit(), 20);
    /// ```
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// The longest time until all permits of a key are free again, if no more are granted.
    ///
    /// For a sliding window log and a fixed window this is the window that was given. For windows of
    /// the calendar it is the longest: 31 days and an hour for months of a zone where clocks are set
    /// back. A [concurrency limit](Self::concurrent) has none: it is zero.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// assert_eq!(Quota::per_minute(100).window(), Duration::from_secs(60));
    /// // An empty bucket of 20 is full after 4 seconds.
    /// let bucket = Quota::token_bucket(20, 5, Duration::from_secs(1));
    /// assert_eq!(bucket.window(), Duration::from_secs(4));
    /// ```
    #[must_use]
    pub const fn window(&self) -> Duration {
        self.window
    }

    /// The algorithm that counts the permits.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Algorithm, Quota};
    ///
    /// let mails = Quota::fixed_window(50, Duration::from_secs(3600));
    /// assert_eq!(mails.algorithm(), Algorithm::FixedWindow);
    /// ```
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        match self.kind {
            Kind::Log => Algorithm::SlidingWindowLog,
            Kind::TokenBucket { .. } => Algorithm::TokenBucket,
            Kind::LeakyBucket { .. } => Algorithm::LeakyBucket,
            Kind::LeakyQueue { .. } => Algorithm::LeakyQueue,
            Kind::FixedWindow | Kind::Calendar { .. } => Algorithm::FixedWindow,
            Kind::SlidingCounter { .. } => Algorithm::SlidingCounter,
            Kind::QuantisedLog { .. } => Algorithm::QuantisedLog,
            Kind::WarmUp { .. } => Algorithm::WarmUp,
            Kind::Concurrency { .. } => Algorithm::Concurrency,
        }
    }

    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    /// The permits that flow into a bucket, or out of it, in each period: the refill or the leak,
    /// and `per`. `None` for logs, windows and the warm-up.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// let second = Duration::from_secs(1);
    /// assert_eq!(Quota::token_bucket(20, 5, second).rate(), Some((5, second)));
    /// assert_eq!(Quota::per_second(5).rate(), None);
    /// ```
    #[must_use]
    pub const fn rate(&self) -> Option<(u32, Duration)> {
        match self.kind {
            Kind::TokenBucket { refill: permits, per }
            | Kind::LeakyBucket { leak: permits, per }
            | Kind::LeakyQueue { leak: permits, per, .. } => Some((permits, per)),
            _ => None,
        }
    }

    /// The longest delay of a request in a [leaky queue](Self::leaky_queue); `None` for any other
    /// quota.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// let (second, delay) = (Duration::from_secs(1), Duration::from_millis(500));
    /// assert_eq!(Quota::leaky_queue(10, second, delay).max_delay(), Some(delay));
    /// ```
    #[must_use]
    pub const fn max_delay(&self) -> Option<Duration> {
        if let Kind::LeakyQueue { max_delay, .. } = self.kind { Some(max_delay) } else { None }
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
        if let Kind::QuantisedLog { resolution, .. } = self.kind { Some(resolution) } else { None }
    }

    /// The windows of the [calendar](Self::calendar) and their time zone; `None` for any other quota.
    ///
    /// ```
    /// use tollgate::{Calendar, Quota, Zone};
    ///
    /// let quota = Quota::calendar(1000, Calendar::Month, Zone::UTC);
    /// assert_eq!(quota.calendar_window(), Some((Calendar::Month, Zone::UTC)));
    /// assert_eq!(Quota::per_day(1000).calendar_window(), None);
    /// ```
    #[must_use]
    pub const fn calendar_window(&self) -> Option<(Calendar, Zone)> {
        if let Kind::Calendar { per, zone } = self.kind { Some((per, zone)) } else { None }
    }

    /// This concurrency limit, where a store or a server counts a request for at most so long, in
    /// case that its end is never told: the process that held it was killed, or lost its connection.
    /// A request that takes longer no longer counts.
    ///
    /// In a process nothing is lost: a request counts until its guard is dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Quota, QuotaError};
    ///
    /// let streams = Quota::concurrent(4).held_at_most(Duration::from_secs(600));
    /// assert_eq!(streams.max_hold(), Some(Duration::from_secs(600)));
    /// let log = Quota::per_minute(5).held_at_most(Duration::from_secs(600));
    /// assert_eq!(log.validate(), Err(QuotaError::HoldNeedsConcurrency));
    /// ```
    #[must_use]
    pub const fn held_at_most(self, max_hold: Duration) -> Self {
        match self.kind {
            Kind::Concurrency { .. } => Self { kind: Kind::Concurrency { max_hold: Some(max_hold) }, ..self },
            _ => Self { has_foreign_hold: true, ..self },
        }
    }

    /// The duration given to [`held_at_most`](Self::held_at_most), or a minute; `None` for any quota
    /// other than a [concurrency limit](Self::concurrent).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// assert_eq!(Quota::concurrent(4).max_hold(), Some(Duration::from_secs(60)));
    /// assert_eq!(Quota::per_minute(5).max_hold(), None);
    /// ```
    #[must_use]
    pub const fn max_hold(&self) -> Option<Duration> {
        match self.kind {
            Kind::Concurrency { max_hold: None } => Some(Duration::from_secs(60)),
            Kind::Concurrency { max_hold } => max_hold,
            _ => None,
        }
    }

    /// The longest name: 32 bytes.
    ///
    /// ```
    /// use tollgate::{Quota, QuotaError};
    ///
    /// let quota = Quota::per_second(10).named(&"n".repeat(Quota::MAX_NAME + 1));
    /// assert_eq!(quota.validate(), Err(QuotaError::NameTooLong { length: 33 }));
    /// ```
    pub const MAX_NAME: usize = 32;

    /// This quota, with a name for messages, header fields and policy files. A name changes no
    /// decision. A snapshot treats quotas that differ only in their names as the same.
    ///
    /// A name has 1 to [`MAX_NAME`](Self::MAX_NAME) characters of printable ASCII, without quotes
    /// and backslashes. Any other name is an error when the quota is [validated](Self::validate).
    ///
    /// ```
    /// use tollgate::{Limiter, Quota, QuotaError};
    ///
    /// const SECOND: Quota = Quota::per_second(10).named("user-1s");
    /// const MINUTE: Quota = Quota::per_minute(100).named("user-1m");
    /// let limiter = Limiter::<str>::builder(SECOND).and(MINUTE).build()?;
    /// let (status, quotas) = (limiter.try_acquire_status("alice"), limiter.quotas());
    /// let names = status.quotas().map(|quota| quotas[quota.quota()].name());
    /// assert_eq!(names.collect::<Vec<_>>(), [Some("user-1s"), Some("user-1m")]);
    ///
    /// let error = Quota::per_second(10).named("a \"name\"").validate();
    /// assert_eq!(error, Err(QuotaError::NameCharacter { at: 2 }));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub const fn named(self, name: &str) -> Self {
        Self { name: Some(Name::of(name)), ..self }
    }

    /// The name of the quota; `None` if it has no name, or one longer than
    /// [`MAX_NAME`](Self::MAX_NAME).
    ///
    /// ```
    /// use tollgate::Quota;
    ///
    /// assert_eq!(Quota::per_second(10).named("api").name(), Some("api"));
    /// assert_eq!(Quota::per_second(10).name(), None);
    /// ```
    #[must_use]
    pub const fn name(&self) -> Option<&str> {
        if let Some(name) = &self.name { name.as_str() } else { None }
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

    /// The permits given to [`starting_with`](Self::starting_with); `None` for a bucket that starts
    /// full, and for any other quota.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// let bucket = Quota::token_bucket(20, 5, Duration::from_secs(1));
    /// assert_eq!((bucket.start(), bucket.starting_with(0).start()), (None, Some(0)));
    /// ```
    #[must_use]
    pub const fn start(&self) -> Option<u32> {
        self.start
    }

    /// This sliding window log, with denied requests counted as well as admitted ones.
    ///
    /// A request is admitted if and only if it and all requests of the last window, admitted or
    /// denied, ask for at most `limit` permits together. So a client that keeps sending faster than
    /// the limit is denied until it slows down.
    ///
    /// The wait of a denial holds if the key sends no other request until then. Each denial is added
    /// to the log, so the log takes memory for up to twice its limit. If one of several quotas on a
    /// key counts denied requests, all of them do.
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

    /// This fixed window or sliding window counter, with windows that begin at the same times for
    /// all keys.
    ///
    /// A window begins at `phase` after the start of 1970 (UTC), and at each whole number of windows
    /// before or after that. So windows begin at the same times after a restart, and in all
    /// processes. Without a phase, a fixed window begins with a key's first request, and that of a
    /// sliding window counter is zero.
    ///
    /// The wall clock is read once, when the limiter's clock is made
    /// ([`Clock::since_1970`](crate::Clock::since_1970)). If it is set later, windows stay where they
    /// are. By a clock that knows no wall clock, such as a [`MockClock`](crate::MockClock), `phase`
    /// counts from the origin of that clock.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Quota, QuotaError};
    ///
    /// // Each window begins 40 s past a full minute.
    /// let minutes = Quota::fixed_window(10, Duration::from_secs(60)).aligned(Duration::from_secs(40));
    /// assert!(minutes.validate().is_ok());
    /// let log = Quota::per_minute(5).aligned(Duration::ZERO);
    /// assert_eq!(log.validate(), Err(QuotaError::PhaseNeedsFixedWindow));
    /// ```
    #[must_use]
    pub const fn aligned(self, phase: Duration) -> Self {
        Self { phase: Some(phase), ..self }
    }

    /// The phase given to [`aligned`](Self::aligned); `None` for a quota that is not aligned.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    ///
    /// let (minute, phase) = (Duration::from_secs(60), Duration::from_secs(40));
    /// assert_eq!(Quota::fixed_window(10, minute).phase(), None);
    /// assert_eq!(Quota::fixed_window(10, minute).aligned(phase).phase(), Some(phase));
    /// ```
    #[must_use]
    pub const fn phase(&self) -> Option<Duration> {
        self.phase
    }

    /// The window of a validated quota in nanoseconds.
    pub(crate) fn window_ns(&self) -> u64 {
        nanos(self.window)
    }
}

/// Writes the numbers of the quota: `100 per 1m`. The name of the algorithm comes before them,
/// unless it is the sliding window log. The [name](Quota::named) of the quota comes first:
/// `user-1m: 100 per 1m`.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Quota;
///
/// assert_eq!(Quota::per_minute(100).to_string(), "100 per 1m");
/// let bucket = Quota::token_bucket(20, 5, Duration::from_secs(1));
/// assert_eq!(bucket.to_string(), "token bucket of 20, refilled by 5 per 1s");
/// ```
impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (algorithm, limit) = (self.algorithm(), self.limit);
        if let Some(name) = self.name() {
            write!(f, "{name}: ")?;
        }
        match self.kind {
            Kind::Log => write!(f, "{limit} per {}", text(self.window)),
            Kind::TokenBucket { refill, per } => {
                write!(f, "{algorithm} of {limit}, refilled by {refill} per {}", text(per))
            }
            Kind::LeakyBucket { leak, per } => write!(f, "{algorithm} of {limit}, leaking {leak} per {}", text(per)),
            Kind::LeakyQueue { leak, per, max_delay } => {
                write!(f, "{algorithm}, {leak} per {}, delayed by at most {}", text(per), text(max_delay))
            }
            Kind::FixedWindow => write!(f, "{algorithm}, {limit} per {}", text(self.window)),
            Kind::Calendar { per, zone } => write!(f, "{algorithm}, {limit} per {per} in {zone}"),
            Kind::SlidingCounter { window } => write!(f, "{algorithm}, {limit} per {}", text(window)),
            Kind::QuantisedLog { window, resolution } => {
                write!(f, "{algorithm}, {limit} per {} in steps of {}", text(window), text(resolution))
            }
            Kind::WarmUp { rate, per, warm_up } => {
                write!(f, "{algorithm} of {} to {rate} per {}, at most {limit} at once", text(warm_up), text(per))
            }
            Kind::Concurrency { max_hold: None } => write!(f, "{algorithm}, {limit} in flight"),
            Kind::Concurrency { max_hold: Some(max_hold) } => {
                write!(f, "{algorithm}, {limit} in flight, held for at most {}", text(max_hold))
            }
        }?;
        if let Some(start) = self.start {
            write!(f, ", starting with {start}")?;
        }
        if let Some(phase) = self.phase {
            write!(f, ", aligned to {}", text(phase))?;
        }
        if self.counts_refused {
            f.write_str(", refused requests counted")?;
        }
        Ok(())
    }
}

/// The name of a quota, kept inline so that a quota can be copied and can be a `const`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Name {
    /// The first bytes of the name.
    pub(super) bytes: [u8; Quota::MAX_NAME],
    /// The length of the given name in bytes, at most 255. It takes one byte, because quotas are
    /// copied often.
    pub(super) length: u8,
}

impl Name {
    pub(super) const fn of(name: &str) -> Self {
        let (given, mut bytes) = (name.as_bytes(), [0; Quota::MAX_NAME]);
        let mut at = 0;
        while at < given.len() && at < Quota::MAX_NAME {
            bytes[at] = given[at];
            at += 1;
        }
        #[expect(clippy::cast_possible_truncation, reason = "it fits")]
        let length = if given.len() > u8::MAX as usize { u8::MAX } else { given.len() as u8 };
        Self { bytes, length }
    }

    /// The whole name, if it is not too long.
    pub(super) const fn as_str(&self) -> Option<&str> {
        let Some((name, _)) = self.bytes.split_at_checked(self.length as usize) else { return None };
        match core::str::from_utf8(name) {
            Ok(name) => Some(name),
            Err(_) => None,
        }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}
