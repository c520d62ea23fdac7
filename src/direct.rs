//! The methods of a limiter that take no key: those of a [`DirectLimiter`](crate::DirectLimiter), and
//! those of both kinds.

use std::sync::Arc;

use crate::clock::Clock;
use crate::counts::Counts;
use crate::decision::{Decision, Status};
use crate::error::CostExceedsLimit;
use crate::fingerprint::Fingerprinter;
use crate::limiter::Limiter;
use crate::no_key::{Key, NoKey};
use crate::observer::Unasked;
use crate::quota::Quota;
#[cfg(feature = "snapshot")]
use crate::snapshot::Snapshot;
use crate::state::request::Request;
use crate::state::table::THE_KEY;

impl<C: Clock> Limiter<NoKey, C, NoKey> {
    /// Takes one permit now, or denies the request.
    ///
    /// ```
    /// use tollgate::{Decision, DirectLimiter, Quota};
    ///
    /// let limiter = DirectLimiter::new(Quota::per_second(1))?;
    /// assert!(limiter.try_acquire().is_admitted());
    /// match limiter.try_acquire() {
    ///     Decision::Admitted(_) => println!("go on"),
    ///     Decision::Denied(denial) => println!("wait {:?}", denial.retry_after()),
    /// }
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[doc(alias = "check", alias = "tryConsume", alias = "Allow")]
    pub fn try_acquire(&self) -> Decision {
        self.decide((), THE_KEY, 1)
    }

    /// Takes `cost` permits now, all of them or none. A cost of zero charges nothing and is always
    /// admitted.
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let limiter = DirectLimiter::new(Quota::per_hour(5))?;
    /// assert!(limiter.try_acquire_n(4)?.is_admitted());
    /// assert!(limiter.try_acquire_n(2)?.is_denied(), "one is left");
    /// assert!(limiter.try_acquire_n(6).is_err(), "more than the limit");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CostExceedsLimit`] when `cost` is more than the limit: no wait would help. There is no
    /// such error in [shadow mode](crate::DirectLimiterBuilder::shadow).
    pub fn try_acquire_n(&self, cost: u32) -> Result<Decision, CostExceedsLimit> {
        self.acquire_by((), cost)
    }

    /// As [`try_acquire`](Self::try_acquire), with the permits left of each quota: see
    /// [`Limiter::try_acquire_status`](crate::Limiter::try_acquire_status).
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let limiter = DirectLimiter::new(Quota::per_hour(5))?;
    /// let status = limiter.try_acquire_status();
    /// assert_eq!((status.limit(), status.remaining()), (5, 4));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn try_acquire_status(&self) -> Status {
        self.decide_status((), THE_KEY, 1)
    }

    /// As [`try_acquire_n`](Self::try_acquire_n), with the permits left.
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let limiter = DirectLimiter::new(Quota::per_hour(5))?;
    /// assert_eq!(limiter.try_acquire_status().remaining(), 4);
    /// assert_eq!(limiter.try_acquire_n_status(3)?.remaining(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_acquire_n`](Self::try_acquire_n).
    pub fn try_acquire_n_status(&self, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.acquire_status_by((), cost)
    }

    /// Returns the answer that [`try_acquire_status`](Self::try_acquire_status) would give now.
    /// Charges nothing and writes nothing.
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let limiter = DirectLimiter::new(Quota::per_hour(5))?;
    /// assert!(limiter.peek().is_admitted());
    /// assert_eq!(limiter.peek().remaining(), 5);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[doc(alias = "estimateAbilityToConsume")]
    pub fn peek(&self) -> Status {
        self.engine.peek(&[Some(THE_KEY)], Request::acquire(1))
    }

    /// Returns the answer that [`try_acquire_n_status`](Self::try_acquire_n_status) would give now.
    /// Charges nothing and writes nothing.
    ///
    /// ```
    /// use tollgate::{DirectLimiter, Quota};
    ///
    /// let limiter = DirectLimiter::new(Quota::per_hour(5))?;
    /// assert!(limiter.try_acquire_n(3)?.is_admitted());
    /// assert!(limiter.peek_n(2)?.is_admitted());
    /// assert!(limiter.peek_n(3)?.is_denied());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_acquire_n`](Self::try_acquire_n).
    pub fn peek_n(&self, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.peek_by((), cost)
    }
}

impl<K: Key + ?Sized, C: Clock, F: Fingerprinter> Limiter<K, C, F> {
    /// Forgets every key with its penalties. Changes no list.
    ///
    /// Each key is forgotten at some instant of the call, and not all at the same instant. The time
    /// is proportional to the number of cells.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_hour(1))?;
    /// let _ = limiter.try_acquire_many(["alice", "bob"]);
    /// limiter.clear();
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// assert!(limiter.try_acquire("bob").is_admitted());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[doc(alias = "reset")]
    pub fn clear(&self) {
        self.engine.clear();
    }

    /// Counts the keys, memory and decisions of the limiter. The time is proportional to the number
    /// of cells.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_hour(1))?;
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// assert_eq!(limiter.counts().live_keys, 1);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.engine.counts(size_of::<Self>())
    }

    /// Copies the live permits of all keys, to be restored after a restart; see [`Snapshot`]. The
    /// time is proportional to the number of cells. No request waits for it.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let before = Limiter::<String>::new(Quota::per_hour(1))?;
    /// assert!(before.try_acquire("alice").is_admitted());
    /// let snapshot = before.snapshot();
    ///
    /// let after = Limiter::<String>::builder(Quota::per_hour(1)).restore(&snapshot)?;
    /// assert!(after.try_acquire("alice").is_denied());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "snapshot")]
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.engine.snapshot()
    }

    /// The quotas of each key, in the given order.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let builder = Limiter::<String>::builder(Quota::per_second(2)).and(Quota::per_minute(9));
    /// let limiter = builder.build()?;
    /// assert_eq!(*limiter.quotas(), [Quota::per_second(2), Quota::per_minute(9)]);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn quotas(&self) -> Arc<[Quota]> {
        self.engine.quotas(0)
    }

    /// Tells the observers of a request that was answered without this limiter. The layers for HTTP
    /// call it.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota, Unasked};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_minute(1))?;
    /// limiter.observe_unasked(Unasked::Skipped);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn observe_unasked(&self, request: Unasked) {
        self.engine.observers.tell_unasked(request);
    }

    /// The clock of the limiter.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, MockClock, Quota};
    ///
    /// let builder = Limiter::<String>::builder(Quota::per_minute(1));
    /// let limiter = builder.clock(MockClock::new()).build()?;
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// limiter.clock().advance(Duration::from_secs(60));
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn clock(&self) -> &C {
        &self.engine.clock
    }
}
