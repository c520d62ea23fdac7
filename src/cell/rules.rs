//! By which rules a cell decides, and what these have in common: the kinds of plan, side by side.

use super::books::Books;
use super::memory::Cell;
use super::plan::{Limits, Plan};
use super::revisions::{ForKey, Revisions};
use super::steps::Stepped;
use super::words::{Head, RingRef, Slot, time_of};
use super::{Cells, Seat};
use crate::clock::Clock;
use crate::decision::Status;
use crate::fingerprint::Fingerprint;
use crate::sync::Ordering;

impl Cells {
    /// How the keys of this plan are limited, if there is such a plan.
    #[cfg(feature = "serde")]
    pub(crate) fn plan_if_there(&self, plan: usize) -> Option<&Plan> {
        self.plans.get(plan).map(|plan| &plan.current().plan)
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
        Rules::of(self.plans[key.plan()].for_key(|| key))
    }

    /// The same, of the key of a seat.
    #[inline]
    pub(super) fn rules_at(&self, seat: Seat<'_>) -> Rules<'_> {
        Rules::of(self.plans[seat.plan].for_key(|| seat.cell.key()))
    }

    /// How the key of this cell is limited. What is read of a cell that has changed hands is some plan, too.
    pub(super) fn rules_of(&self, cell: &Cell) -> Rules<'_> {
        Rules::of(self.revisions_of(cell).for_key(|| cell.key()))
    }

    pub(super) fn revisions_of(&self, cell: &Cell) -> &Revisions {
        let plan = Fingerprint::plan_in(cell.high.load(Ordering::Acquire));
        self.plans.get(plan).unwrap_or(&self.plans[0])
    }

    /// Publishes the last claim if it is not published yet. It may be the first of a new key, so its time must not be
    /// earlier than the horizon.
    pub(super) fn settle(&self, cell: &Cell, head: Head, reference: RingRef, time: u64) {
        let time = time.max(self.horizon.load(Ordering::Acquire));
        match self.rules_of(cell) {
            Rules::Log(_) if reference.epoch() != head.epoch() => {}
            Rules::Log(limits) => {
                // While a cell grows its head stands still, but the ring may have been given away.
                let stands = || cell.stands(head) && (!reference.is_ring() || cell.refers_to(reference));
                let loosest = self.revisions_of(cell).loosest();
                self.ring(cell, reference).settle(
                    head,
                    loosest.as_ref().unwrap_or(limits),
                    limits.not_before(time),
                    stands,
                );
            }
            Rules::Account(books) => {
                books.settle(cell, head, Slot(reference.0), time);
            }
            Rules::Steps(stepped) => self.settle_steps(stepped, cell, head, reference, time),
        }
    }

    /// What a cell says about how long it matters.
    pub(super) fn known_of(&self, cell: &Cell, head: Head, reference: RingRef) -> Known {
        let known = match self.rules_of(cell) {
            Rules::Log(_) if reference.epoch() != head.epoch() => return Known::OfAnotherRing,
            Rules::Log(limits) => {
                let newest = self.ring(cell, reference).newest(head);
                newest.map(|newest| (limits.end_of(newest.time()), newest))
            }
            Rules::Account(books) => {
                let slot = Slot(reference.0);
                books.over_at(head, slot).map(|over| (over, slot))
            }
            Rules::Steps(stepped) => return self.known_of_steps(stepped, head, reference),
        };
        known.map_or(Known::Unpublished, |(end, newest)| Known::Until(end, newest))
    }

    /// What a key without permits is told.
    pub(crate) fn status_of_nothing(&self, key: Fingerprint, cost: u32, clock: &impl Clock) -> Status {
        self.plan(key).status_of_nothing(cost, time_of(clock.now()))
    }

    /// The earliest time at which a new key is as new again that has just asked for its first `cost` permits.
    pub(crate) fn first_end(&self, key: Fingerprint, cost: u32, time: u64) -> u64 {
        self.plan(key).first_end(cost, time)
    }

    /// What a new key is told that has just asked for its first `cost` permits.
    pub(crate) fn first_status(&self, key: Fingerprint, cost: u32, time: u64) -> Status {
        let lead = self.horizon.load(Ordering::Acquire).saturating_sub(time);
        self.plan(key).first_status(cost, time, lead)
    }
}

/// How keys are limited now.
#[derive(Clone, Copy)]
pub(super) enum Rules<'a> {
    Log(&'a Limits),
    Account(Books<'a>),
    Steps(&'a Stepped),
}

impl<'a> Rules<'a> {
    #[inline]
    fn of(revisions: ForKey<'a>) -> Self {
        match &revisions.current.plan {
            Plan::Log(limits) => Self::Log(limits),
            Plan::Account(metered) => Self::Account(Books::new(revisions, metered)),
            Plan::Steps(stepped) => Self::Steps(stepped),
        }
    }
}

/// What a cell says about how long it matters.
pub(super) enum Known {
    /// Until this time; and the newest stamp, or the anchor.
    Until(u64, Slot),
    /// The last claim is not published yet.
    Unpublished,
    /// What was read of the head and of the ring does not belong together.
    OfAnotherRing,
}
