//! Joint requests: one key of each dimension, all of them charged or none.

use core::time::Duration;

use super::find::{FindOrInsert, Table};
use super::refundable::Refundable;
use crate::cell::{Ask, MAX_CELLS, Part, Seat};
use crate::clock::Clock;
use crate::decision::{Admission, Decision, Denial, DenialReason, JointStatus, PerQuota, Status};
use crate::fingerprint::Fingerprint;

/// A joint request.
#[derive(Clone, Copy)]
pub(crate) struct Together<'a> {
    /// At most [`MAX_CELLS`] keys, by dimension; an absent one is not asked.
    pub(crate) keys: &'a [Option<Fingerprint>],
    /// The permits asked of each.
    pub(crate) cost: u32,
    /// Whether a key without a place is skipped.
    pub(crate) admits_without_place: bool,
    /// Whether the admission may have a delay.
    pub(crate) may_wait: bool,
}

impl Together<'_> {
    /// The peek that answers as this request is answered.
    pub(super) fn peek(&self) -> Ask {
        if self.may_wait { Ask::Peek } else { Ask::PeekReserve { within: 0 } }
    }
}

/// The results of a granted request beside the decision.
pub(super) struct Extras<'a> {
    /// The charges that can be refunded.
    pub(super) refundable: Option<&'a mut Vec<Refundable>>,
    /// The permits left.
    pub(super) told: Option<&'a mut JointStatus>,
}

/// The most cells without permits that a request makes: one for each key, and sixteen for cells
/// that it has lost. Other requests may free such a cell to make room. Without a bound, two
/// requests that need more places than there are could free each other's cells for ever.
pub(super) const MOST_MADE: usize = MAX_CELLS + 16;

/// Each key of a request, with its dimension.
pub(super) fn by_dimension(keys: &[Option<Fingerprint>]) -> impl Iterator<Item = (usize, Fingerprint)> {
    keys.iter().enumerate().filter_map(|(dimension, key)| Some((dimension, (*key)?)))
}

/// The denial for want of a place.
pub(super) fn no_place(dimension: usize, retry_after_ns: u64) -> Denial {
    Denial::new(retry_after_ns, DenialReason::KeyCap, 0).in_dimension(dimension)
}

/// The answers of some keys and of one more. Of all denials, the one with the longest wait, which
/// names the others.
pub(super) fn and(all: Decision, dimension: usize, another: Decision) -> Decision {
    match (all, another) {
        (Decision::Admitted(all), Decision::Admitted(another)) => Decision::Admitted(another.and(all)),
        (Decision::Denied(_), Decision::Admitted(_)) => all,
        (Decision::Admitted(_), Decision::Denied(another)) => Decision::Denied(another.in_dimension(dimension)),
        (Decision::Denied(all), Decision::Denied(another)) => {
            Decision::Denied(all.and(another.in_dimension(dimension)))
        }
    }
}

impl Table {
    /// Takes the permits of each of the keys, or of none.
    pub(crate) fn acquire_together(&self, asked: Together<'_>, clock: &impl Clock) -> Decision {
        let mut made = 0;
        loop {
            let (peeked, new) = self.peek_each(asked, clock, &mut made);
            if peeked.is_denied() {
                return peeked;
            }
            let extras = Extras { refundable: None, told: None };
            if let Some(decision) = self.attempt_together(asked, new, clock, &mut made, extras) {
                return decision;
            }
        }
    }

    /// The answer of the keys, read one after the other, and the number of keys without a cell.
    fn peek_each(&self, asked: Together<'_>, clock: &impl Clock, made: &mut usize) -> (Decision, usize) {
        let (mut all, mut new) = (Decision::Admitted(Admission::UNCOUNTED), 0);
        for (dimension, key) in by_dimension(asked.keys) {
            let known = self.peek_cell(asked.peek(), key, asked.cost, clock);
            new += usize::from(known.is_none());
            all = match known.map_or_else(|| self.open_if_denied(asked, key, clock, made), Ok) {
                Ok(status) => and(all, dimension, status.decision),
                Err(_) if asked.admits_without_place => continue,
                Err(retry_after_ns) => {
                    self.count_refused();
                    and(all, dimension, Decision::Denied(no_place(dimension, retry_after_ns)))
                }
            };
        }
        (all, new)
    }

    /// The answer of a new key. An error says that it needs a place, and when there may be one.
    ///
    /// A denial writes nothing, with one exception: the account of a quota that does not start full
    /// opens with the key's first request, even if that is denied. Otherwise the key would never
    /// earn a permit.
    fn open_if_denied(
        &self,
        asked: Together<'_>,
        key: Fingerprint,
        clock: &impl Clock,
        made: &mut usize,
    ) -> Result<Status, u64> {
        loop {
            let status = self.cells.status_of_nothing(key, asked.cost, clock);
            if status.is_admitted() {
                return Ok(status);
            }
            self.seat(key, clock, made)?;
            if let Some(status) = self.peek_cell(asked.peek(), key, asked.cost, clock) {
                return Ok(status);
            }
        }
    }

    /// The keys without a cell, with their dimensions.
    pub(super) fn new_keys(&self, keys: &[Option<Fingerprint>]) -> impl Iterator<Item = (usize, Fingerprint)> {
        by_dimension(keys).filter(|&(_, key)| self.seat_of(key).is_none())
    }

    /// Makes room for all the keys without a cell (`wanted` at the last lookup) before any gets
    /// one: so the last does not get the place of the first. An error says when there may be room.
    pub(super) fn make_room_for(
        &self,
        keys: &[Option<Fingerprint>],
        mut wanted: usize,
        clock: &impl Clock,
    ) -> Result<(), u64> {
        if self.cells.room_up_to(wanted) >= wanted {
            return Ok(());
        }
        loop {
            let made = self.make_room(wanted, clock);
            // The cell of one of the keys may have been freed for it, or another thread may have
            // made one.
            let wanted_now = self.new_keys(keys).count();
            if wanted_now == wanted {
                return made;
            }
            wanted = wanted_now;
        }
    }

    /// One attempt at a request that no key denied at its peek; `new` keys had no cell then.
    /// Returns `None` if another thread was faster.
    pub(super) fn attempt_together(
        &self,
        asked: Together<'_>,
        new: usize,
        clock: &impl Clock,
        made: &mut usize,
        extras: Extras<'_>,
    ) -> Option<Decision> {
        let Together { keys, cost, admits_without_place, may_wait } = asked;
        let Extras { mut refundable, mut told } = extras;
        let room = if *made < MOST_MADE { self.make_room_for(keys, new, clock) } else { Err(1) };
        let generation = refundable.as_ref().map_or(0, |_| self.route().generation());
        if let (Err(retry_after_ns), false) = (room, admits_without_place) {
            if let Some((dimension, _)) = self.new_keys(keys).nth(self.cells.room_up_to(MAX_CELLS)) {
                self.count_refused();
                return Some(Decision::Denied(no_place(dimension, retry_after_ns)));
            }
        }
        let mut parts: [Option<Part>; MAX_CELLS] = [None; MAX_CELLS];
        let forgo = |parts: &[Option<Part>]| parts.iter().flatten().for_each(|part| self.cells.forgo(part));
        let mut admission = Admission::COUNTED;
        for (dimension, key) in by_dimension(keys) {
            let place = match room {
                Err(retry_after_ns) if !self.cells.has_room() && self.seat_of(key).is_none() => Err(retry_after_ns),
                _ => self.seat(key, clock, made),
            };
            let mut left = PerQuota::NONE;
            match place {
                Ok(seat) => {
                    let prepared = self.cells.prepare(seat, cost, clock, told.is_some().then_some(&mut left));
                    let Some((part, another)) = prepared else {
                        forgo(&parts);
                        return None;
                    };
                    parts[dimension] = Some(part);
                    // Another request took the place in the queue since the peek.
                    if !may_wait && another.delay() > Duration::ZERO {
                        forgo(&parts);
                        return None;
                    }
                    admission = admission.and(another);
                }
                Err(_) if admits_without_place => {
                    if told.is_some() {
                        left = self.cells.status_of_nothing(key, 0, clock).left;
                    }
                }
                Err(retry_after_ns) => {
                    forgo(&parts);
                    self.count_refused();
                    return Some(Decision::Denied(no_place(dimension, retry_after_ns)));
                }
            }
            if let Some(told) = &mut told {
                told.push(dimension, &left, None);
            }
        }
        let count = parts.iter().flatten().count();
        if count > 0 && !self.cells.claim_together(parts.iter().flatten()) {
            return None;
        }
        if count < by_dimension(keys).count() {
            self.count_refused();
        }
        for (part, fingerprint) in parts.iter().zip(keys).filter_map(|(part, key)| Some((part.as_ref()?, (*key)?))) {
            self.cells.publish(part, clock);
            if let Some(refundable) = &mut refundable {
                let charge = self.cells.charge_of(part);
                refundable.push(Refundable { fingerprint, charge, cost, id: part.id, generation });
            }
        }
        Some(Decision::Admitted(if count == 0 { Admission::UNCOUNTED } else { admission }))
    }

    /// The cell of a key, inserted without permits if there is none. An error says when there may
    /// be a place. The request has made `made` such cells, and makes at most [`MOST_MADE`].
    pub(super) fn seat(&self, key: Fingerprint, clock: &impl Clock, made: &mut usize) -> Result<Seat<'_>, u64> {
        while *made < MOST_MADE {
            match self.find_or_insert(self.route(), key, 0, clock)? {
                FindOrInsert::Seat(seat) => return Ok(seat),
                FindOrInsert::Granted(..) | FindOrInsert::Discarded => *made += 1,
                FindOrInsert::Retry => {}
            }
        }
        self.seat_of(key).ok_or(1)
    }
}
