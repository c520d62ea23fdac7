//! The places of waiting requests, behind one lock: a line for each hash of a key.

use core::task::Waker;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::counts::WaitCounts;
use crate::error::WaitError;

/// How long a request keeps its place after its time is over, in nanoseconds. A request whose
/// permits are free in the last moment is polled within this time, unless its runtime is overloaded.
/// It is also the least time between two sweeps, which look at each place.
const GRACE_NS: u64 = 100_000_000;

/// Of several requests behind an overdue one, each looks by so much later than the one before it.
/// So a long line is not woken as a whole.
const STAGGER_NS: u64 = 1_000_000;

/// The lines of all keys.
pub(crate) struct Places {
    most_of_key: usize,
    most_of_all: usize,
    state: Mutex<State>,
}

struct State {
    lines: HashMap<u64, Line>,
    /// The number of the next place. Each number is used once.
    next: u64,
    /// When the next sweep of all lines is due.
    sweep_at: u64,
    counts: WaitCounts,
}

/// The waiting requests of one key, the first with the least number. A line is never empty.
struct Line {
    places: BTreeMap<u64, Waiting>,
    /// What they are about to ask for together.
    permits: u64,
    /// When the next sweep is due. Not later than any place is over, or [`GRACE_NS`] after the last
    /// sweep.
    sweep_at: u64,
}

struct Waiting {
    /// From this reading on the request has no place.
    over_at: u64,
    /// What it is about to ask for.
    permits: u64,
    waker: Option<Waker>,
}

/// Where a request is in its line.
pub(crate) enum Turn {
    First,
    /// Behind others. It is woken when it is the first, and looks at this reading whether those
    /// before it are overdue.
    Behind {
        look_at: u64,
    },
    /// It was overdue, and its place was taken.
    Over,
}

/// A request that has joined a line.
pub(crate) struct Joined {
    pub(crate) number: u64,
    /// What the requests before it are about to ask for.
    pub(crate) before: u64,
}

impl Places {
    pub(crate) const fn bounds(&self) -> (usize, usize) {
        (self.most_of_key, self.most_of_all)
    }

    /// The state is whole after each change, so a panic elsewhere does no harm to it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn new(most_of_key: usize, most_of_all: usize) -> Self {
        let state = State { lines: HashMap::new(), next: 0, sweep_at: u64::MAX, counts: WaitCounts::default() };
        Self { most_of_key, most_of_all, state: Mutex::new(state) }
    }

    pub(crate) fn waiters(&self, key: u64) -> usize {
        self.lock().lines.get(&key).map_or(0, |line| line.places.len())
    }

    pub(crate) fn counts(&self) -> WaitCounts {
        self.lock().counts
    }

    /// The last place of the key's line, for a request whose time ends at `ends`.
    pub(crate) fn join(&self, key: u64, cost: u32, now: u64, ends: u64) -> Result<Joined, WaitError> {
        let mut woken = Vec::new();
        let joined = self.lock().join(key, cost.into(), (now, ends), (self.most_of_key, self.most_of_all), &mut woken);
        wake(woken);
        joined
    }

    /// Where the request is. The waker is kept for the moment at which it is the first.
    pub(crate) fn turn(&self, key: u64, number: u64, now: u64, waker: &Waker) -> Turn {
        let mut woken = Vec::new();
        let turn = self.lock().turn(key, number, now, waker, &mut woken);
        wake(woken);
        turn
    }

    /// The request asks for its permits. From now on they are the limiter's to count.
    pub(crate) fn ask(&self, key: u64, number: u64) {
        if let Some(line) = self.lock().lines.get_mut(&key) {
            line.ask(number);
        }
    }

    /// The request leaves its line.
    pub(crate) fn leave(&self, key: u64, number: u64) {
        let (_left, woken) = self.lock().leave(key, number);
        wake(woken);
    }
}

impl State {
    fn join(
        &mut self,
        key: u64,
        permits: u64,
        (now, ends): (u64, u64),
        most: (usize, usize),
        woken: &mut Vec<Waker>,
    ) -> Result<Joined, WaitError> {
        // Requests that are never polled again must not keep others out.
        if self.room(key, most).is_err() && now >= self.sweep_at {
            self.sweep(now, woken);
        }
        if let Err(error) = self.room(key, most) {
            match error {
                WaitError::TooManyWaiters { .. } => self.counts.refused_of_key += 1,
                _ => self.counts.refused_of_all += 1,
            }
            return Err(error);
        }
        let number = self.next;
        self.next += 1;
        self.counts.waiters += 1;
        let over_at = ends.saturating_add(GRACE_NS);
        self.sweep_at = self.sweep_at.min(over_at);
        let line = self.lines.entry(key).or_insert_with(Line::new);
        line.sweep_at = line.sweep_at.min(over_at);
        let before = line.permits;
        line.permits += permits;
        line.places.insert(number, Waiting { over_at, permits, waker: None });
        Ok(Joined { number, before })
    }

    fn room(&self, key: u64, (most_of_key, most_of_all): (usize, usize)) -> Result<(), WaitError> {
        let of_key = self.lines.get(&key).map_or(0, |line| line.places.len());
        if of_key >= most_of_key {
            return Err(WaitError::TooManyWaiters { most: most_of_key });
        }
        if self.counts.waiters >= most_of_all {
            return Err(WaitError::TooManyWaitersOfAll { most: most_of_all });
        }
        Ok(())
    }

    fn turn(&mut self, key: u64, number: u64, now: u64, waker: &Waker, woken: &mut Vec<Waker>) -> Turn {
        let Some(line) = self.lines.get_mut(&key) else { return Turn::Over };
        if now >= line.sweep_at {
            self.counts.take(line.sweep(now, woken));
            if line.places.is_empty() {
                self.lines.remove(&key);
                return Turn::Over;
            }
        }
        line.place(number, waker, woken)
    }

    /// What is left, and the waker of the request that is now the first.
    fn leave(&mut self, key: u64, number: u64) -> (Option<Waiting>, Option<Waker>) {
        let Some(line) = self.lines.get_mut(&key) else { return (None, None) };
        // None: it was overdue, and its place was taken.
        let Some(left) = line.places.remove(&number) else { return (None, None) };
        line.permits -= left.permits;
        self.counts.waiters -= 1;
        let woken = line.first_waker();
        if line.places.is_empty() {
            self.lines.remove(&key);
        }
        (Some(left), woken)
    }

    /// Takes the places of all requests that are overdue.
    fn sweep(&mut self, now: u64, woken: &mut Vec<Waker>) {
        let mut next = u64::MAX;
        self.lines.retain(|_, line| {
            self.counts.take(line.sweep(now, woken));
            next = next.min(line.sweep_at);
            !line.places.is_empty()
        });
        self.sweep_at = next.max(now.saturating_add(GRACE_NS));
    }
}

impl WaitCounts {
    /// So many requests have lost their places.
    fn take(&mut self, overdue: usize) {
        self.waiters -= overdue;
        self.overdue += overdue as u64;
    }
}

impl Line {
    const fn new() -> Self {
        Self { places: BTreeMap::new(), permits: 0, sweep_at: u64::MAX }
    }

    /// Takes the places of the requests that are overdue, and tells their number. They are woken, as
    /// is the request that is then the first.
    fn sweep(&mut self, now: u64, woken: &mut Vec<Waker>) -> usize {
        let before = self.places.len();
        let mut next = u64::MAX;
        self.places.retain(|_, place| {
            if now < place.over_at {
                next = next.min(place.over_at);
                return true;
            }
            self.permits -= place.permits;
            woken.extend(place.waker.take());
            false
        });
        woken.extend(self.first_waker());
        self.sweep_at = next.max(now.saturating_add(GRACE_NS));
        before - self.places.len()
    }

    fn place(&mut self, number: u64, waker: &Waker, woken: &mut Vec<Waker>) -> Turn {
        let Some(first) = self.places.keys().next().copied() else { return Turn::Over };
        let others = self.places.len() as u64;
        let Some(place) = self.places.get_mut(&number) else { return Turn::Over };
        if first == number {
            return Turn::First;
        }
        if !place.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            woken.extend(place.waker.replace(waker.clone()));
        }
        // At most so many are before it.
        let before = (number - first).min(others);
        Turn::Behind { look_at: self.sweep_at.saturating_add(before * STAGGER_NS) }
    }

    fn ask(&mut self, number: u64) {
        if let Some(place) = self.places.get_mut(&number) {
            self.permits -= place.permits;
            place.permits = 0;
        }
    }

    /// The waker of the first, if it does not know yet that it is.
    fn first_waker(&mut self) -> Option<Waker> {
        self.places.first_entry()?.get_mut().waker.take()
    }
}

/// Wakes requests, outside of the lock: a waker is code of a runtime, and may drop a request with
/// its task.
fn wake(woken: impl IntoIterator<Item = Waker>) {
    woken.into_iter().for_each(Waker::wake);
}
