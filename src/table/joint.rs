//! Joint requests: one key of each dimension, all of them charged or none.

use super::find::{FindOrInsert, Table};
use super::refundable::Refundable;
use crate::cell::{MAX_CELLS, Part, Seat};
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
}

/// The results of a granted request beside the decision.
pub(super) struct Extras<'a> {
    /// The charges that can be refunded.
    pub(super) refundable: Option<&'a mut Vec<Refundable>>,
    /// The permits left.
    pub(super) told: Option<&'a mut JointStatus>,
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
pub(super) enum JointAttempt {
    /// The decision. Of all the denials, the one with the longest wait, which names the others.
    Done(Decision),
    Again,
    /// The cell of one of the keys was freed, perhaps to make room for another.
    Lost,
}

/// How often a request makes room for its new keys. A cell without permits can be freed, so two
/// requests that need more places than there are could free each other's for ever.
pub(super) const MAKES_ROOM: u32 = 4;

/// Each key of a request, with its dimension.
pub(super) fn by_dimension(keys: &[Option<Fingerprint>]) -> impl Iterator<Item = (usize, Fingerprint)> {
    keys.iter().enumerate().filter_map(|(dimension, key)| Some((dimension, (*key)?)))
}

/// The denial for want of a place.
pub(super) fn no_place(dimension: usize, retry_after_ns: u64) -> Denial {
    Denial::new(retry_after_ns, DenialReason::KeyCap, 0).in_dimension(dimension)
}

impl Table {
    /// Takes `cost` permits, at least 1, of each of these keys, or none. `keys` has at most
    /// [`MAX_CELLS`] keys, by dimension; an absent one is not asked. A key without a place is
    /// skipped if `admits_without_place`. Charges that can be refunded are added to `refundable`.
    pub(crate) fn acquire_together(
        &self,
        keys: &[Option<Fingerprint>],
        cost: u32,
        admits_without_place: bool,
        clock: &impl Clock,
        mut refundable: Option<&mut Vec<Refundable>>,
    ) -> Decision {
        let asked = Together { keys, cost, admits_without_place };
        let mut lost = 0;
        loop {
            let mut new = 0;
            let peek = |key| {
                let known = self.peek_cell(key, cost, clock);
                new += usize::from(known.is_none());
                let status = known.map_or_else(|| self.open_if_denied(key, cost, clock), Ok);
                if status.is_err() && !admits_without_place {
                    self.count_refused();
                }
                status
            };
            if let Decision::Denied(denial) = ask_each(keys, admits_without_place, peek) {
                return Decision::Denied(denial);
            }
            let room = if lost < MAKES_ROOM { self.make_room_for(keys, new, clock) } else { Err(1) };
            let extras = Extras { refundable: refundable.as_deref_mut(), told: None };
            match self.attempt_together(asked, room, clock, extras) {
                JointAttempt::Done(together) => return together,
                JointAttempt::Again => {}
                JointAttempt::Lost => lost += 1,
            }
        }
    }

    /// The answer of a new key. An error says that it needs a place, and when there may be one.
    ///
    /// A denial writes nothing, with one exception: the account of a quota that does not start full
    /// opens with the key's first request, even if that is denied. Otherwise the key would never
    /// earn a permit.
    fn open_if_denied(&self, key: Fingerprint, cost: u32, clock: &impl Clock) -> Result<Status, u64> {
        loop {
            let status = self.cells.status_of_nothing(key, cost, clock);
            if status.is_admitted() {
                return Ok(status);
            }
            self.seat(key, clock)?;
            if let Some(status) = self.peek_cell(key, cost, clock) {
                return Ok(status);
            }
        }
    }

    /// The keys without a cell, with their dimensions.
    pub(super) fn new_keys(&self, keys: &[Option<Fingerprint>]) -> impl Iterator<Item = (usize, Fingerprint)> {
        by_dimension(keys).filter(|&(_, key)| !self.has_cell(key))
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

    /// One attempt at a request that no key denied at its peek.
    pub(super) fn attempt_together(
        &self,
        asked: Together<'_>,
        room: Result<(), u64>,
        clock: &impl Clock,
        extras: Extras<'_>,
    ) -> JointAttempt {
        let Together { keys, cost, admits_without_place } = asked;
        let Extras { mut refundable, mut told } = extras;
        let generation = refundable.as_ref().map_or(0, |_| self.route().generation());
        let mut parts = Parts { parts: [None; MAX_CELLS], keys: [None; MAX_CELLS], count: 0 };
        let mut admission = Admission::COUNTED;
        if let (Err(retry_after_ns), false) = (room, admits_without_place)
            && let Some((dimension, _)) = self.new_keys(keys).nth(self.cells.room_up_to(MAX_CELLS))
        {
            self.count_refused();
            return JointAttempt::Done(Decision::Denied(no_place(dimension, retry_after_ns)));
        }
        for (dimension, fingerprint) in by_dimension(keys) {
            let place = match room {
                Err(retry_after_ns) if !self.has_place(fingerprint) => Err(retry_after_ns),
                _ => self.seat(fingerprint, clock),
            };
            let mut left = PerQuota::NONE;
            let prepared = match place {
                Ok(seat) => self.cells.prepare(seat, cost, clock, told.is_some().then_some(&mut left)),
                Err(_) if admits_without_place => {
                    if let Some(told) = &mut told {
                        told.push(dimension, &self.cells.status_of_nothing(fingerprint, 0, clock).left, None);
                    }
                    continue;
                }
                Err(retry_after_ns) => {
                    parts.each().for_each(|part| self.cells.forgo(part));
                    self.count_refused();
                    return JointAttempt::Done(Decision::Denied(no_place(dimension, retry_after_ns)));
                }
            };
            match prepared {
                Some((part, another)) => {
                    parts.push(fingerprint, part);
                    if let Some(told) = &mut told {
                        told.push(dimension, &left, None);
                    }
                    admission = admission.and(another);
                }
                None => {
                    parts.each().for_each(|part| self.cells.forgo(part));
                    return JointAttempt::Again;
                }
            }
        }
        if parts.count > 0 && !self.cells.claim_together(parts.each()) {
            let lost = parts.each().any(|part| self.cells.has_lost(part));
            return if lost { JointAttempt::Lost } else { JointAttempt::Again };
        }
        if parts.count < by_dimension(keys).count() {
            self.count_refused();
        }
        for (part, &fingerprint) in parts.each().zip(parts.keys.iter().flatten()) {
            self.cells.publish(part, clock);
            if let Some(refundable) = &mut refundable {
                let charge = self.cells.charge_of(part);
                refundable.push(Refundable { fingerprint, charge, cost, id: part.id, generation });
            }
        }
        JointAttempt::Done(Decision::Admitted(if parts.count == 0 { Admission::UNCOUNTED } else { admission }))
    }

    /// Whether the key has a cell, or one can be allocated without a sweep.
    fn has_place(&self, fingerprint: Fingerprint) -> bool {
        self.cells.has_room() || self.has_cell(fingerprint)
    }

    /// The cell of a key, inserted without permits if there is none. An error says when there may
    /// be a place.
    pub(super) fn seat(&self, fingerprint: Fingerprint, clock: &impl Clock) -> Result<Seat<'_>, u64> {
        loop {
            match self.find_or_insert(self.route(), fingerprint, 0, clock) {
                FindOrInsert::Seat(seat) => return Ok(seat),
                FindOrInsert::NoRoom { retry_after_ns } => return Err(retry_after_ns),
                FindOrInsert::Granted { .. } | FindOrInsert::Retry => {}
            }
        }
    }
}

/// The answer of all the keys. A key without a place is skipped if `admits_without_place`.
fn ask_each(
    keys: &[Option<Fingerprint>],
    admits_without_place: bool,
    mut peek: impl FnMut(Fingerprint) -> Result<Status, u64>,
) -> Decision {
    let (mut admission, mut denial) = (Admission::UNCOUNTED, None);
    for (dimension, key) in by_dimension(keys) {
        let another = match peek(key).map(|status| status.decision) {
            Ok(Decision::Admitted(another)) => {
                admission = another.and(admission);
                continue;
            }
            Ok(Decision::Denied(another)) => another.in_dimension(dimension),
            Err(_) if admits_without_place => continue,
            Err(retry_after_ns) => no_place(dimension, retry_after_ns),
        };
        denial = Some(denial.map_or(another, |denial: Denial| denial.and(another)));
    }
    denial.map_or(Decision::Admitted(admission), Decision::Denied)
}
