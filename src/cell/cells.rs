//! All the cells of a limiter: the driver of a key, and decisions by it.

use super::counter::view::{Counter, KeptBy};
use super::descriptor::{Descriptors, Part};
use super::driver::{Ask, Charge, Decide, Driver, Fast, NewKeys, Refund};
use super::log::view::Log;
use super::memory::{At, Cell};
use super::plan::Plan;
use super::quantised::view::Quantised;
use super::store::Store;
use super::versions::{ForKey, Version, Versions};
use super::words::{Head, RingRef, State, time_of};
use crate::clock::Clock;
use crate::decision::{Admission, FastDecision, PerQuota, Status};
use crate::fingerprint::{Fingerprint, MAX_PLANS};
use crate::sync::{AtomicU64, Ordering};

/// All the cells of a limiter.
pub(crate) struct Cells {
    /// The plans, by the number in a key's fingerprint.
    pub(super) plans: Box<[Versions]>,
    pub(super) store: Store,
}

/// A cell that decides for the key of a request, as of the head that was loaded.
#[derive(Clone, Copy)]
pub(crate) struct Seat<'a> {
    pub(crate) id: u32,
    pub(crate) head: Head,
    pub(super) plan: usize,
    pub(super) cell: &'a Cell,
}

/// A seat whose cell is [open](State::Open).
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

    /// Repeats an attempt as long as the cell certainly decides for the same key (INV-INCARNATION).
    pub(super) fn until_some<T>(mut self, attempt: impl Fn(Self) -> Option<T>) -> Option<T> {
        loop {
            let done = attempt(self);
            if done.is_some() {
                return done;
            }
            let now = self.cell.head();
            self.head = self.head.goes_on_at(now).then_some(now)?;
        }
    }
}

/// The driver of a key, with its current quotas.
#[derive(Clone, Copy)]
pub(super) enum AnyDriver<'a> {
    Log(Log<'a>),
    Counter(Counter<'a>),
    Quantised(Quantised<'a>),
}

/// Calls the same method of whichever driver it is.
macro_rules! dispatch {
    ($any:expr, $driver:ident => $does:expr) => {
        match $any {
            crate::cell::cells::AnyDriver::Log($driver) => $does,
            crate::cell::cells::AnyDriver::Counter($driver) => $does,
            crate::cell::cells::AnyDriver::Quantised($driver) => $does,
        }
    };
}
pub(super) use dispatch;

/// Calls the same method of the fast path of whichever driver it is. The driver is the same
/// in each version. The clock is read after the newest claim was seen (INV-CLOCK-LAST), and the
/// version after the clock (INV-VERSION).
macro_rules! dispatch_fast {
    ($cells:ident, $seat:ident, $clock:ident, $driver:ident, $fast:ident => $does:expr) => {
        match &$cells.plans[$seat.plan].first.plan {
            Plan::Log(_) => dispatch_fast!(Log, $cells, $seat, $clock, $driver, $fast => $does),
            Plan::Counter(_) => dispatch_fast!(Counter, $cells, $seat, $clock, $driver, $fast => $does),
            Plan::Quantised(_) => dispatch_fast!(Quantised, $cells, $seat, $clock, $driver, $fast => $does),
        }
    };
    ($name:ident, $cells:ident, $seat:ident, $clock:ident, $driver:ident, $fast:ident => $does:expr) => {{
        let newest = $name::newest(&$cells.store, $seat.at())?;
        let $fast = Fast { at: $seat.at(), newest, reading: time_of($clock.now()) };
        let AnyDriver::$name($driver) = $cells.driver_at($seat) else { return None };
        $does
    }};
}

impl Cells {
    /// Cells for keys of these plans, at least one and at most [`MAX_PLANS`].
    pub(crate) fn new(plans: Box<[Versions]>, key_cap: u32) -> Self {
        Self::with(plans, key_cap, None)
    }

    /// As [`new`](Self::new), for joint claims on one cell of each plan.
    pub(crate) fn together(plans: Box<[Versions]>, key_cap: u32) -> Self {
        Self::with(plans, key_cap, Some(Box::new(Descriptors::new())))
    }

    fn with(plans: Box<[Versions]>, key_cap: u32, descriptors: Option<Box<Descriptors>>) -> Self {
        assert!((1..=MAX_PLANS).contains(&plans.len()), "{} plans", plans.len());
        let all = || plans.iter().map(|plan| plan.current().plan.new_keys());
        let longest = all().map(|plan| plan.longest_ring()).max().unwrap_or(1);
        let largest_block = all().map(|plan| plan.largest_block()).max().unwrap_or(0);
        Self { store: Store::new(key_cap, longest, largest_block, descriptors), plans }
    }

    /// The versions of this plan.
    #[inline]
    pub(crate) fn versions(&self, plan: usize) -> &Versions {
        &self.plans[plan]
    }

    /// The key's quotas, as for a key without a cell.
    fn new_keys(&self, key: Fingerprint) -> &dyn NewKeys {
        self.versions(key.plan()).current_for(key).plan.new_keys()
    }

    /// The versions of the key's quotas.
    #[inline]
    pub(super) fn versions_of(&self, key: Fingerprint) -> ForKey<'_> {
        self.plans[key.plan()].for_key(|| key)
    }

    /// The driver of the key of a seat.
    #[inline(always)]
    pub(super) fn driver_at(&self, seat: Seat<'_>) -> AnyDriver<'_> {
        self.driver_by(self.plans[seat.plan].for_key(|| seat.cell.key()))
    }

    /// The driver of the key of this cell. If the cell has changed owner, this is some algorithm
    /// of some plan.
    pub(super) fn driver_of(&self, cell: &Cell) -> AnyDriver<'_> {
        let plan = Fingerprint::plan_in(cell.high.load(Ordering::Acquire));
        let versions = self.plans.get(plan).unwrap_or(&self.plans[0]);
        self.driver_by(versions.for_key(|| cell.key()))
    }

    #[inline]
    pub(super) fn driver_by<'a>(&'a self, versions: ForKey<'a>) -> AnyDriver<'a> {
        let store = &self.store;
        match &versions.current.plan {
            Plan::Log(plan) => AnyDriver::Log(Log { store, plan, versions }),
            Plan::Counter(plan) => AnyDriver::Counter(Counter { store, kept_by: KeptBy { versions, plan } }),
            Plan::Quantised(plan) => AnyDriver::Quantised(Quantised { store, plan }),
        }
    }

    /// The cell, if it is of this incarnation and decides for this key (INV-ROUTE).
    #[inline(always)]
    pub(crate) fn seat_for(&self, id: u32, incarnation: u64, fingerprint: Fingerprint) -> Option<Seat<'_>> {
        let cell = self.store.cells.element(id);
        let head = cell.head();
        let decides = !matches!(head.state(), State::Free | State::Dead) && head.incarnation() == incarnation;
        (decides && cell.is_for(fingerprint)).then_some(Seat { id, head, plan: fingerprint.plan(), cell })
    }

    /// The same, if the cell is also open and has no reserved stamps.
    #[inline(always)]
    pub(crate) fn open_seat_for(&self, id: u32, incarnation: u64, fingerprint: Fingerprint) -> Option<OpenSeat<'_>> {
        let cell = self.store.cells.element(id);
        let head = cell.head();
        let decides = head.is_open_in(incarnation) && cell.is_for(fingerprint);
        decides.then_some(OpenSeat(Seat { id, head, plan: fingerprint.plan(), cell }))
    }

    /// The fast path: decides a request of `cost` permits, between 1 and the limit, and writes the
    /// permits left to `left`; or returns `None`.
    #[inline(always)]
    pub(crate) fn fast_decide(
        &self,
        OpenSeat(seat): OpenSeat<'_>,
        cost: u32,
        clock: &impl Clock,
        left: Option<&mut PerQuota>,
    ) -> Option<FastDecision> {
        dispatch_fast!(self, seat, clock, driver, fast => driver.fast_decide(fast, cost, left))
    }

    /// The fast path of a peek.
    #[inline(always)]
    pub(crate) fn fast_peek(&self, OpenSeat(seat): OpenSeat<'_>, cost: u32, clock: &impl Clock) -> Option<Status> {
        dispatch_fast!(self, seat, clock, driver, fast => driver.fast_peek(fast, cost))
    }

    /// The same for tests, whose seats may be of any state.
    #[cfg(test)]
    pub(crate) fn fast_if_open(&self, seat: Seat<'_>, cost: u32, reading: u64) -> Option<crate::decision::Decision> {
        let seat = (seat.head.state() == State::Open).then_some(OpenSeat(seat))?;
        self.fast_decide(seat, cost, &crate::noted::At(reading), None).map(crate::decision::Decision::from)
    }

    /// The slow path: decides a request of `cost` permits, between 1 and the limit (0 for a peek).
    /// `None` if the cell may no longer decide for the key.
    pub(crate) fn decide(&self, ask: Ask, seat: Seat<'_>, cost: u32, clock: &impl Clock) -> Option<Status> {
        self.decide_refundable(ask, seat, cost, clock).map(|(status, _)| status)
    }

    /// As [`decide`](Self::decide), and returns the charge.
    pub(crate) fn decide_refundable(
        &self,
        ask: Ask,
        seat: Seat<'_>,
        cost: u32,
        clock: &impl Clock,
    ) -> Option<(Status, Charge)> {
        let attempt = |seat| dispatch!(self.driver_at(seat), driver => driver.decide(ask, seat.at(), cost, clock));
        seat.until_some(attempt)
    }

    /// The answer of a seat to a peek, by its head and a clock that was read after it. `None` if
    /// the head has changed, or the cell had to be helped.
    pub(crate) fn peek_once(&self, ask: Ask, seat: Seat<'_>, cost: u32, clock: &impl Clock) -> Option<Status> {
        dispatch!(self.driver_at(seat), driver => driver.decide(ask, seat.at(), cost, clock)).map(|(status, _)| status)
    }

    /// Whether the head is unchanged.
    pub(crate) fn still_valid(&self, seat: Seat<'_>) -> bool {
        seat.at().validate()
    }

    /// Whether the laps prove that a charge was made in the incarnation of a seat
    /// (INV-INCARNATION).
    pub(crate) fn goes_on(&self, charge: Charge, seat: Seat<'_>) -> bool {
        // A held head has no lap.
        charge.head.goes_on_at(self.store.head_once_released(seat.cell))
    }

    /// Refunds up to `cost` permits of a charge, and returns how many. Expired permits do not come
    /// back. `None` if the cell may no longer decide for the key.
    pub(crate) fn refund(&self, seat: Seat<'_>, charge: Charge, cost: u32, clock: &impl Clock) -> Option<u32> {
        if seat.head.incarnation() != charge.head.incarnation() || charge.mark == 0 {
            return Some(0);
        }
        let attempt = |seat| dispatch!(self.driver_at(seat), driver => driver.refund(seat.at(), charge, cost, clock));
        seat.until_some(attempt)
    }

    /// Prepares one cell's part of a joint claim of `cost` permits, at least 1, with the answer if
    /// it succeeds, and writes the permits left after it to `left`. `None` if the request is denied
    /// by now, or the cell had to be helped, or has changed.
    pub(crate) fn prepare(
        &self,
        seat: Seat<'_>,
        cost: u32,
        clock: &impl Clock,
        left: Option<&mut PerQuota>,
    ) -> Option<(Part, Admission)> {
        // A refund or a refused request may have stalled in a resize of a log.
        let draft = dispatch!(self.driver_at(seat), driver => driver.prepare(seat.at(), cost, clock, left))?;
        let part = Part { id: seat.id, seen: seat.head, next: draft.next, rings: draft.rings, mark: draft.mark };
        Some((part, draft.admission))
    }

    /// Publishes one part of a joint claim, unless a helper has.
    pub(crate) fn publish(&self, part: &Part, clock: &impl Clock) {
        self.publish_at(At { cell: self.store.cells.element(part.id), head: part.next }, clock);
    }

    /// Publishes the claim that led to this head, unless the head has moved.
    pub(super) fn publish_at(&self, at: At<'_>, clock: &impl Clock) {
        if at.cell.head() == at.head {
            let reference = at.cell.reference();
            dispatch!(self.driver_of(at.cell), driver => driver.help(at, reference, time_of(clock.now())));
        }
    }

    /// The charge of one part of a joint claim that is published.
    pub(crate) fn charge_of(&self, part: &Part) -> Charge {
        let cell = self.store.cells.element(part.id);
        dispatch!(self.driver_of(cell), driver => driver.charge_of(cell, part))
    }

    /// The answer to a peek by a key without a cell.
    pub(crate) fn status_of_nothing(&self, key: Fingerprint, cost: u32, clock: &impl Clock) -> Status {
        self.new_keys(key).first_status(cost, 0, time_of(clock.now()), 0)
    }

    /// The answer to a key's first request of `cost` permits, if its cell was made under this
    /// version.
    pub(crate) fn first_status(&self, version: &Version, cost: u32, time: u64) -> Status {
        let lead = self.store.timestamp_floor().saturating_sub(time);
        version.plan.new_keys().first_status(cost, cost, time, lead)
    }

    /// The longest time that a key matters after its last permit.
    pub(crate) fn longest_window(&self) -> u64 {
        self.plans.iter().map(|plan| plan.current().plan.new_keys().longest_window()).max().unwrap_or(0)
    }

    /// Prefetches a cell. Returns the words that lead to its ring.
    #[inline]
    pub(crate) fn prefetch(&self, id: u32) -> (Head, RingRef) {
        let cell = self.store.cells.element_if_there(id);
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        cell.map_or((Head(0), RingRef(0)), |cell| (Head(read(&cell.head)), RingRef(read(&cell.ring))))
    }

    /// Prefetches the ring, if the reference names one.
    #[inline]
    pub(crate) fn prefetch_ring(&self, (head, reference): (Head, RingRef)) -> u64 {
        let slot = self.store.words_at(reference).and_then(|slots| slots.get(head.pos()));
        slot.map_or(0, |slot| slot.load(Ordering::Relaxed))
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        self.store.bytes() + self.plans.iter().map(Versions::bytes).sum::<usize>()
    }
}

#[cfg(all(test, not(tollgate_loom)))]
impl Cells {
    /// Begins to claim all the parts, and stalls.
    pub(crate) fn claim_and_stall<'a>(&self, parts: impl Iterator<Item = &'a Part>, stalled: super::joint::Stalled) {
        self.store.claim_and_stall(parts, stalled);
    }

    /// Replaces the ring of a part, as a helper may that saw the cell held. Returns whether that
    /// changed anything.
    pub(crate) fn replaces_late(&self, part: &Part) -> bool {
        self.store.replaces_late(part)
    }
}

#[cfg(test)]
impl Cells {
    /// Begins a resize of a cell, and stalls.
    pub(crate) fn replace_and_stall(&self, seat: Seat<'_>) {
        assert!(seat.at().begin_resize(seat.head.state().resizing()).is_some());
    }
}
