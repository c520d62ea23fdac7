//! All the cells of a limiter: which algorithm decides for a key, and decisions by it.

use super::algorithm::{Algorithm, Ask, Attempt, Charged};
use super::counter::books::Books;
use super::counter::view::Counter;
use super::descriptor::{Joint, Part};
use super::log::view::Log;
use super::memory::{At, Cell};
use super::plan::Plan;
use super::quantised::view::Quantised;
use super::revisions::{ForKey, Revisions};
use super::store::Store;
use super::words::{Head, RingRef, State, time_of};
use crate::clock::Clock;
use crate::decision::{Admission, AtOnce, PerQuota, Status};
use crate::fingerprint::{Fingerprint, MAX_PLANS};
use crate::sync::Ordering;

/// All the cells of a limiter.
pub(crate) struct Cells {
    /// How keys are limited, by the number of the plan in their fingerprints.
    pub(super) plans: Box<[Revisions]>,
    pub(super) store: Store,
}

/// A cell that decides for the key that was asked for, as of the head that was seen.
#[derive(Clone, Copy)]
pub(crate) struct Seat<'a> {
    pub(crate) id: u32,
    pub(crate) head: Head,
    pub(super) plan: usize,
    pub(super) cell: &'a Cell,
}

/// One whose cell is [open](State::Open).
#[derive(Clone, Copy)]
pub(crate) struct OpenSeat<'a>(Seat<'a>);

impl<'a> OpenSeat<'a> {
    pub(crate) fn seat(self) -> Seat<'a> {
        self.0
    }
}

impl<'a> Seat<'a> {
    #[inline(always)]
    pub(super) fn at(self) -> At<'a> {
        At { cell: self.cell, head: self.head }
    }

    /// The same as of another head, if it certainly is of the same life.
    fn goes_on_at(self, now: Head) -> Option<Self> {
        self.head.goes_on_at(now).then_some(Self { head: now, ..self })
    }
}

/// How the key of a cell is limited now: by one of the algorithms.
#[derive(Clone, Copy)]
pub(super) enum Rules<'a> {
    Log(Log<'a>),
    Counter(Counter<'a>),
    Quantised(Quantised<'a>),
}

/// Does the same by whichever algorithm it is.
macro_rules! by {
    ($rules:expr, $algorithm:ident => $does:expr) => {
        match $rules {
            crate::cell::cells::Rules::Log($algorithm) => $does,
            crate::cell::cells::Rules::Counter($algorithm) => $does,
            crate::cell::cells::Rules::Quantised($algorithm) => $does,
        }
    };
}
pub(super) use by;

impl Cells {
    /// Cells for keys of these plans, at least one and at most [`MAX_PLANS`].
    pub(crate) fn new(plans: Box<[Revisions]>, key_cap: u32) -> Self {
        Self::with(plans, key_cap, None)
    }

    /// As [`new`](Self::new), for claims on several cells, one of each plan.
    pub(crate) fn together(plans: Box<[Revisions]>, key_cap: u32) -> Self {
        Self::with(plans, key_cap, Some(Box::new(Joint::new())))
    }

    fn with(plans: Box<[Revisions]>, key_cap: u32, joint: Option<Box<Joint>>) -> Self {
        assert!((1..=MAX_PLANS).contains(&plans.len()), "{} plans", plans.len());
        let all = || plans.iter().map(|plan| plan.current().plan.new_keys());
        let longest = all().map(|plan| plan.longest_ring()).max().unwrap_or(1);
        let largest_block = all().map(|plan| plan.largest_block()).max().unwrap_or(0);
        Self { store: Store::new(key_cap, longest, largest_block, joint), plans }
    }

    /// Whether a key can hold this: its plan is there, and can have kept it.
    #[cfg(feature = "serde")]
    pub(crate) fn can_have(&self, key: Fingerprint, kept: &super::kept::Kept) -> bool {
        self.plans.get(key.plan()).is_some_and(|plan| plan.current().plan.new_keys().can_have(kept))
    }

    /// How the keys of this plan are limited, now and before.
    #[inline]
    pub(crate) fn revisions(&self, plan: usize) -> &Revisions {
        &self.plans[plan]
    }

    /// How a key is limited now.
    #[inline]
    pub(super) fn plan(&self, key: Fingerprint) -> &Plan {
        &self.plans[key.plan()].for_key(|| key).current.plan
    }

    /// The same, to decide by.
    #[inline]
    pub(super) fn rules(&self, key: Fingerprint) -> Rules<'_> {
        self.rules_by(self.plans[key.plan()].for_key(|| key))
    }

    /// The same, of the key of a seat.
    #[inline(always)]
    pub(super) fn rules_at(&self, seat: Seat<'_>) -> Rules<'_> {
        self.rules_by(self.plans[seat.plan].for_key(|| seat.cell.key()))
    }

    /// How the key of this cell is limited. What is read of a cell that has changed hands is some plan, too.
    pub(super) fn rules_of(&self, cell: &Cell) -> Rules<'_> {
        let plan = Fingerprint::plan_in(cell.high.load(Ordering::Acquire));
        let revisions = self.plans.get(plan).unwrap_or(&self.plans[0]);
        self.rules_by(revisions.for_key(|| cell.key()))
    }

    #[inline]
    fn rules_by<'a>(&'a self, revisions: ForKey<'a>) -> Rules<'a> {
        let store = &self.store;
        match &revisions.current.plan {
            Plan::Log(limits) => Rules::Log(Log { store, limits, revisions: revisions.all }),
            Plan::Counter(metered) => Rules::Counter(Counter { store, books: Books::new(revisions, metered) }),
            Plan::Quantised(stepped) => Rules::Quantised(Quantised { store, stepped }),
        }
    }

    /// The cell, if it is of this life and decides for this key.
    #[inline(always)]
    pub(crate) fn seat_for(&self, id: u32, life: u64, fingerprint: Fingerprint) -> Option<Seat<'_>> {
        let cell = self.store.cells.element(id);
        let head = cell.head();
        let decides = !matches!(head.state(), State::Free | State::Dead) && head.life() == life;
        (decides && cell.is_for(fingerprint)).then_some(Seat { id, head, plan: fingerprint.plan(), cell })
    }

    /// The same, if the cell is also open, and nothing is ahead of who claims.
    #[inline(always)]
    pub(crate) fn open_seat_for(&self, id: u32, life: u64, fingerprint: Fingerprint) -> Option<OpenSeat<'_>> {
        let cell = self.store.cells.element(id);
        let head = cell.head();
        let decides = head.is_open_in(life) && cell.is_for(fingerprint);
        decides.then_some(OpenSeat(Seat { id, head, plan: fingerprint.plan(), cell }))
    }

    /// Decides a request of `cost` permits, at least 1 and at most the limit, if that takes nothing out of the ordinary. The clock
    /// was read after the seat was found.
    #[inline(always)]
    pub(crate) fn decide_at_once(&self, OpenSeat(seat): OpenSeat<'_>, cost: u32, reading: u64) -> Option<AtOnce> {
        by!(self.rules_at(seat), algorithm => algorithm.at_once(seat.at(), cost, reading))
    }

    /// As [`decide_at_once`](Self::decide_at_once), with what is left.
    #[inline(always)]
    pub(crate) fn status_at_once(
        &self,
        OpenSeat(seat): OpenSeat<'_>,
        cost: u32,
        reading: u64,
        left: &mut PerQuota,
    ) -> Option<AtOnce> {
        by!(self.rules_at(seat), algorithm => algorithm.status_at_once(seat.at(), cost, reading, left))
    }

    /// What a request would be told, if that takes nothing out of the ordinary. The clock was read after the seat was found.
    #[inline(always)]
    pub(crate) fn peek_at_once(&self, OpenSeat(seat): OpenSeat<'_>, cost: u32, reading: u64) -> Option<Status> {
        by!(self.rules_at(seat), algorithm => algorithm.peek_at_once(seat.at(), cost, reading))
    }

    /// The same for tests, whose seats may be of any state.
    #[cfg(test)]
    pub(crate) fn at_once_if_open(&self, seat: Seat<'_>, cost: u32, reading: u64) -> Option<crate::decision::Decision> {
        let seat = (seat.head.state() == State::Open).then_some(OpenSeat(seat))?;
        self.decide_at_once(seat, cost, reading).map(crate::decision::Decision::from)
    }

    /// Decides a request of `cost` permits, at least 1 and at most the limit (0 for a peek). `None` when the cell may no longer
    /// decide for the key.
    pub(crate) fn decide(&self, ask: Ask, seat: Seat<'_>, cost: u32, clock: &impl Clock) -> Option<Status> {
        self.decide_to_lend(ask, seat, cost, clock).map(|(status, _)| status)
    }

    /// As [`decide`](Self::decide), and says what has to be known to give back what was charged.
    pub(crate) fn decide_to_lend(
        &self,
        ask: Ask,
        mut seat: Seat<'_>,
        cost: u32,
        clock: &impl Clock,
    ) -> Option<(Status, Charged)> {
        loop {
            match by!(self.rules_at(seat), algorithm => algorithm.attempt(ask, seat.at(), cost, clock)) {
                Attempt::Decided(status, charged) => return Some((status, charged)),
                Attempt::Lost(now) => seat = seat.goes_on_at(now)?,
            }
        }
    }

    /// What the key of a seat would be told of a request, by its head and a clock that was read after that. `None` if the head does not
    /// stand any more, or something had to be done first.
    pub(crate) fn look_once(&self, seat: Seat<'_>, cost: u32, clock: &impl Clock) -> Option<Status> {
        match by!(self.rules_at(seat), algorithm => algorithm.attempt(Ask::Peek, seat.at(), cost, clock)) {
            Attempt::Decided(status, _) => Some(status),
            Attempt::Lost(_) => None,
        }
    }

    /// Whether the cell has the head that was seen.
    pub(crate) fn still_stands(&self, seat: Seat<'_>) -> bool {
        seat.at().stands()
    }

    /// Gives back up to `cost` permits that were charged to a cell, and says how many. What no longer counts can't be given back.
    /// `None` when the cell may no longer decide for the key.
    pub(crate) fn give_back(&self, mut seat: Seat<'_>, charged: Charged, cost: u32, clock: &impl Clock) -> Option<u32> {
        if seat.head.life() != charged.head.life() || charged.mark == 0 {
            return Some(0);
        }
        loop {
            let given = by!(self.rules_at(seat), algorithm => algorithm.give_back(seat.at(), charged, cost, clock));
            if given.is_some() {
                return given;
            }
            seat = seat.goes_on_at(seat.cell.head())?;
        }
    }

    /// The permits that a cell holds of its key, if any matter. No decision waits for this. `None` when the cell may no longer decide
    /// for the key.
    #[cfg(feature = "serde")]
    pub(crate) fn keep(&self, mut seat: Seat<'_>, clock: &impl Clock) -> Option<Option<super::kept::Kept>> {
        loop {
            let kept = by!(self.rules_at(seat), algorithm => algorithm.keep(seat.at(), clock));
            if kept.is_some() {
                return kept;
            }
            seat = seat.goes_on_at(seat.cell.head())?;
        }
    }

    /// Prepares to claim `cost` permits of a cell, at least 1: what to claim, and what to say if it can be. `None` if it is denied by now, or
    /// something had to be done first, or has changed: look again.
    ///
    /// What is left then is written to `left`.
    pub(crate) fn prepare(
        &self,
        seat: Seat<'_>,
        cost: u32,
        clock: &impl Clock,
        left: Option<&mut PerQuota>,
    ) -> Option<(Part, Admission)> {
        // The one that grows may be a log's: a thread that gives something back, or refuses what counts, may have stopped halfway.
        let draft = by!(self.rules_at(seat), algorithm => algorithm.prepare(seat.at(), cost, clock, left))?;
        let part = Part { id: seat.id, seen: seat.head, next: draft.next, rings: draft.rings, mark: draft.mark };
        Some((part, draft.admission))
    }

    /// Claims all the parts, or none: says which. The cells have to be in the same order in every claim.
    pub(crate) fn claim_together<'a>(&self, parts: impl Iterator<Item = &'a Part> + Clone) -> bool {
        self.store.claim_together(parts)
    }

    /// Gives back what was prepared for a part that is not to be claimed.
    pub(crate) fn forgo(&self, part: &Part) {
        self.store.forgo(part);
    }

    /// Whether the cell has been taken back since the part was prepared.
    pub(crate) fn has_lost(&self, part: &Part) -> bool {
        self.store.cells.element(part.id).head().life() != part.seen.life()
    }

    /// Publishes what was claimed of a cell together with others, if nobody else has.
    pub(crate) fn publish(&self, part: &Part, clock: &impl Clock) {
        self.publish_at(At { cell: self.store.cells.element(part.id), head: part.next }, clock);
    }

    /// Publishes the claim that led to this head, unless the head has moved.
    pub(super) fn publish_at(&self, at: At<'_>, clock: &impl Clock) {
        if at.cell.head() == at.head {
            let reference = at.cell.reference();
            by!(self.rules_of(at.cell), algorithm => algorithm.settle(at, reference, time_of(clock.now())));
        }
    }

    /// What has to be known to give back what was claimed of a cell together with others, and is published.
    pub(crate) fn charged_to(&self, part: &Part) -> Charged {
        let cell = self.store.cells.element(part.id);
        by!(self.rules_of(cell), algorithm => algorithm.charged_to(cell, part))
    }

    /// What a key without permits is told.
    pub(crate) fn status_of_nothing(&self, key: Fingerprint, cost: u32, clock: &impl Clock) -> Status {
        self.plan(key).new_keys().status_of_nothing(cost, time_of(clock.now()))
    }

    /// The earliest time at which a new key is as new again that has just asked for its first `cost` permits.
    pub(crate) fn first_end(&self, key: Fingerprint, cost: u32, time: u64) -> u64 {
        self.plan(key).new_keys().first_end(cost, time)
    }

    /// What a new key is told that has just asked for its first `cost` permits.
    pub(crate) fn first_status(&self, key: Fingerprint, cost: u32, time: u64) -> Status {
        let lead = self.store.horizon().saturating_sub(time);
        self.plan(key).new_keys().first_status(cost, time, lead)
    }

    /// How long a key matters at most after its last permit.
    pub(crate) fn longest_window(&self) -> u64 {
        self.plans.iter().map(|plan| plan.current().plan.new_keys().longest_window()).max().unwrap_or(0)
    }

    /// Reads a cell for nothing but to have it in the cache; gives what leads to its ring.
    #[inline]
    pub(crate) fn touch(&self, id: u32) -> (Head, RingRef) {
        self.store.touch(id)
    }

    /// Reads the ring for nothing but to have it in the cache, if it is one.
    #[inline]
    pub(crate) fn touch_ring(&self, (head, reference): (Head, RingRef)) -> u64 {
        self.store.touch_ring(head, reference)
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        self.store.bytes() + self.plans.iter().map(Revisions::bytes).sum::<usize>()
    }
}

#[cfg(all(test, not(tollgate_loom)))]
impl Cells {
    /// Begins to claim all the parts, and stops.
    pub(crate) fn claim_and_stall<'a>(&self, parts: impl Iterator<Item = &'a Part>, stalled: super::joint::Stalled) {
        self.store.claim_and_stall(parts, stalled);
    }

    /// Puts the larger ring of a part in its place, as a helper may that saw the cell held. Says whether that changed anything.
    pub(crate) fn replaces_late(&self, part: &Part) -> bool {
        self.store.replaces_late(part)
    }
}

#[cfg(test)]
impl Cells {
    /// Begins to replace the ring of a cell, and stops.
    pub(crate) fn replace_and_stall(&self, seat: Seat<'_>) {
        assert!(seat.at().begin_resize(seat.head.state().growing()).is_some());
    }
}
