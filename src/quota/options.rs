//! What is set on a quota beside the numbers of its algorithm.

use core::time::Duration;

use super::value::{Name, Quota};

impl Quota {
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
}
