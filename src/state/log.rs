//! The sliding window log on one word and a ring, exact or quantised.
//!
//! A log divides time into *steps*, numbered by their ends. The stamp of a permit is the step in
//! which it was granted, and it is live for a window of steps. A step of an exact log is a
//! nanosecond. One of a quantised log is longer, so its stamps are rounded up. [`Permits`] and
//! [`steps`] are the layouts of the two in a word and a ring.
//!
//! # The protocol
//!
//! A key's word has the stamp of its newest grant, and the number of its permits (*run*). The ring
//! has the older stamps. A request loads the word, reads the clock, and reads the slot of the stamp
//! that decides: of the N-th newest permit, for a limit of N and a cost of one.
//!
//! - **Live: denied.** The slot belongs to the word if the word still stands afterwards.
//! - **Expired: admitted.** The request *spills* the newest grant into its slots, then swaps the
//!   word for one with its own grant. If the swap fails, it starts again and reads the clock again.
//! - **The new grant's slots hold live stamps: copied.** The request writes all live stamps to a
//!   new ring and swaps the word for one that names it. Refunds do so, too.
//!
//! A denial also leaves a [hint](super::cell::Hint), so that the next one need not read the ring.
//!
//! # Why a late spill does no harm
//!
//! A thread may stop between its load of the word and its write to a slot. Meanwhile others may
//! have granted, and the slot may hold a newer stamp. So a spill writes a slot only from a value
//! that is *less* than the stamp it spills, by compare-and-swap (INV-SPILL-BELOW). Values of a slot
//! only grow: if the slot has been spilled, the compare-and-swap fails. If it has not, the word
//! still stands, or the grant had expired when the next one was made; then the late write puts one
//! expired stamp in place of another. In a quantised log the newest step may also have got more
//! permits since: the grant that begins the next step writes the slot again, with all of them.
//!
//! # Why no window holds more than N
//!
//! Stamps never decrease along the ring, because a grant's stamp is not before the newest. So all
//! live stamps are among the newest, and if the N-th newest has expired, at most N - 1 are live. A
//! swap succeeds only if the word stood from its load to the swap. So nothing was granted in
//! between, and the slots that were read belong to it (INV-STANDS): a word with a ring never
//! returns, but for a joint claim that puts it back over the same slots. (With each grant
//! `position` moves, or the run of the newest step grows, and a copy names a new ring. Before grants of
//! one stamp have taken each slot of a ring, one finds a slot of that stamp, which is live.) A word
//! without a ring may, but has all permits of its key.
//!
//! # How long a ring is
//!
//! The ring of an exact log grows with its permits, by powers of two, until it is *full-grown*: it
//! has as many slots as there are permits that may be live, which the plan tells. Then the N-th newest
//! stamp, which decides, is in the slot of the next grant, beside that of the newest: in one cache
//! line. A log whose permits are reserved ahead, or charged by a settled cost, may have more, and a
//! longer ring.
//!
//! # Orderings
//!
//! - The swap of the word releases the spilled slots, and those of a copied ring; the load of the
//!   word acquires them.
//! - The compare-and-swap of a spill releases, and the loads of slots acquire: a thread that sees a
//!   newer stamp than its word's also sees the newer word when it loads the word again, so a denial
//!   by a wrong slot is never told.

use core::fmt::Debug;

use super::cell::Word;
use super::request::{Algorithm, CellRef, Proposal, Request, RequestKind, Seen};
use super::ring::{MAX_LEN, Ring, Rings};
use super::sync::Ordering;
use crate::decision::{FastDecision, Left, PerQuota};
use crate::quota::Quota;

mod copy;
mod plain;
mod plan;
pub(super) mod steps;

pub(super) use plan::LogPlan;
use plan::{Bound, Plain, Refusal};

/// The state of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct LogState {
    /// The stamp of the newest grant, or a step before which no permit may be granted.
    newest: u64,
    /// The permits of the newest grant whose slots the next grant writes.
    run: u32,
    /// One past the slots of the newest grant, counted around the ring.
    position: u32,
    ring: RingRef,
    /// Whether `newest` may be later than every clock.
    reserved: bool,
}

/// Names a ring of an arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct RingRef {
    /// Tells the number of slots: see [`Layout::slots_of`].
    class: u32,
    /// The number of its first slot, which is even: at most 31 bits.
    start: u32,
}

impl RingRef {
    const NONE: Self = Self { class: 0, start: 0 };
}

impl LogState {
    /// The stamp of the newest grant in a word.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the mask leaves no more bits")]
    const fn newest_in(word: Word) -> u64 {
        word.state() as u64 & ((1 << 62) - 1)
    }
}

/// How a log has its permits in a word and a ring.
pub(super) trait Layout: Copy + PartialEq + Debug + Send + Sync {
    /// Whether permits may be reserved ahead.
    const RESERVES: bool;

    /// The most permits that a word and a ring can hold.
    const MOST: u32;

    /// The most permits of one item that has a stamp.
    #[cfg(feature = "snapshot")]
    const AT_ONCE: u32;

    /// The steps that have passed at a time, and the step that it belongs to, if `newest` is the
    /// newest stamp of the key: stamps never decrease.
    fn around(self, newest: u64, time: u64) -> (u64, u64);

    /// The steps that have passed at the first moment of a step.
    fn begun(self, step: u64) -> u64;

    /// The step that a time belongs to.
    fn step_of(self, time: u64) -> u64;

    /// The time at which a step ends.
    fn end_of(self, step: u64) -> u64;

    fn pack(state: LogState) -> Word;

    fn unpack(word: Word) -> LogState;

    /// The number of slots of a ring of this class; none, if it is zero.
    fn slots_of(self, class: u32) -> u32;

    /// The stamp of the permit so far back: the newest is 1 back. Zero if there is none that
    /// counts.
    fn back(view: &View<'_, Self>, back: u32) -> u64;

    /// How many of the newest permits, at most `most`, are as late as this or later.
    fn count_from(view: &View<'_, Self>, first: u64, most: u32) -> u32;

    /// These permits, oldest first: stamps, and the number of permits with each. An exact log has one
    /// item for each permit.
    fn permits_from(view: &View<'_, Self>, first: u64) -> impl ExactSizeIterator<Item = (u64, u32)>;

    /// The state with a grant in the same ring, or in none. It spills the newest grant. Stamps from
    /// `live_from` on are live, and slots with those before `free_below` may be written. `None` if
    /// the ring has to be copied.
    fn continued(view: &View<'_, Self>, grant: Grant, live_from: u64, free_below: u64) -> Option<LogState>;

    /// Decides a request in the short way, if there is one.
    #[inline(always)]
    fn decide_plainly(_: &LogPlan<Self>, _: Seen<'_>, _: u32) -> Plain {
        Plain::Unknown
    }

    /// The most slots that so many live permits need.
    fn most_slots(permits: u32, window: u64) -> usize;

    /// The state with the same newest stamp, the permits of its run, and these before them, oldest
    /// first: in a new ring, unless the word has room for all. The ring is as long as they need, or
    /// longer up to `room`, so that the next grants fit: twice as long, or four slots.
    fn copied(
        self,
        rings: &Rings,
        state: LogState,
        older: impl ExactSizeIterator<Item = (u64, u32)>,
        room: usize,
    ) -> LogState;
}

/// A log as of one word, at one reading of the clock.
#[derive(Clone, Copy)]
pub(super) struct View<'a, L> {
    layout: L,
    seen: Seen<'a>,
    state: LogState,
    ring: Ring<'a>,
    /// The steps that have passed, by the clock or the newest stamp. They tell which stamps are live.
    passed: u64,
    /// The stamp of a permit that is granted now.
    step: u64,
}

impl<'a, L: Layout> View<'a, L> {
    #[inline(always)]
    fn of(layout: L, seen: Seen<'a>) -> Self {
        let state = L::unpack(seen.word);
        let (passed, step) = layout.around(state.newest, seen.now);
        let ring = seen.cell.rings.get(state.ring.start, layout.slots_of(state.ring.class));
        View { layout, seen, state, ring, passed, step }
    }

    /// The time from the clock to the end of a step.
    fn until(&self, step: u64) -> u64 {
        self.layout.end_of(step).saturating_sub(self.seen.now)
    }

    /// The same as [`Layout::back`], once a grant is made.
    fn back_after(&self, grant: Grant, back: u32) -> u64 {
        if back <= grant.cost { grant.stamp } else { L::back(self, back - grant.cost) }
    }

    /// A grant of so many permits. It is reserved if it is later than the clock, or behind one that
    /// is.
    fn grant(&self, cost: u32, stamp: u64) -> Grant {
        Grant { cost, stamp, reserved: stamp > self.step || self.state.reserved && stamp > self.seen.now }
    }

    /// Whether a clock is still before a reserved stamp: no request is admitted.
    fn is_behind_reserved(&self) -> bool {
        self.state.reserved && self.seen.now < self.state.newest
    }

    /// The steps that have passed when permits are dropped. Behind a reserved stamp it is the clock:
    /// if the reservation is refunded, earlier permits decide again.
    fn kept_by(&self) -> u64 {
        if self.is_behind_reserved() { self.seen.now } else { self.passed }
    }

    /// The same if the newest stamp is this one: no decision comes before it, whatever the clocks say.
    fn lasting(&self, newest: u64) -> u64 {
        self.kept_by().min(self.layout.begun(newest))
    }
}

/// Permits that a request adds to a log.
#[derive(Clone, Copy)]
pub(super) struct Grant {
    cost: u32,
    stamp: u64,
    /// Whether the stamp may be later than every clock.
    reserved: bool,
}

/// The layout of an exact log: a step is a nanosecond, and each permit has a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Permits {
    /// The slots of a full-grown ring, at least two: one for each permit that may be live.
    full: u32,
}

/// The class of full-grown rings. Any other that is not zero has `1 << class` slots.
const FULL_GROWN: u32 = 31;

/// The most permits of a grant whose slots are written by the next grant. A larger grant copies the
/// ring.
const MAX_RUN: u32 = 127;

/// ```text
/// { newest: 62, run: 7, position: 21, class: 5, start / 2: 30, reserved: 1 }
/// ```
///
/// The position is less than the number of slots. Of a grant above [`MAX_RUN`], the ring has the
/// permits beyond.
impl Layout for Permits {
    const RESERVES: bool = true;
    const MOST: u32 = MAX_LEN;
    #[cfg(feature = "snapshot")]
    const AT_ONCE: u32 = 1;

    fn around(self, newest: u64, time: u64) -> (u64, u64) {
        let time = time.max(newest);
        (time, time)
    }

    fn begun(self, step: u64) -> u64 {
        step
    }

    fn step_of(self, time: u64) -> u64 {
        time
    }

    #[inline]
    fn end_of(self, step: u64) -> u64 {
        step
    }

    fn pack(state: LogState) -> Word {
        let LogState { newest, run, position, ring: RingRef { class, start }, reserved } = state;
        debug_assert!(position < MAX_LEN);
        Word::of(
            u128::from(newest)
                | u128::from(run) << 62
                | u128::from(position) << 69
                | u128::from(class) << 90
                | u128::from(start >> 1) << 95
                | u128::from(reserved) << 125,
        )
    }

    #[expect(clippy::cast_possible_truncation, reason = "the masks leave no more bits")]
    fn unpack(word: Word) -> LogState {
        let state = word.state();
        LogState {
            newest: LogState::newest_in(word),
            run: (state >> 62) as u32 & MAX_RUN,
            position: (state >> 69) as u32 & (MAX_LEN - 1),
            ring: RingRef { class: (state >> 90) as u32 & 31, start: ((state >> 95) as u32 & ((1 << 30) - 1)) << 1 },
            reserved: state >> 125 & 1 == 1,
        }
    }

    #[inline]
    fn slots_of(self, class: u32) -> u32 {
        if class == FULL_GROWN { self.full } else { 1 << class & !1 }
    }

    fn back(view: &View<'_, Self>, back: u32) -> u64 {
        if back <= view.state.run {
            return view.state.newest;
        }
        if back > view.ring.slots() { 0 } else { view.ring.load(view.state.position, back) }
    }

    fn count_from(view: &View<'_, Self>, first: u64, most: u32) -> u32 {
        let most = most.min(view.ring.slots().max(view.state.run));
        // It is often all of them.
        if Self::back(view, most) >= first {
            return most;
        }
        bisect(most, |back| Self::back(view, back) >= first)
    }

    fn permits_from(view: &View<'_, Self>, first: u64) -> impl ExactSizeIterator<Item = (u64, u32)> {
        (0..Self::count_from(view, first, u32::MAX)).rev().map(|newer| (Self::back(view, newer + 1), 1))
    }

    #[inline(always)]
    fn continued(view: &View<'_, Self>, grant: Grant, live_from: u64, free_below: u64) -> Option<LogState> {
        let LogState { newest, run, position, ring, .. } = view.state;
        let (Grant { cost, stamp, reserved }, slots) = (grant, view.ring.slots());
        // The word has no bits for so many: the others go to the slots of a copy.
        if cost > MAX_RUN {
            return None;
        }
        let claimed = LogState { newest: stamp, run: cost, position: 0, ring: RingRef::NONE, reserved };
        // Nothing counts, so nothing is spilled.
        let is_first = newest < live_from || run == 0 && slots == 0;
        if cost > slots {
            // A ring that is too short is dropped if nothing in it counts, and otherwise copied.
            return is_first.then_some(claimed);
        }
        if !is_first {
            // The slots of the newest grant are not expired either.
            if Self::back(view, slots + 1 - cost) >= free_below {
                return None;
            }
            spill(view);
        }
        let end = position + cost;
        Some(LogState { position: if end < slots { end } else { end - slots }, ring, ..claimed })
    }

    #[inline(always)]
    fn decide_plainly(plan: &LogPlan<Self>, seen: Seen<'_>, cost: u32) -> Plain {
        plan.decide_plainly(seen, cost)
    }

    fn most_slots(permits: u32, _: u64) -> usize {
        permits as usize
    }

    fn copied(
        self,
        rings: &Rings,
        state: LogState,
        older: impl ExactSizeIterator<Item = (u64, u32)>,
        room: usize,
    ) -> LogState {
        let (run, count) = (state.run.min(MAX_RUN), older.len() + state.run as usize);
        if run as usize == count {
            return LogState { run, position: 0, ring: RingRef::NONE, ..state };
        }
        let len = count.max((2 * older.len()).max(4).min(room)).clamp(2, MAX_LEN as usize);
        let class = len.next_power_of_two().ilog2();
        let is_full_grown = count <= self.full as usize && self.full <= 1 << class;
        let class = if is_full_grown { FULL_GROWN } else { class };
        let slots = self.slots_of(class);
        let start = rings.take(slots);
        let ring = rings.get(start, slots);
        let beyond = (run..state.run).map(|_| state.newest);
        // The swap of the word releases them.
        let stamps = older.map(|(stamp, _)| stamp).chain(beyond);
        // A word that has changed may seem to have more than there can be.
        ring.iter().zip(stamps).for_each(|(slot, stamp)| slot.store(stamp, Ordering::Relaxed));
        #[expect(clippy::cast_possible_truncation, reason = "it is less than the number of slots")]
        let position = (count % slots as usize) as u32;
        LogState { run, position, ring: RingRef { class, start }, ..state }
    }
}

/// Writes the newest grant to its slots, unless another thread has.
fn spill(view: &View<'_, Permits>) {
    let LogState { newest, run, position, .. } = view.state;
    view.ring.raise(position, run, newest);
}

impl LogPlan<Permits> {
    /// The plan of validated quotas, at least one.
    pub(super) fn new(quotas: &[Quota]) -> Self {
        let mut plan = Self::of_quotas(Permits { full: 0 }, quotas, Quota::window_ns);
        plan.layout.full = plan.most_live().max(2);
        plan
    }
}

impl<L: Layout> LogPlan<L> {
    /// How far ahead permits may be reserved, in steps. Further ahead the log would have to remember
    /// more than twice the limit. If refused requests count, nothing is reserved ahead.
    fn furthest_ahead(&self) -> u64 {
        if L::RESERVES && !self.counts_refused() { self.window() } else { 0 }
    }

    /// The wait of a request for one permit that a hint denies, and the number of the quota. If there
    /// are several, or the newest permit was refunded, the ring tells which permits are left of each.
    #[inline(always)]
    pub(super) fn denied_by_hint(&self, seen: Seen<'_>, left: Option<&mut PerQuota>) -> Option<(u64, u8)> {
        // The word was loaded before.
        let newest = LogState::newest_in(seen.word);
        let (until, bound) = seen.cell.hint.later_than(seen.now.max(self.layout.end_of(newest)))?;
        let (bound, wait_ns) = (self.bounds[bound], until - seen.now);
        if let Some(left) = left {
            let &Bound { limit, window, .. } = self.only()?;
            // The hint may be of a later word.
            if L::unpack(seen.word).run == 0 || !seen.stands() {
                return None;
            }
            let reset_after_ns = self.layout.end_of(newest + window).saturating_sub(seen.now);
            left.set([Left { limit, remaining: 0, next_after_ns: wait_ns, reset_after_ns }]);
        }
        Some((wait_ns, bound.quota))
    }
}

impl<L: Layout> Algorithm for LogPlan<L> {
    #[inline(always)]
    fn propose(&self, seen: Seen<'_>, request: Request, left: Option<&mut PerQuota>) -> Proposal {
        let view = View::of(self.layout, seen);
        if request.kind == RequestKind::Refused {
            return self.deny_and_count(&view, request, left);
        }
        let (stamp, delay_ns) = match self.refusal(&view, request.cost) {
            None => (view.step, 0),
            Some(refusal) => {
                let (wait_ns, within) = (view.until(refusal.until), request.within.min(self.furthest_ahead()));
                if wait_ns > within {
                    return self.deny(&view, request, refusal, wait_ns - within, left);
                }
                (refusal.until, wait_ns)
            }
        };
        let grant = view.grant(request.cost, stamp);
        self.tell(left, &view, (!request.peeks).then_some(grant));
        // No swap checks a peek, so it looks whether the slots were still those of the word.
        if request.peeks && !view.seen.stands() {
            return Proposal::Lost;
        }
        let word = if request.peeks { seen.word } else { self.grant(&view, grant) };
        Proposal::Admit { word, mark: stamp.into(), delay_ns }
    }

    fn decide(&self, seen: Seen<'_>, cost: u32, left: Option<&mut PerQuota>) -> Option<FastDecision> {
        match if left.is_none() { L::decide_plainly(self, seen, cost) } else { Plain::Unknown } {
            // A lost swap gives no answer: the word may have no room for the grant.
            Plain::Granted(word) => seen.cell.word.swap(seen.word, word).then_some(FastDecision::admitted(0)),
            // A later grant may have written over the slots that were read.
            Plain::Denied(_) if !seen.stands() => None,
            Plain::Denied(until) => {
                if cost == 1 {
                    seen.cell.hint.publish(until, 0);
                }
                Some(FastDecision::denied(until - seen.now, 0))
            }
            Plain::Unknown => self.decide_generally(seen, cost, left),
        }
    }

    fn propose_first(
        &self,
        seen: Seen<'_>,
        not_before: u64,
        request: Request,
        left: Option<&mut PerQuota>,
    ) -> Proposal {
        self.propose(self.first(seen, not_before), request, left)
    }

    #[expect(clippy::cast_possible_truncation, reason = "a log's mark is a stamp")]
    fn refund(&self, seen: Seen<'_>, cost: u32, kept: u32, mark: u128) -> Option<(Word, u32)> {
        self.take_off(seen, cost - kept, mark as u64)
    }

    /// More than the limit at one time denies no more than the limit does. So no charge is of more,
    /// and a word does not come to more than it can hold.
    fn owe(&self, seen: Seen<'_>, cost: u32) -> Word {
        let view = View::of(self.layout, seen);
        let most = if self.counts_refused() {
            // As in `deny_and_count`.
            self.remembered() - L::count_from(&view, view.step, self.remembered())
        } else {
            let live = L::count_from(&view, self.live_from(view.lasting(view.state.newest)), L::MOST);
            (self.remembered() / 2).min(L::MOST - live)
        };
        let cost = cost.min(most);
        if cost == 0 {
            return seen.word;
        }
        // Before the swap: the wait is longer than the hint tells, and the new stamp may be
        // earlier.
        seen.cell.hint.turn_off();
        self.grant(&view, view.grant(cost, view.step))
    }

    fn first<'a>(&self, seen: Seen<'a>, not_before: u64) -> Seen<'a> {
        let state = LogState { newest: self.layout.step_of(not_before), ..LogState::default() };
        Seen { word: L::pack(state), ..seen }
    }

    fn over_at(&self, cell: CellRef<'_>, word: Word) -> u64 {
        let view = View::of(self.layout, Seen { cell, word, now: 0 });
        // If all permits with the newest stamp were refunded, this is an earlier one, or none.
        let last = match L::back(&view, 1) {
            0 => view.state.newest,
            last => view.state.newest.max(last + self.window()),
        };
        self.layout.end_of(last)
    }

    fn moved(&self, seen: Seen<'_>, under: &Self, to: &Rings) -> Word {
        self.copied_to(seen, under, to)
    }

    fn latest(&self, word: Word, reading: u64) -> u64 {
        let LogState { newest, reserved, .. } = L::unpack(word);
        let begun = self.layout.begun(newest);
        if reserved { reading } else { reading.max(self.layout.end_of(begun) + u64::from(begun < newest)) }
    }

    fn slots(&self, word: Word) -> usize {
        self.layout.slots_of(L::unpack(word).ring.class) as usize
    }

    fn bytes(&self) -> usize {
        self.bytes_of_bounds()
    }
}

impl<L: Layout> LogPlan<L> {
    /// The denial of a request, which counts if refused requests do.
    #[inline]
    fn deny(
        &self,
        view: &View<'_, L>,
        request: Request,
        refusal: Refusal,
        wait_ns: u64,
        left: Option<&mut PerQuota>,
    ) -> Proposal {
        if self.counts_refused() {
            return self.deny_and_count(view, request, left);
        }
        self.tell(left, view, None);
        // A denial swaps nothing: a later grant may have written over the slots that it read.
        if !view.seen.stands() {
            return Proposal::Lost;
        }
        if request.cost == 1 && !request.peeks {
            view.seen.cell.hint.publish(self.layout.end_of(refusal.until), refusal.bound);
        }
        Proposal::Deny { wait_ns, quota: self.bounds[refusal.bound].quota, word: None }
    }

    /// A denial whose permits are added to the log. The wait is that of the same request
    /// afterwards.
    #[cold]
    fn deny_and_count(&self, view: &View<'_, L>, request: Request, left: Option<&mut PerQuota>) -> Proposal {
        let grant = view.grant(request.cost, view.step);
        self.tell(left, view, (!request.peeks).then_some(grant));
        let (wait_ns, quota) = self.refused_for(view, grant);
        // Once all that is remembered is of this step, another refusal adds nothing. So the position
        // moves at one reading by no more than is remembered, and the word does not come back.
        let newest = L::count_from(view, grant.stamp, self.remembered());
        let cost = if request.peeks { 0 } else { request.cost.min(self.remembered() - newest) };
        if cost == 0 {
            // Nothing is swapped, so the slots belong to the word only if it still stands.
            let denial = Proposal::Deny { wait_ns, quota, word: None };
            return if view.seen.stands() { denial } else { Proposal::Lost };
        }
        Proposal::Deny { wait_ns, quota, word: Some(self.grant(view, Grant { cost, ..grant })) }
    }

    /// Writes the permits left of each quota, after a grant.
    #[inline]
    fn tell(&self, left: Option<&mut PerQuota>, view: &View<'_, L>, grant: Option<Grant>) {
        if let Some(left) = left {
            left.set(self.given().map(|bound| left_of(bound, view, grant)));
        }
    }

    /// The wait of a request like this one after it was refused and counted, and the quota that
    /// denies it for longest.
    fn refused_for(&self, view: &View<'_, L>, grant: Grant) -> (u64, u8) {
        let until = |bound: &Bound| view.back_after(grant, bound.limit + 1 - grant.cost) + bound.window;
        let later = |last, bound| if until(bound) > until(last) { bound } else { last };
        let last = self.bounds.iter().reduce(later).expect("a log has a bound");
        (view.until(until(last)), last.quota)
    }

    /// The quota that denies the request for longest, and until when; `None` if it fits.
    #[inline(always)]
    fn refusal(&self, view: &View<'_, L>, cost: u32) -> Option<Refusal> {
        if cost == 0 {
            return None;
        }
        let behind = view.is_behind_reserved();
        let mut refusal: Option<Refusal> = behind.then_some(Refusal { until: view.state.newest, bound: 0 });
        for (number, bound) in self.bounds.iter().enumerate() {
            let until = L::back(view, bound.limit + 1 - cost) + bound.window;
            if until > view.passed && refusal.is_none_or(|other| other.until < until) {
                refusal = Some(Refusal { until, bound: number });
            }
        }
        refusal
    }

    /// The word with a grant, whose stamp is no earlier than the newest.
    #[inline(always)]
    fn grant(&self, view: &View<'_, L>, grant: Grant) -> Word {
        let live_from = self.live_from(view.lasting(grant.stamp));
        // A ring of all that is remembered takes the place of its oldest permits.
        let is_longest = self.counts_refused() && view.ring.len() >= self.remembered() as usize;
        let free_below = if is_longest { u64::MAX } else { live_from };
        match L::continued(view, grant, live_from, free_below) {
            Some(state) => L::pack(state),
            None => self.grant_in_copy(view, grant, live_from),
        }
    }

    /// Grants in a new ring, with the stamps that are live.
    #[cold]
    fn grant_in_copy(&self, view: &View<'_, L>, grant: Grant, live_from: u64) -> Word {
        let Grant { cost, stamp, reserved } = grant;
        let older = L::permits_from(view, live_from);
        let mut dropped = 0;
        if self.counts_refused() {
            // As many as fit already: a limit may have been larger.
            let most = self.remembered().max(view.state.run) as usize;
            dropped = (older.len() + cost as usize).saturating_sub(most.max(view.ring.len()));
        }
        let state = LogState { newest: stamp, run: cost, reserved, ..LogState::default() };
        let room = L::most_slots(self.most_live(), self.window());
        L::pack(self.layout.copied(view.seen.cell.rings, state, older.skip(dropped), room))
    }
}

/// The permits left of a quota, after a grant.
fn left_of<L: Layout>(bound: Bound, view: &View<'_, L>, grant: Option<Grant>) -> Left {
    let (cost, newest) = grant.map_or((0, view.state.newest), |grant| (grant.cost, grant.stamp));
    let passed = view.passed.max(view.layout.begun(newest));
    // Those that fit beside the grant decide; a log that counts refused requests may have more.
    let live = cost + L::count_from(view, bound.live_from(passed), bound.limit - cost);
    if live == 0 {
        return Left::all(bound.limit);
    }
    let oldest = if live > cost { L::back(view, live - cost) } else { newest };
    // The permits of the newest stamp may have been refunded.
    let last = if cost > 0 { newest } else { L::back(view, 1) };
    let next = oldest + bound.window;
    let is_behind = grant.map_or(view.is_behind_reserved(), |grant| grant.reserved);
    let (remaining, next) = match (is_behind, bound.limit - live) {
        (true, 0) => (0, next.max(newest)),
        (true, _) => (0, newest),
        (false, remaining) => (remaining, next),
    };
    Left {
        limit: bound.limit,
        remaining,
        next_after_ns: view.until(next),
        reset_after_ns: view.until(last + bound.window),
    }
}

/// Of so many numbers from 1 on, those for which it holds, if it holds for the first of them alone.
fn bisect(most: u32, holds: impl Fn(u32) -> bool) -> u32 {
    let (mut known, mut beyond) = (0, most + 1);
    while beyond - known > 1 {
        let middle = known + (beyond - known) / 2;
        if holds(middle) { known = middle } else { beyond = middle }
    }
    known
}

#[cfg(test)]
mod kit;
#[cfg(all(test, tollgate_loom))]
mod loom_tests;
#[cfg(all(test, not(tollgate_loom)))]
mod tests;
