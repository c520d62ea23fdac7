//! The lines of waiting requests: one for each key that a request waits for.

use core::hash::Hash;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

/// The lines of all keys. A key without a waiting request takes no memory.
#[derive(Debug)]
pub(crate) struct Lines<K> {
    lines: Mutex<HashMap<K, Line>>,
}

/// The waiting requests of one key.
#[derive(Debug)]
struct Line {
    /// One permit, for the request whose turn it is. Others get it in the order in which they came.
    turn: Arc<Semaphore>,
    waiters: usize,
    /// What they are about to ask for together.
    permits: u64,
}

/// A place in a line, which is left when this is dropped.
#[derive(Debug)]
pub(crate) struct Place<'a, K: Eq + Hash> {
    lines: &'a Lines<K>,
    pub(crate) key: K,
    /// What the line still counts of its cost.
    counted: u64,
    pub(crate) turn: Arc<Semaphore>,
    /// What the requests before this one are about to ask for.
    pub(crate) before: u64,
}

impl<K: Clone + Eq + Hash> Lines<K> {
    pub(crate) fn new() -> Self {
        Self { lines: Mutex::new(HashMap::new()) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Line>> {
        lock(&self.lines)
    }

    /// The last place of the key's line; `None` if as many wait as may.
    pub(crate) fn join(&self, key: K, cost: u32, most: usize) -> Option<Place<'_, K>> {
        let mut lines = self.lock();
        let line = lines.entry(key.clone()).or_insert_with(|| Line {
            turn: Arc::new(Semaphore::new(1)),
            waiters: 0,
            permits: 0,
        });
        if line.waiters >= most {
            return None;
        }
        let before = line.permits;
        line.waiters += 1;
        let counted = u64::from(cost);
        line.permits += counted;
        Some(Place { lines: self, key, counted, turn: Arc::clone(&line.turn), before })
    }

    /// The requests that wait for the key.
    pub(crate) fn waiters(&self, key: &K) -> usize {
        self.lock().get(key).map_or(0, |line| line.waiters)
    }
}

impl<K: Eq + Hash> Place<'_, K> {
    /// The request asks for its permits. From now on they are the limiter's to count.
    pub(crate) fn ask(&mut self) {
        if let Some(line) = lock(&self.lines.lines).get_mut(&self.key) {
            line.permits -= self.counted;
            self.counted = 0;
        }
    }
}

impl<K: Eq + Hash> Drop for Place<'_, K> {
    fn drop(&mut self) {
        let mut lines = lock(&self.lines.lines);
        if let Some(line) = lines.get_mut(&self.key) {
            line.permits -= self.counted;
            line.waiters -= 1;
            if line.waiters == 0 {
                lines.remove(&self.key);
            }
        }
    }
}

/// The map is whole after each change, so a panic elsewhere does no harm to it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
