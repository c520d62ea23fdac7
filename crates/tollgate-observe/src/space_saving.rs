//! The algorithm Space-Saving: A. Metwally, D. Agrawal and A. El Abbadi, "Efficient computation of
//! frequent and top-k elements in data streams", ICDT 2005.
//!
//! A list of m counters. A key in the list adds one to its counter. Another key takes the place of
//! the key with the least count, and inherits that count as its error. So of N keys counted, in
//! whatever order:
//!
//! - a count is the true one, or more by at most its error;
//! - no error is more than the least count, which is at most N / m;
//! - a key that was counted more than N / m times is in the list.
//!
//! The counters are kept in order of their counts. One more for a counter moves it before all those
//! of equal count: a binary search and a swap.

use core::hash::Hash;
use std::collections::HashMap;

/// Counters of at most so many keys, each with a value that is made when its key gets a place.
pub(crate) struct SpaceSaving<K, V> {
    most: usize,
    /// The greatest counts first.
    counters: Vec<Counter<K, V>>,
    /// The place of each key in `counters`.
    places: HashMap<K, usize>,
    counted: u64,
}

/// One key's counter.
#[derive(Debug, Clone)]
pub(crate) struct Counter<K, V> {
    pub(crate) key: K,
    pub(crate) value: V,
    pub(crate) count: u64,
    pub(crate) error: u64,
}

impl<K: Copy + Eq + Hash, V> SpaceSaving<K, V> {
    /// Room for at least one key.
    pub(crate) fn new(most: usize) -> Self {
        Self { most: most.max(1), counters: Vec::new(), places: HashMap::new(), counted: 0 }
    }

    /// Counts a key. `value` is called if the key gets a place.
    pub(crate) fn count(&mut self, key: K, value: impl FnOnce() -> V) {
        let place = match self.places.get(&key) {
            Some(&place) => place,
            None => self.give_place(key, value()),
        };
        // The first of equal counts, whose place the counter takes.
        let count = self.counters[place].count;
        let first = self.counters.partition_point(|counter| counter.count > count);
        self.counters[place].count += 1;
        self.counted += 1;
        if first < place {
            self.counters.swap(first, place);
            for place in [first, place] {
                self.places.insert(self.counters[place].key, place);
            }
        }
    }

    /// The last place, with the count that was there.
    fn give_place(&mut self, key: K, value: V) -> usize {
        if self.counters.len() < self.most {
            self.counters.push(Counter { key, value, count: 0, error: 0 });
        } else if let Some(last) = self.counters.last_mut() {
            self.places.remove(&last.key);
            *last = Counter { key, value, count: last.count, error: last.count };
        }
        let place = self.counters.len() - 1;
        self.places.insert(key, place);
        place
    }

    /// The counters, the greatest counts first.
    pub(crate) fn counters(&self) -> &[Counter<K, V>] {
        &self.counters
    }

    /// The keys counted so far, each as often as it was counted.
    pub(crate) const fn counted(&self) -> u64 {
        self.counted
    }

    pub(crate) fn clear(&mut self) {
        self.counters.clear();
        self.places.clear();
        self.counted = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_made_for_keys_that_get_a_place() {
        let mut counters = SpaceSaving::new(2);
        let mut made = Vec::new();
        for key in [1, 1, 2, 1, 3, 2] {
            counters.count(key, || made.push(key));
        }
        assert_eq!(made, [1, 2, 3, 2]);
        let seen: Vec<_> = counters.counters().iter().map(|it| (it.key, it.count, it.error)).collect();
        assert_eq!(seen, [(1, 3, 0), (2, 3, 2)]);
        counters.clear();
        assert_eq!((counters.counters().len(), counters.counted()), (0, 0));
    }
}
