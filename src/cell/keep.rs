//! What a cell holds, written down apart from any clock, and a cell that holds it again.

use super::books::Kept as KeptAccount;
use super::words::{Head, MAX_TIME, RingRef, Slot, State, TIME_ZERO, time_of};
use super::{Cells, Rules, Seat};
use crate::clock::Clock;
use crate::fingerprint::Fingerprint;
use crate::sync::Ordering;

/// The permits of a key, by their age in nanoseconds. An age is less than zero where a clock lags behind them.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Kept {
    /// The live stamps of a log, oldest first.
    Stamps(Vec<i64>),
    /// An account that opened so long ago.
    Account { age: i64, used: u64 },
    /// The steps of a quantised log, oldest first: the age of each one's end, and its permits.
    Steps(Vec<(i64, u32)>),
}

impl Cells {
    /// The permits that a cell holds of its key, if any matter. No decision waits for this. `None` when the cell may no longer decide
    /// for the key.
    pub(crate) fn keep(&self, seat: Seat<'_>, clock: &impl Clock) -> Option<Option<Kept>> {
        let Seat { mut head, cell, .. } = seat;
        loop {
            if let Some(kept) = self.keep_at(seat, head, clock) {
                return Some(kept);
            }
            let now = cell.head();
            if !head.goes_on_at(now) {
                return None;
            }
            head = now;
        }
    }

    /// One attempt; `None` if something had to be done first, or has changed.
    fn keep_at(&self, seat: Seat<'_>, head: Head, clock: &impl Clock) -> Option<Option<Kept>> {
        let cell = seat.cell;
        if head.state() == State::Held {
            self.help(head);
            return None;
        }
        let reference = cell.reference();
        let now = time_of(clock.now());
        let kept = match self.rules_at(seat) {
            Rules::Log(limits) => {
                let view = self.log_view(limits, cell, head, clock)?;
                let ring = view.ring;
                // What is reserved is kept beside what is live now.
                let live_at = view.live_at(head);
                let live = ring.live_at(head, limits.live_from(live_at));
                let stamps = (ring.len() - live..ring.len()).map(|at| ring.load(head.pos() + at).time());
                let ages: Vec<i64> = stamps.map(|stamp| age(view.reading, stamp)).collect();
                (!ages.is_empty()).then_some(Kept::Stamps(ages))
            }
            Rules::Account(books) => match books.kept(head, Slot(reference.0), now) {
                KeptAccount::Nothing => None,
                KeptAccount::Running { opened, used } => Some(Kept::Account { age: age(now, opened), used }),
                KeptAccount::Unpublished => {
                    self.settle(cell, head, reference, now);
                    return None;
                }
            },
            Rules::Steps(stepped) => self.keep_steps(stepped, cell, head, clock)?,
        };
        let stands = cell.stands(head) && cell.refers_to(reference);
        stands.then_some(kept)
    }

    /// A cell for a key that holds what was kept of it `elapsed` nanoseconds ago, as far as that still matters. Nobody else knows
    /// of it until its number and life, which this gives, are published. `None` when all cells are taken.
    pub(crate) fn put_back(&self, fingerprint: Fingerprint, kept: &Kept, elapsed: u64, now: u64) -> Option<(u32, u64)> {
        let id = self.cells.take()?;
        let cell = self.cells.element(id);
        let opened = Head(cell.head.load(Ordering::Relaxed)).with_state(State::Open);
        let mark = opened.ancient_mark();
        let at = |age: i64| {
            let time = i128::from(now) - i128::from(age) - i128::from(elapsed);
            // What was before the beginning of time has expired under any window.
            u64::try_from(time.clamp(i128::from(TIME_ZERO >> 1), i128::from(MAX_TIME))).unwrap_or(MAX_TIME)
        };
        let (reference, head) = match (self.rules(fingerprint), kept) {
            (Rules::Log(limits), Kept::Stamps(ages)) => {
                // No more than the limit can ever be in the way, beside as many that are reserved.
                let ages = &ages[ages.len().saturating_sub(2 * limits.limit())..];
                let is_ahead = ages.last().is_some_and(|&age| at(age) > now);
                let opened = if is_ahead { opened.with_state(State::Ahead) } else { opened };
                match ages {
                    [] => (RingRef(Slot::ancient(mark, opened.lap()).0), opened),
                    [age] => (RingRef(Slot::new(at(*age), false, opened.lap() + 1).0), opened),
                    _ => {
                        let (reference, ring) = self.new_ring(false, ages.len(), opened.lap());
                        ring.write_last(ages.len(), ages.iter().map(|&age| at(age)), opened.lap());
                        (reference, opened)
                    }
                }
            }
            (Rules::Account(books), Kept::Account { age, used }) => {
                let (head, slot) = books.reopened(opened, at(*age), *used);
                (RingRef(slot.0), head)
            }
            // Ruled out before: see `Plan::can_have`.
            (Rules::Account(books), Kept::Stamps(_) | Kept::Steps(_)) => {
                let (head, slot) = books.first(opened, 0, mark);
                (RingRef(slot.0), head)
            }
            (Rules::Steps(stepped), kept) => {
                let steps = if let Kept::Steps(steps) = kept { &**steps } else { &[] };
                self.put_steps_back(stepped, opened, steps, now, at)
            }
            (Rules::Log(_), Kept::Account { .. } | Kept::Steps(_)) => {
                (RingRef(Slot::ancient(mark, opened.lap()).0), opened)
            }
        };
        cell.ring.store(reference.0, Ordering::Release);
        cell.low.store(fingerprint.low, Ordering::Release);
        cell.high.store(fingerprint.high, Ordering::Release);
        cell.head.store(head.0, Ordering::Release);
        Some((id, head.life()))
    }
}

fn age(now: u64, stamp: u64) -> i64 {
    i64::try_from(i128::from(now) - i128::from(stamp)).unwrap_or(i64::MAX)
}
