//! Joint requests with a status: the permits left of every quota.
//!
//! # One instant
//!
//! The keys are read one after the other, while other threads claim. So all heads are loaded first,
//! then the clock, then the cells, and last all heads again. If all of them still stand, the
//! numbers are of the moment between (INV-VALIDATE). If one does not, another thread has made
//! progress, and all is read again.
//!
//! An admission needs no second look: a joint claim succeeds only on the heads that it was prepared
//! for, so the numbers are of the moment at which it is decided (INV-ALL-OR-NONE).

use super::find::Table;
use super::joint::{Extras, Together, and, by_dimension, no_place};
use super::refundable::Refundable;
use crate::cell::{MAX_CELLS, Seat};
use crate::clock::Clock;
use crate::decision::{Admission, Decision, JointStatus, Left};
use crate::fingerprint::Fingerprint;
use crate::noted::At;

/// The answers of all keys of a request.
struct Peeked {
    status: JointStatus,
    /// The number of keys without a cell.
    new: usize,
    /// The number of these that are denied their first request, and need a place for that: see
    /// [`Table::open_if_denied`].
    low: usize,
    /// How long until there may be a place, by the dimension of each key that finds none.
    without_place: [Option<u64>; MAX_CELLS],
}

impl Peeked {
    const NOTHING: Self = Self { status: JointStatus::new(), new: 0, low: 0, without_place: [None; MAX_CELLS] };
}

impl Table {
    /// As [`acquire_together`](Self::acquire_together), with the permits left of each quota.
    pub(crate) fn acquire_together_status(
        &self,
        asked: Together<'_>,
        clock: &impl Clock,
        mut refundable: Option<&mut Vec<Refundable>>,
    ) -> JointStatus {
        let (mut made, mut peeked) = (0, Peeked::NOTHING);
        loop {
            self.peek_together(asked, clock, &mut peeked);
            let opens = |key, _| {
                let seat = self.seat(key, clock, &mut made).inspect_err(|_| self.count_refused());
                seat.map(|_| true)
            };
            if !self.open_low(asked, &mut peeked, clock, opens) {
                continue;
            }
            if peeked.status.is_denied() {
                return peeked.status;
            }
            let mut granted = JointStatus::new();
            let extras = Extras { refundable: refundable.as_deref_mut(), told: Some(&mut granted) };
            match self.attempt_together(asked, peeked.new, clock, &mut made, extras) {
                Some(Decision::Denied(denial)) => {
                    peeked.status.deny_without_place(denial);
                    return peeked.status;
                }
                Some(decision) => return granted.with_decision(decision),
                None => {}
            }
        }
    }

    /// The answer of [`acquire_together_status`](Self::acquire_together_status). Charges nothing.
    pub(crate) fn preview_together_status(&self, asked: Together<'_>, clock: &impl Clock) -> JointStatus {
        let mut peeked = Peeked::NOTHING;
        loop {
            self.peek_together(asked, clock, &mut peeked);
            let opens = |_, others: usize| self.make_room(others + 1, clock).map(|()| false);
            if self.open_low(asked, &mut peeked, clock, opens) {
                break;
            }
        }
        let Peeked { mut status, new, .. } = peeked;
        if asked.cost == 0 || status.is_denied() {
            return status;
        }
        let Err(retry_after_ns) = self.make_room_for(asked.keys, new, clock) else { return status };
        let places = self.cells.room_up_to(MAX_CELLS);
        match self.new_keys(asked.keys).nth(places) {
            Some((dimension, _)) if !asked.admits_without_place => {
                status.deny_without_place(no_place(dimension, retry_after_ns));
            }
            Some(_) if places == 0 && self.new_keys(asked.keys).count() == by_dimension(asked.keys).count() => {
                status.decision = Decision::Admitted(Admission::UNCOUNTED);
            }
            _ => {}
        }
        status
    }

    /// The answers of all keys at one instant.
    fn peek_together(&self, asked: Together<'_>, clock: &impl Clock, peeked: &mut Peeked) {
        loop {
            let mut seats = [None; MAX_CELLS];
            for (dimension, key) in by_dimension(asked.keys) {
                seats[dimension] = self.seat_of(key);
            }
            // After all the heads (INV-CLOCK-LAST).
            let shown = At(clock.now());
            if self.peek_by(asked, &seats, &shown, peeked) {
                return;
            }
        }
    }

    /// The answers of all keys by these heads. `false` if not all of them stand any more.
    fn peek_by(&self, asked: Together<'_>, seats: &[Option<Seat<'_>>], shown: &At, peeked: &mut Peeked) -> bool {
        peeked.status.clear();
        (peeked.new, peeked.low) = (0, 0);
        let mut all = Decision::Admitted(Admission::UNCOUNTED);
        for (dimension, key) in by_dimension(asked.keys) {
            if let Some(wait_ns) = peeked.without_place[dimension] {
                let left = self.cells.status_of_nothing(key, 0, shown).left;
                if asked.admits_without_place {
                    peeked.status.push(dimension, &left, None);
                } else {
                    let none = left.map(|left| Left::none_for(left.limit, wait_ns));
                    peeked.status.push(dimension, &none, Some(asked.cost));
                    all = and(all, dimension, Decision::Denied(no_place(dimension, wait_ns)));
                }
                continue;
            }
            let told = match seats[dimension] {
                Some(seat) => self.cells.peek_once(asked.peek(), seat, asked.cost, shown),
                None => Some(self.cells.status_of_nothing(key, asked.cost, shown)),
            };
            let Some(told) = told else { return false };
            let is_denied = told.decision.is_denied();
            peeked.status.push(dimension, &told.left, is_denied.then_some(asked.cost));
            if seats[dimension].is_none() {
                peeked.new += 1;
                peeked.low += usize::from(is_denied);
            }
            all = and(all, dimension, told.decision);
        }
        peeked.status.decision = all;
        by_dimension(asked.keys).all(|(dimension, key)| match seats[dimension] {
            Some(seat) => self.cells.still_valid(seat),
            None => self.seat_of(key).is_none(),
        })
    }

    /// Finds a place for each new key that is denied its first request: see
    /// [`Table::open_if_denied`]. `place` is called with the number of those before, and returns
    /// whether all keys have to be read again. So does this, by `false`.
    fn open_low(
        &self,
        asked: Together<'_>,
        peeked: &mut Peeked,
        clock: &impl Clock,
        mut place: impl FnMut(Fingerprint, usize) -> Result<bool, u64>,
    ) -> bool {
        let mut is_same = true;
        if peeked.low == 0 {
            return is_same;
        }
        let low = |&(dimension, key): &(usize, Fingerprint)| {
            peeked.without_place[dimension].is_none()
                && self.cells.status_of_nothing(key, asked.cost, clock).is_denied()
        };
        let low: Vec<_> = self.new_keys(asked.keys).filter(low).collect();
        for (others, (dimension, key)) in low.into_iter().enumerate() {
            let placed = place(key, others);
            is_same &= placed == Ok(false);
            peeked.without_place[dimension] = placed.err();
        }
        is_same
    }
}
