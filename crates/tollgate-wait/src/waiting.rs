//! [`WaitingLimiter`]: requests that wait their turn.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use crate::blocking::{ThreadTimer, block_on};
use crate::counts::WaitCounts;
use crate::error::WaitError;
use crate::limit::Limit;
use crate::line::{LOOK_EVERY, Lines};
use crate::timer::Timer;

/// A limiter whose requests wait their turn: of one key, first come, first served.
///
/// ```
/// # #[cfg(feature = "tokio")]
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tollgate::{Limiter, Quota, TokioClock};
/// use tollgate_wait::{TokioTimer, WaitingLimiter};
///
/// let limiter = Limiter::<String>::builder(Quota::per_second(10)).clock(TokioClock::new()).build()?;
/// let limiter = WaitingLimiter::new(Arc::new(limiter)).timer(TokioTimer);
/// for _ in 0..100 {
///     limiter.acquire("example.org").within(Duration::from_secs(60)).await?;
/// }
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "tokio"))]
/// # fn main() {}
/// ```
pub struct WaitingLimiter<L, T = NoTimer> {
    limiter: Arc<L>,
    timer: T,
    lines: Lines,
}

/// No timer: only threads wait, by [`Acquire::block_within`].
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTimer;

impl<L> WaitingLimiter<L> {
    /// Requests for this limiter, of which at most
    /// [`DEFAULT_WAITERS`](Self::DEFAULT_WAITERS) wait for one key, and
    /// [`DEFAULT_WAITERS_OF_ALL`](Self::DEFAULT_WAITERS_OF_ALL) in all. Requests that do not wait
    /// can ask the limiter itself; they take permits that others wait for.
    #[must_use]
    pub fn new(limiter: Arc<L>) -> Self {
        let lines = Lines::new(Self::DEFAULT_WAITERS, Self::DEFAULT_WAITERS_OF_ALL);
        Self { limiter, timer: NoTimer, lines }
    }

    /// How many requests may wait for one key by default: 10,000.
    pub const DEFAULT_WAITERS: usize = 10_000;

    /// How many requests may wait for all keys by default: 100,000.
    pub const DEFAULT_WAITERS_OF_ALL: usize = 100_000;

    /// Tasks wait by this timer.
    #[must_use]
    pub fn timer<T: Timer>(self, timer: T) -> WaitingLimiter<L, T> {
        WaitingLimiter { limiter: self.limiter, timer, lines: self.lines }
    }
}

impl<L, T> WaitingLimiter<L, T> {
    /// At most so many requests wait for one key, and for all keys. One more fails with
    /// [`TooManyWaiters`](WaitError::TooManyWaiters) or
    /// [`TooManyWaitersOfAll`](WaitError::TooManyWaitersOfAll). [`counts`](Self::counts) counts
    /// both.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use tollgate::{DirectLimiter, Quota};
    /// use tollgate_wait::{WaitError, WaitingLimiter};
    ///
    /// let limiter = Arc::new(DirectLimiter::new(Quota::per_second(1))?);
    /// let limiter = WaitingLimiter::new(limiter).max_waiters(100, 0);
    /// let result = limiter.acquire(()).block_within(Duration::from_secs(1));
    /// assert_eq!(result, Err(WaitError::TooManyWaitersOfAll { most: 0 }));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn max_waiters(self, of_key: usize, of_all: usize) -> Self {
        Self { lines: Lines::new(of_key, of_all), ..self }
    }

    pub(crate) const fn parts(&self) -> (&Arc<L>, &Lines) {
        (&self.limiter, &self.lines)
    }

    pub(crate) const fn its_timer(&self) -> &T {
        &self.timer
    }

    /// How often the first request of a line looks whether one that is in flight has ended: every 5
    /// milliseconds.
    pub const LOOK_EVERY: Duration = LOOK_EVERY;

    /// The limiter.
    pub const fn limiter(&self) -> &Arc<L> {
        &self.limiter
    }

    /// How many requests wait for the key.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::{Limiter, Quota};
    /// use tollgate_wait::WaitingLimiter;
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_second(1))?;
    /// assert_eq!(WaitingLimiter::new(Arc::new(limiter)).waiters("alice"), 0);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn waiters<A>(&self, key: A) -> usize
    where
        L: Limit<A>,
    {
        self.lines.waiters(&*self.limiter, &key)
    }

    /// The requests that wait for all keys, and those that could not. Show it to operators.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::{Limiter, Quota};
    /// use tollgate_wait::WaitingLimiter;
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_second(1))?;
    /// let counts = WaitingLimiter::new(Arc::new(limiter)).counts();
    /// assert_eq!((counts.waiters, counts.refused_of_all), (0, 0));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn counts(&self) -> WaitCounts {
        self.lines.counts()
    }

    /// A request of one permit. It does nothing until it is told how long it may wait, by
    /// [`within`](Acquire::within) or [`block_within`](Acquire::block_within).
    ///
    /// The key has any form that `try_acquire` of the limiter takes: see [`AsKey`](tollgate::AsKey)
    /// and [`Keys`](tollgate::Keys). A `DirectLimiter` has the key `()`.
    #[must_use = "a request waits by `within` or `block_within`"]
    #[doc(alias = "until_ready", alias = "until_key_ready", alias = "Wait")]
    pub const fn acquire<A>(&self, key: A) -> Acquire<'_, L, T, A>
    where
        L: Limit<A>,
    {
        Acquire { of: self, key, cost: 1 }
    }
}

/// A request that is about to wait. [`WaitingLimiter::acquire`] makes it.
#[must_use = "a request waits by `within` or `block_within`"]
pub struct Acquire<'a, L, T, A> {
    of: &'a WaitingLimiter<L, T>,
    key: A,
    cost: u32,
}

impl<L: Limit<A>, T, A> Acquire<'_, L, T, A> {
    /// A request of so many permits: it gets all of them, or none. A cost of zero does not wait.
    pub const fn cost(mut self, cost: u32) -> Self {
        self.cost = cost;
        self
    }

    /// Waits at most so long for the permits. The thread sleeps meanwhile, so this is not for tasks.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use tollgate::{Limiter, Quota};
    /// use tollgate_wait::WaitingLimiter;
    ///
    /// let limiter = Limiter::<u64>::new(Quota::new(2, Duration::from_millis(20)))?;
    /// let limiter = WaitingLimiter::new(Arc::new(limiter));
    /// limiter.acquire(7).cost(2).block_within(Duration::from_secs(9))?;
    /// limiter.acquire(7).block_within(Duration::from_secs(9))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WaitError`] tells why there are no permits. Nothing was charged.
    pub fn block_within(self, within: Duration) -> Result<L::Grant, WaitError> {
        let of = self.of;
        block_on(of.lines.wait(&*of.limiter, &self.key, self.cost, within, &ThreadTimer))
    }
}

impl<L: Limit<A>, T: Timer, A> Acquire<'_, L, T, A> {
    /// Waits at most so long for the permits.
    ///
    /// The request joins the line when the future is polled first. A future that is dropped leaves
    /// the line, and is charged nothing. One that is kept and not polled holds up the requests
    /// behind it until its own time is over, and some 0.2 seconds more. Then it loses its place, and
    /// [`counts`](WaitingLimiter::counts) counts it as overdue.
    ///
    /// A stream goes at the limiter's rate if each item waits:
    ///
    /// ```
    /// # #[cfg(feature = "tokio")]
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use futures_util::{StreamExt, stream};
    /// use tollgate::{DirectLimiter, Quota, TokioClock};
    /// use tollgate_wait::{TokioTimer, WaitingLimiter};
    ///
    /// let limiter = DirectLimiter::with_clock(Quota::per_second(10), TokioClock::new())?;
    /// let limiter = WaitingLimiter::new(Arc::new(limiter)).timer(TokioTimer);
    /// let pages = stream::iter(0..25).then(async |page| {
    ///     limiter.acquire(()).within(Duration::from_secs(60)).await.map(|_| page)
    /// });
    /// let start = tokio::time::Instant::now();
    /// assert_eq!(pages.count().await, 25);
    /// assert_eq!(start.elapsed().as_secs(), 2);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "tokio"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    ///
    /// [`WaitError`] tells why there are no permits. Nothing was charged.
    pub async fn within(self, within: Duration) -> Result<L::Grant, WaitError> {
        let of = self.of;
        of.lines.wait(&*of.limiter, &self.key, self.cost, within, &of.timer).await
    }
}

impl<L: fmt::Debug, T> fmt::Debug for WaitingLimiter<L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitingLimiter")
            .field("limiter", &self.limiter)
            .field("lines", &self.lines)
            .finish_non_exhaustive()
    }
}

impl<L, T, A: fmt::Debug> fmt::Debug for Acquire<'_, L, T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire").field("key", &self.key).field("cost", &self.cost).finish_non_exhaustive()
    }
}
