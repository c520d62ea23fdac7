//! Requests on several keys at once, one of each dimension: all of them are charged, or none.

use super::{BroughtIn, Lent, Located, Placed, Table};
use crate::cell::{MAX_CELLS, Part, Prepared, Seat};
use crate::clock::Clock;
use crate::decision::{Admission, Denial, DenialReason};
use crate::fingerprint::Fingerprint;
use crate::sync::Ordering;

/// What a request on several keys came to.
pub(crate) enum Together {
    Admitted(Admission),
    /// Of all the denials, the one with the longest wait, which knows of the others.
    Denied(Denial),
}

/// The parts of one attempt.
struct Parts {
    parts: [Option<Part>; MAX_CELLS],
    keys: [Option<Fingerprint>; MAX_CELLS],
    count: usize,
}

impl Parts {
    fn push(&mut self, key: Fingerprint, part: Part) {
        self.parts[self.count] = Some(part);
        self.keys[self.count] = Some(key);
        self.count += 1;
    }

    fn each(&self) -> impl Iterator<Item = &Part> + Clone {
        self.parts.iter().flatten()
    }
}

/// How one attempt ended.
enum Attempt {
    Done(Together),
    Again,
    /// A cell that was made for one of the keys has been taken back, perhaps to make room for the next.
    Lost,
}

/// How often a request makes room for its new keys before it makes do with the room that there is. A cell without permits can be
/// taken back: if there are fewer places than new keys, the last would for ever take the place of the first.
const MAKES_ROOM: u32 = 4;

impl Table {
    /// `cost` permits, at least 1, of each of these keys, or none at all. `keys` holds at most [`MAX_CELLS`] keys, by their
    /// dimension; those that are not there are not asked. A key that finds no place is passed over if `admits_without_place`. What
    /// could be given back is added to `lent`.
    pub(crate) fn acquire_together(
        &self,
        keys: &[Option<Fingerprint>],
        cost: u32,
        admits_without_place: bool,
        clock: &impl Clock,
        mut lent: Option<&mut Vec<Lent>>,
    ) -> Together {
        let mut lost = 0;
        loop {
            if let Some(denial) = self.denied_together(keys, cost, clock) {
                return Together::Denied(denial);
            }
            match self.attempt_together(keys, cost, admits_without_place, lost < MAKES_ROOM, clock, lent.as_deref_mut())
            {
                Attempt::Done(together) => return together,
                Attempt::Again => {}
                Attempt::Lost => lost += 1,
            }
        }
    }

    /// Why the request would be denied, if it would: what all the keys say, without a trace.
    pub(crate) fn denied_together(
        &self,
        keys: &[Option<Fingerprint>],
        cost: u32,
        clock: &impl Clock,
    ) -> Option<Denial> {
        let mut denial: Option<Denial> = None;
        for (dimension, fingerprint) in keys.iter().enumerate().filter_map(|(at, key)| Some((at, (*key)?))) {
            if let Some(another) = self.peek(fingerprint, cost, clock).denial() {
                let another = another.in_dimension(dimension);
                denial = Some(denial.map_or(another, |denial| denial.and(another)));
            }
        }
        denial
    }

    fn attempt_together(
        &self,
        keys: &[Option<Fingerprint>],
        cost: u32,
        admits_without_place: bool,
        makes_room: bool,
        clock: &impl Clock,
        mut lent: Option<&mut Vec<Lent>>,
    ) -> Attempt {
        let mut parts = Parts { parts: [None; MAX_CELLS], keys: [None; MAX_CELLS], count: 0 };
        let mut admission = Admission::COUNTED;
        for (dimension, fingerprint) in keys.iter().enumerate().filter_map(|(at, key)| Some((at, (*key)?))) {
            let place = if makes_room || self.has_place(fingerprint) {
                self.seat(fingerprint, clock)
            } else {
                self.refused_at_cap.fetch_add(1, Ordering::Relaxed);
                Err(1)
            };
            let prepared = match place {
                Ok(seat) => self.cells.prepare(seat, cost, clock),
                Err(_) if admits_without_place => continue,
                Err(retry_after_ns) => {
                    parts.each().for_each(|part| self.cells.forgo(part));
                    let denial = Denial::new(retry_after_ns, DenialReason::KeyCap, 0).in_dimension(dimension);
                    return Attempt::Done(Together::Denied(denial));
                }
            };
            match prepared {
                Prepared::Fits(part, another) => {
                    parts.push(fingerprint, part);
                    admission = admission.and(another);
                }
                Prepared::Again => {
                    parts.each().for_each(|part| self.cells.forgo(part));
                    return Attempt::Again;
                }
            }
        }
        if parts.count == 0 {
            return Attempt::Done(Together::Admitted(Admission::UNCOUNTED));
        }
        if !self.cells.claim_together(parts.each()) {
            let lost = parts.each().any(|part| self.cells.has_lost(part));
            return if lost { Attempt::Lost } else { Attempt::Again };
        }
        for (part, &fingerprint) in parts.each().zip(parts.keys.iter().flatten()) {
            self.cells.publish(part, clock);
            if let Some(lent) = &mut lent {
                lent.push(Lent { fingerprint, charged: self.cells.charged_to(part), cost, cell: part.cell });
            }
        }
        Attempt::Done(Together::Admitted(admission))
    }

    /// Whether the key has a cell, or there is one to be had without taking one back.
    fn has_place(&self, fingerprint: Fingerprint) -> bool {
        self.cells.has_room() || !matches!(self.locate::<false>(self.route(), fingerprint), Located::Nowhere)
    }

    /// The cell of a key, made if there is none, with no permits. An error says how long until there may be a place.
    pub(super) fn seat(&self, fingerprint: Fingerprint, clock: &impl Clock) -> Result<Seat<'_>, u64> {
        loop {
            match self.bring_in(self.route(), fingerprint, 0, clock) {
                BroughtIn::Seat(seat) => return Ok(seat),
                BroughtIn::Placed(Placed::NoRoom { retry_after_ns }) => return Err(retry_after_ns),
                BroughtIn::Placed(Placed::Decided(_)) | BroughtIn::Retry => {}
            }
        }
    }
}
