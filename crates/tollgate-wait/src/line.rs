//! The lines of waiting requests: one for each key that a request waits for.

use core::fmt;
use core::future::{Future, poll_fn};
use core::hash::{BuildHasher as _, Hasher as _};
use core::pin::pin;
use core::task::{Poll, Waker};
use core::time::Duration;
use std::hash::RandomState;

use tollgate::{Decision, DenialReason};

use crate::counts::WaitCounts;
use crate::error::WaitError;
use crate::limit::Limit;
use crate::places::{Joined, Places, Turn};
use crate::timer::Timer;

/// See [`WaitingLimiter::LOOK_EVERY`](crate::WaitingLimiter::LOOK_EVERY).
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The lines of all keys, for a [`Limit`] of your own. A key without a waiting request takes no
/// memory. [`WaitingLimiter`](crate::WaitingLimiter) has lines of its own.
///
/// The lines know keys by a hash of 64 bits with a random secret. Two keys with one hash would wait
/// in one line.
///
/// ```
/// # #[cfg(feature = "tokio")]
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use tollgate::{Limiter, Quota, TokioClock};
/// use tollgate_wait::{Lines, TokioTimer};
///
/// let limiter = Limiter::<u64>::builder(Quota::per_second(1)).clock(TokioClock::new()).build()?;
/// // At most 100 requests wait for a key, and 1,000 for all keys.
/// let lines = Lines::new(100, 1_000);
/// for _ in 0..3 {
///     lines.wait(&limiter, &7, 1, Duration::from_secs(2), &TokioTimer).await?;
/// }
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "tokio"))]
/// # fn main() {}
/// ```
pub struct Lines {
    places: Places,
    hashes: RandomState,
}

/// A place in a line, which is left when this is dropped.
struct Place<'a> {
    places: &'a Places,
    /// The hash of the key.
    line: u64,
    number: u64,
    /// What the requests before this one are about to ask for.
    before: u64,
    /// The reading at which its time is over.
    ends: u64,
}

impl Lines {
    /// Lines in which at most so many requests wait for one key, and for all keys.
    #[must_use]
    pub fn new(most_of_key: usize, most_of_all: usize) -> Self {
        Self { places: Places::new(most_of_key, most_of_all), hashes: RandomState::new() }
    }

    /// How many requests wait for the key.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    /// use tollgate_wait::Lines;
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_second(1))?;
    /// assert_eq!(Lines::new(100, 1_000).waiters(&limiter, &"alice"), 0);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn waiters<A, L: Limit<A>>(&self, limiter: &L, key: &A) -> usize {
        self.places.waiters(self.line(limiter, key))
    }

    fn line<A, L: Limit<A>>(&self, limiter: &L, key: &A) -> u64 {
        let mut state = self.hashes.build_hasher();
        limiter.hash_key(key, &mut state);
        state.finish()
    }

    /// The requests that wait, and those that could not.
    ///
    /// ```
    /// let lines = tollgate_wait::Lines::new(100, 1_000);
    /// assert_eq!(lines.counts(), tollgate_wait::WaitCounts::default());
    /// ```
    #[must_use]
    pub fn counts(&self) -> WaitCounts {
        self.places.counts()
    }

    /// Waits at most so long in the key's line and for the permits. A cost of zero is free, and does
    /// not wait. A future that is dropped leaves
    /// the line, and is charged nothing. One that is kept and not polled loses its place some 0.2
    /// seconds after its time is over.
    ///
    /// # Errors
    ///
    /// [`WaitError`] tells why there are no permits.
    pub async fn wait<A, L: Limit<A>>(
        &self,
        limiter: &L,
        key: &A,
        cost: u32,
        within: Duration,
        timer: &impl Timer,
    ) -> Result<L::Grant, WaitError> {
        if cost == 0 {
            return limiter.decide(key, 0)?.map_err(|wait| WaitError::TooLong { wait });
        }
        let (line, start) = (self.line(limiter, key), limiter.reading());
        let ends = start.saturating_add(u64::try_from(within.as_nanos()).unwrap_or(u64::MAX));
        let Joined { number, before } = self.places.join(line, cost, start, ends)?;
        let place = Place { places: &self.places, line, number, before, ends };
        place.refuse_hopeless(limiter, key, cost, within)?;
        place.turn::<A, L>(limiter, timer).await?;
        let left = || Duration::from_nanos(ends.saturating_sub(limiter.reading()));
        let mut told = None;
        loop {
            let (wait, looks_again) = match told.take() {
                Some(wait) => (wait, false),
                // A look first: it is no denial that counts.
                None => wait_after(limiter.look(key, cost)?, left())?,
            };
            if wait > left() {
                return Err(WaitError::TooLong { wait });
            }
            if wait > Duration::ZERO {
                timer.sleep(wait).await;
            }
            if looks_again {
                continue;
            }
            place.places.ask(line, number);
            match limiter.decide(key, cost)? {
                Ok(grant) => return Ok(grant),
                // No wait is known, or none helps. The next look tells which.
                Err(Duration::MAX) => {}
                // A request that did not wait has taken the permits.
                Err(again) => told = Some(again),
            }
        }
    }
}

/// The wait that this decision tells, of a request that may wait for so long, and whether another look
/// has to come after it.
fn wait_after(looked: Decision, left: Duration) -> Result<(Duration, bool), WaitError> {
    match looked {
        Decision::Admitted(admission) => Ok((admission.delay(), false)),
        Decision::Denied(denial) => match denial.reason() {
            DenialReason::DenyList => Err(WaitError::Denied(denial)),
            // A request may end at any time, but not after this one has given up.
            DenialReason::InFlight => Ok((LOOK_EVERY.min(left).max(Duration::from_nanos(1)), true)),
            _ => Ok((denial.retry_after(), false)),
        },
    }
}

impl Place<'_> {
    /// Fails if the requests before this one alone take too long, or no wait helps.
    fn refuse_hopeless<A, L: Limit<A>>(
        &self,
        limiter: &L,
        key: &A,
        cost: u32,
        within: Duration,
    ) -> Result<(), WaitError> {
        if self.before == 0 {
            return Ok(());
        }
        match limiter.look(key, cost)? {
            // A key on the allow list, or a limiter in shadow mode.
            Decision::Admitted(admission) if !admission.is_counted() || admission.overruled().is_some() => {
                return Ok(());
            }
            _ => {}
        }
        let wait = limiter.earliest(key, self.before + u64::from(cost));
        if wait > within { Err(WaitError::TooLong { wait }) } else { Ok(()) }
    }

    /// Waits until the requests before this one have left, or have lost their places.
    async fn turn<A, L: Limit<A>>(&self, limiter: &L, timer: &impl Timer) -> Result<(), WaitError> {
        loop {
            let now = limiter.reading();
            let turn = poll_fn(|context| Poll::Ready(self.look(now, context.waker()))).await;
            let until = match turn {
                Turn::First => return Ok(()),
                Turn::Behind { look_at } if now < self.ends => look_at.min(self.ends),
                Turn::Behind { .. } | Turn::Over => return Err(WaitError::Elapsed),
            };
            // Those before it may be forgotten: then nothing wakes it.
            let mut sleep = pin!(timer.sleep(Duration::from_nanos(until.saturating_sub(now))));
            let is_first = poll_fn(|context| match self.look(now, context.waker()) {
                Turn::First => Poll::Ready(true),
                Turn::Behind { .. } => sleep.as_mut().poll(context).map(|()| false),
                Turn::Over => Poll::Ready(false),
            });
            if is_first.await {
                return Ok(());
            }
        }
    }

    fn look(&self, now: u64, waker: &Waker) -> Turn {
        self.places.turn(self.line, self.number, now, waker)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.places.leave(self.line, self.number);
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (most_of_key, most_of_all) = self.places.bounds();
        f.debug_struct("Lines")
            .field("most_of_key", &most_of_key)
            .field("most_of_all", &most_of_all)
            .finish_non_exhaustive()
    }
}
