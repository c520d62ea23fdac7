//! The lines of waiting requests: one for each key that a request waits for.

use core::fmt;
use core::future::{Future, poll_fn};
use core::hash::Hash;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;
use tollgate::{Decision, DenialReason};

use crate::error::WaitError;
use crate::limit::Limit;
use crate::timer::Timer;

/// The lines of all keys, for a [`Limit`] of your own. A key without a waiting request takes no
/// memory. [`WaitingLimiter`](crate::WaitingLimiter) has lines of its own.
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
///     lines.wait(&limiter, 7, 1, Duration::from_secs(2), &TokioTimer).await?;
/// }
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "tokio"))]
/// # fn main() {}
/// ```
pub struct Lines<K> {
    most_of_key: usize,
    most_of_all: usize,
    lines: Mutex<State<K>>,
}

struct State<K> {
    lines: HashMap<K, Line>,
    waiters: usize,
}

/// The waiting requests of one key.
struct Line {
    /// One permit, for the request whose turn it is. Others get it in the order in which they came.
    turn: Arc<Semaphore>,
    waiters: usize,
    /// What they are about to ask for together.
    permits: u64,
}

/// A place in a line, which is left when this is dropped.
struct Place<'a, K: Eq + Hash> {
    lines: &'a Lines<K>,
    key: K,
    /// What the line still counts of its cost.
    counted: u64,
    turn: Arc<Semaphore>,
    /// What the requests before this one are about to ask for.
    before: u64,
}

impl<K: Clone + Eq + Hash> Lines<K> {
    /// Lines in which at most so many requests wait for one key, and for all keys.
    #[must_use]
    pub fn new(most_of_key: usize, most_of_all: usize) -> Self {
        let state = State { lines: HashMap::new(), waiters: 0 };
        Self { most_of_key, most_of_all, lines: Mutex::new(state) }
    }

    pub(crate) fn bound(&mut self, most_of_key: usize) {
        self.most_of_key = most_of_key;
    }

    /// How many requests wait for the key.
    ///
    /// ```
    /// assert_eq!(tollgate_wait::Lines::new(100, 1_000).waiters(&"alice"), 0);
    /// ```
    #[must_use]
    pub fn waiters(&self, key: &K) -> usize {
        lock(&self.lines).lines.get(key).map_or(0, |line| line.waiters)
    }

    /// Waits at most so long in the key's line and for the permits. A future that is dropped leaves
    /// the line, and is charged nothing.
    ///
    /// # Errors
    ///
    /// [`WaitError`] tells why there are no permits.
    pub async fn wait<L: Limit<Key = K>>(
        &self,
        limiter: &L,
        key: K,
        cost: u32,
        within: Duration,
        timer: &impl Timer,
    ) -> Result<L::Grant, WaitError> {
        let start = limiter.reading();
        let left = || {
            let waited = limiter.reading().saturating_sub(start);
            within.saturating_sub(Duration::from_nanos(waited))
        };
        let mut place = self.join(key, cost)?;
        place.refuse_hopeless(limiter, cost, within)?;
        let turn = Arc::clone(&place.turn);
        let turn = turn.acquire();
        let _turn = match within_time(turn, || timer.sleep(left())).await {
            Some(turn) => turn,
            None => return Err(WaitError::Elapsed),
        };
        // A look first: it is no denial that counts.
        let mut wait = match limiter.look(&place.key, cost)? {
            Decision::Admitted(admission) => admission.delay(),
            Decision::Denied(denial) if denial.reason() == DenialReason::DenyList => {
                return Err(WaitError::Denied(denial));
            }
            Decision::Denied(denial) => denial.retry_after(),
        };
        loop {
            if wait > left() {
                return Err(WaitError::TooLong { wait });
            }
            if wait > Duration::ZERO {
                timer.sleep(wait).await;
            }
            place.ask();
            match limiter.decide(&place.key, cost)? {
                Ok(grant) => return Ok(grant),
                Err(again) => wait = again,
            }
        }
    }

    /// The last place of the key's line.
    fn join(&self, key: K, cost: u32) -> Result<Place<'_, K>, WaitError> {
        let mut state = lock(&self.lines);
        if state.waiters >= self.most_of_all {
            return Err(WaitError::TooManyWaiters { most: self.most_of_all });
        }
        let waiting = state.lines.get(&key).map_or(0, |line| line.waiters);
        if waiting >= self.most_of_key {
            return Err(WaitError::TooManyWaiters { most: self.most_of_key });
        }
        let line = state.lines.entry(key.clone()).or_insert_with(|| Line {
            turn: Arc::new(Semaphore::new(1)),
            waiters: 0,
            permits: 0,
        });
        let before = line.permits;
        line.waiters += 1;
        let counted = u64::from(cost);
        line.permits += counted;
        let turn = Arc::clone(&line.turn);
        state.waiters += 1;
        Ok(Place { lines: self, key, counted, turn, before })
    }
}

impl<K: Clone + Eq + Hash> Place<'_, K> {
    /// Fails if the requests before this one alone take too long, or no wait helps.
    fn refuse_hopeless<L: Limit<Key = K>>(&self, limiter: &L, cost: u32, within: Duration) -> Result<(), WaitError> {
        if self.before == 0 {
            return Ok(());
        }
        match limiter.look(&self.key, cost)? {
            // A key on the allow list, or a limiter in shadow mode.
            Decision::Admitted(admission) if !admission.is_counted() || admission.overruled().is_some() => {
                return Ok(());
            }
            _ => {}
        }
        let wait = limiter.earliest(&self.key, self.before + u64::from(cost));
        if wait > within { Err(WaitError::TooLong { wait }) } else { Ok(()) }
    }

    /// The request asks for its permits. From now on they are the limiter's to count.
    fn ask(&mut self) {
        if let Some(line) = lock(&self.lines.lines).lines.get_mut(&self.key) {
            line.permits -= self.counted;
            self.counted = 0;
        }
    }
}

impl<K: Eq + Hash> Drop for Place<'_, K> {
    fn drop(&mut self) {
        let mut state = lock(&self.lines.lines);
        state.waiters -= 1;
        if let Some(line) = state.lines.get_mut(&self.key) {
            line.permits -= self.counted;
            line.waiters -= 1;
            if line.waiters == 0 {
                state.lines.remove(&self.key);
            }
        }
    }
}

/// The output of the future, unless the time ends first. The timer is made only if the future has
/// to wait.
async fn within_time<F: Future, S: Future<Output = ()>>(future: F, sleep: impl FnOnce() -> S) -> Option<F::Output> {
    let mut future = pin!(future);
    if let Poll::Ready(output) = poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
        return Some(output);
    }
    let mut sleep = pin!(sleep());
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => sleep.as_mut().poll(context).map(|()| None),
    })
    .await
}

impl<K> fmt::Debug for Lines<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines")
            .field("most_of_key", &self.most_of_key)
            .field("most_of_all", &self.most_of_all)
            .finish_non_exhaustive()
    }
}

/// The map is whole after each change, so a panic elsewhere does no harm to it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
