//! [`Quota`]: a limit, its algorithm with that one's numbers, and its options.

use core::fmt;
use core::time::Duration;

use tollgate_duration::format_duration as text;

use crate::clock::nanos;
use crate::texts::texts;

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
    /// The permits in a new key's token bucket; `None` if it starts full.
    pub(super) start: Option<u32>,
    /// The start of one of the aligned windows, after the clock's origin.
    pub(super) phase: Option<Duration>,
    /// Whether denied requests count.
    pub(super) counts_refused: bool,
    pub(super) name: Option<Name>,
}

impl Quota {
    pub(super) const fn of(kind: Kind, limit: u32, window: Duration) -> Self {
        Self { limit, window, kind, start: None, phase: None, counts_refused: false, name: None }
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
    /// For a sliding window log and a fixed window this is the window that was given.
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
            Kind::FixedWindow => Algorithm::FixedWindow,
            Kind::SlidingCounter { .. } => Algorithm::SlidingCounter,
            Kind::QuantisedLog { .. } => Algorithm::QuantisedLog,
            Kind::WarmUp { .. } => Algorithm::WarmUp,
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

    /// The window of a validated quota in nanoseconds.
    pub(crate) fn window_ns(&self) -> u64 {
        nanos(self.window)
    }
}

/// The algorithm, and its parameters except the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Log,
    TokenBucket { refill: u32, per: Duration },
    LeakyBucket { leak: u32, per: Duration },
    LeakyQueue { leak: u32, per: Duration, max_delay: Duration },
    FixedWindow,
    SlidingCounter { window: Duration },
    QuantisedLog { window: Duration, resolution: Duration },
    WarmUp { rate: u32, per: Duration, warm_up: Duration },
}

/// How a [`Quota`] counts permits.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Quota};
///
/// assert_eq!(Quota::per_minute(100).algorithm(), Algorithm::SlidingWindowLog);
/// let bucket = Quota::token_bucket(10, 1, Duration::from_secs(1));
/// assert_eq!(bucket.algorithm(), Algorithm::TokenBucket);
/// assert_eq!(bucket.algorithm().to_string(), "token bucket");
/// ```
// A snapshot has their numbers in this order, and so have serde formats without names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Algorithm {
    /// A stamp is kept for each permit, for one window ([`Quota::new`](Quota::new)).
    SlidingWindowLog,
    /// Permits are taken from a bucket that is refilled evenly
    /// ([`Quota::token_bucket`](Quota::token_bucket)).
    TokenBucket,
    /// Permits are poured into a bucket that leaks evenly
    /// ([`Quota::leaky_bucket`](Quota::leaky_bucket)).
    LeakyBucket,
    /// Requests queue, and each gets its delay ([`Quota::leaky_queue`](Quota::leaky_queue)).
    LeakyQueue,
    /// Permits are counted from the start of a window to its end
    /// ([`Quota::fixed_window`](Quota::fixed_window)).
    FixedWindow,
    /// The counts of two windows are added. The older count is weighted by the part of its window
    /// that the moving window still covers
    /// ([`Quota::sliding_counter`](Quota::sliding_counter)).
    SlidingCounter,
    /// A count is kept for each step of time, for one window
    /// ([`Quota::quantised_log`](Quota::quantised_log)).
    QuantisedLog,
    /// An idle limiter is cold, and rises to its rate ([`Quota::warm_up`](Quota::warm_up)).
    WarmUp,
}

texts! { Algorithm {
    SlidingWindowLog => "sliding window log";
    TokenBucket => "token bucket";
    LeakyBucket => "leaky bucket";
    LeakyQueue => "leaky queue";
    FixedWindow => "fixed window";
    SlidingCounter => "sliding window counter";
    QuantisedLog => "quantised log";
    WarmUp => "warm-up";
} }

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
            Kind::SlidingCounter { window } => write!(f, "{algorithm}, {limit} per {}", text(window)),
            Kind::QuantisedLog { window, resolution } => {
                write!(f, "{algorithm}, {limit} per {} in steps of {}", text(window), text(resolution))
            }
            Kind::WarmUp { rate, per, warm_up } => {
                write!(f, "{algorithm} of {} to {rate} per {}, at most {limit} at once", text(warm_up), text(per))
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
