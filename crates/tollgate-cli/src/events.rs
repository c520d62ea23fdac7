//! Requests in time order, in little memory: 8 bytes for the time, 4 for each key, 4 for costs if
//! some differ from 1, and 4 for actual costs if some differ from those.

use crate::formats::Stamp;
use crate::time::Nanos;

/// A request as the log has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) time: Nanos,
    pub(crate) cost: u32,
    /// What it has cost in the end.
    pub(crate) actual: u32,
    /// Its place in the log.
    row: usize,
}

/// The number of a key that a request does not have.
const NO_KEY: u32 = u32::MAX;

/// So many of the last requests wait for others that were logged later and came earlier.
const LATE_AT_MOST: usize = 1 << 14;

/// Requests, in columns.
#[derive(Debug)]
pub(crate) struct Events {
    times: Vec<Nanos>,
    /// The numbers of each request's keys, one request after the other.
    numbers: Vec<u32>,
    /// Empty as long as each request costs 1.
    costs: Vec<u32>,
    /// Empty as long as each request has cost what it asked for.
    actual: Vec<u32>,
    dimensions: usize,
    /// So many are in time order, and none that comes is to stand before them.
    settled: usize,
    in_order: bool,
}

impl Events {
    pub(crate) fn new(dimensions: usize) -> Self {
        let (times, numbers, costs, actual) = Default::default();
        Self { times, numbers, costs, actual, dimensions, settled: 0, in_order: true }
    }

    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    /// Adds a request. Its keys' numbers are to follow, each by [`add_key`](Self::add_key).
    pub(crate) fn add(&mut self, Stamp { time, cost, actual }: Stamp) {
        if actual != cost && self.actual.is_empty() {
            self.actual = (0..self.len()).map(|row| self.cost(row)).collect();
        }
        if actual != cost || !self.actual.is_empty() {
            self.actual.push(actual);
        }
        if cost != 1 && self.costs.is_empty() {
            self.costs.resize(self.times.len(), 1);
        }
        self.times.push(time);
        if cost != 1 || !self.costs.is_empty() {
            self.costs.push(cost);
        }
    }

    fn cost(&self, row: usize) -> u32 {
        self.costs.get(row).copied().unwrap_or(1)
    }

    pub(crate) fn add_key(&mut self, number: Option<u32>) {
        self.numbers.push(number.unwrap_or(NO_KEY));
    }

    /// The requests that are known to be in time order, and to stay where they are.
    pub(crate) fn settled(&self) -> usize {
        self.settled
    }

    /// Whether every request came no later than [`LATE_AT_MOST`] others that it is before.
    pub(crate) fn were_in_order(&self) -> bool {
        self.in_order
    }

    pub(crate) fn event(&self, row: usize) -> Event {
        let cost = self.cost(row);
        Event { time: self.times[row], cost, actual: self.actual.get(row).copied().unwrap_or(cost), row }
    }

    /// The number of the request's key in a dimension; `None` where it has none.
    pub(crate) fn key(&self, event: &Event, dimension: usize) -> Option<u32> {
        let number = self.numbers[event.row * self.dimensions + dimension];
        (number != NO_KEY).then_some(number)
    }

    /// Puts those in order that have waited long enough. Requests of the same time stay in the
    /// order they were added in.
    pub(crate) fn settle(&mut self) {
        if self.in_order && self.len() - self.settled >= 2 * LATE_AT_MOST {
            self.settle_up_to(self.len() - LATE_AT_MOST);
        }
    }

    /// Puts all in order.
    pub(crate) fn settle_all(&mut self) {
        self.settle_up_to(self.len());
    }

    fn settle_up_to(&mut self, row: usize) {
        let earliest = self.times[self.settled..].iter().min();
        let last = self.settled.checked_sub(1).map(|last| self.times[last]);
        if earliest.copied() < last {
            self.in_order = false;
            self.settled = 0;
        }
        if self.in_order || row == self.len() {
            self.sort_from(self.settled);
            self.settled = row;
        }
    }

    fn sort_from(&mut self, start: usize) {
        if self.times[start..].is_sorted() {
            return;
        }
        // Row numbers are below 2^32: the log sees to that.
        #[allow(clippy::cast_possible_truncation, reason = "rows are numbered by u32")]
        let mut order: Vec<u32> = (start..self.len()).map(|row| row as u32).collect();
        order.sort_by_key(|&row| self.times[row as usize]);
        self.permute(start, &mut order);
    }

    /// Puts into each place from `start` on the row that `order` names for it, going around each
    /// cycle once. `order` is used up.
    fn permute(&mut self, start: usize, order: &mut [u32]) {
        for first in 0..order.len() {
            let mut at = first;
            loop {
                let from = order[at] as usize - start;
                order[at] = u32::try_from(at + start).unwrap_or(u32::MAX);
                if from == first {
                    break;
                }
                self.swap(at + start, from + start);
                at = from;
            }
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.times.swap(one, other);
        for costs in [&mut self.costs, &mut self.actual] {
            if !costs.is_empty() {
                costs.swap(one, other);
            }
        }
        for dimension in 0..self.dimensions {
            self.numbers.swap(one * self.dimensions + dimension, other * self.dimensions + dimension);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time, costs and key.
    type Row = (Nanos, u32, u32, u32);

    /// Requests of these times as the columns have them, and sorted with nothing of the above.
    fn both(times: &[Nanos]) -> (Vec<Row>, Vec<Row>, bool) {
        let mut events = Events::new(2);
        let (mut plain, mut settled) = (Vec::new(), 0);
        for (at, &time) in times.iter().enumerate() {
            let number = u32::try_from(at).unwrap();
            let cost = if at > 10 { number % 3 } else { 1 };
            let actual = if at > 20 { number % 5 } else { cost };
            events.add(Stamp { time, cost, actual });
            events.add_key(Some(number));
            events.add_key(None);
            plain.push((time, cost, actual, number));
            events.settle();
            if events.settled() > settled {
                settled = events.settled();
                assert!((0..settled).map(|row| events.event(row).time).is_sorted());
            }
        }
        events.settle_all();
        plain.sort_by_key(|(time, ..)| *time);
        let row = |row| {
            let event = events.event(row);
            assert_eq!(events.key(&event, 1), None);
            (event.time, event.cost, event.actual, events.key(&event, 0).unwrap())
        };
        ((0..events.len()).map(row).collect(), plain, events.were_in_order())
    }

    #[test]
    fn requests_are_sorted_and_those_of_one_time_stay_as_they_came() {
        let count = i64::try_from(5 * LATE_AT_MOST).unwrap();
        let late = i64::try_from(LATE_AT_MOST).unwrap();
        let mut state = 7_u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(0xda94_2042_e4dd_58b5).wrapping_add(1);
            i64::try_from((state >> 33) % bound).unwrap()
        };
        let nearly: Vec<Nanos> = (0..count).map(|at| at / 3 + below(5000)).collect();
        let shuffled: Vec<Nanos> = (0..count).map(|_| below(1000)).collect();
        let backwards: Vec<Nanos> = (0..count).map(|at| -at / 2).collect();
        let two_files: Vec<Nanos> = (0..count).map(|at| (at + count / 2) % count).collect();
        let one_is_late: Vec<Nanos> = (0..count).map(|at| if at == 3 * late { 5 } else { at }).collect();
        let sorted: Vec<Nanos> = (0..count).collect();
        for (name, times, expected) in [
            ("sorted", sorted, true),
            ("nearly", nearly, true),
            ("shuffled", shuffled, false),
            ("backwards", backwards, false),
            ("two files", two_files, false),
            ("one is late", one_is_late, false),
            ("few", vec![3, 1, 2, 1], true),
            ("none", Vec::new(), true),
        ] {
            let (sorted, plain, in_order) = both(&times);
            assert!(sorted == plain, "{name}");
            assert_eq!(in_order, expected, "{name}");
        }
    }
}
