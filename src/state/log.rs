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

use super::cell::Word;
use super::request::Seen;
use super::ring::{MAX_LEN, Rings};
use super::sync::Ordering;
use crate::decision::{FastDecision, Left, PerQuota};
use crate::quota::Quota;

mod copy;
mod general;
mod layout;
mod plan;
pub(super) mod steps;

pub(super) use layout::Layout;
use layout::{Grant, LogState, RingRef, View, bisect};
use plan::Bound;
pub(super) use plan::LogPlan;

impl LogState {
    /// The stamp of the newest grant in a word.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the mask leaves no more bits")]
    const fn newest_in(word: Word) -> u64 {
        word.state() as u64 & ((1 << 62) - 1)
    }
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
        // Then nothing is spilled.
        let nothing_counts = newest < live_from || run == 0 && slots == 0;
        if cost > slots {
            // A ring that is too short is dropped if nothing in it counts, and otherwise copied.
            return nothing_counts.then_some(claimed);
        }
        if !nothing_counts {
            // Also if the grant would take a slot of the newest grant, which is live.
            if Self::back(view, slots + 1 - cost) >= free_below {
                return None;
            }
            spill(view);
        }
        let end = position + cost;
        Some(LogState { position: if end < slots { end } else { end - slots }, ring, ..claimed })
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
    view.ring.raise_last(position, run, newest);
}

/// The answer of the short way.
enum Plain {
    /// The word after the grant. The slots of the newest grant have been written.
    Granted(Word),
    /// The time until which the request does not fit, if the word still stands.
    Denied(u64),
    /// The general way has to decide.
    Unknown,
}

impl LogPlan<Permits> {
    /// The plan of validated quotas, at least one.
    pub(super) fn new(quotas: &[Quota]) -> Self {
        let mut plan = Self::of_quotas(Permits { full: 0 }, quotas, Quota::window_ns);
        plan.layout.full = plan.most_live().max(2);
        plan
    }

    /// Decides a request, and swaps the word. `None` if another thread was faster.
    #[inline(never)]
    pub(in crate::state) fn decide_shortly(&self, seen: Seen<'_>, cost: u32) -> Option<FastDecision> {
        match self.decide_plainly(seen, cost) {
            // A lost swap gives no answer: the decision follows from a word that has changed. The slots that
            // were written stay right (INV-SPILL-BELOW).
            Plain::Granted(word) => seen.cell.word.swap(seen.word, word).then_some(FastDecision::admitted(0)),
            // A later grant may have written over the slots that were read.
            Plain::Denied(_) if !seen.stands() => None,
            Plain::Denied(until) => {
                if cost == 1 {
                    seen.cell.hint.publish(until, 0);
                }
                Some(FastDecision::denied(until - seen.now, 0))
            }
            Plain::Unknown => self.decide_generally(seen, cost, None),
        }
    }

    /// Decides a request for at most the limit, as `propose` does. If it grants, it has written the slots
    /// of the newest grant. It swaps nothing.
    #[inline(always)]
    fn decide_plainly(&self, seen: Seen<'_>, cost: u32) -> Plain {
        let Some(Bound { limit, window, .. }) = self.single else { return Plain::Unknown };
        let LogState { newest, run, position, ring, reserved } = Permits::unpack(seen.word);
        let slots = self.layout.slots_of(ring.class);
        // The general way knows reserved stamps, takes a ring or a longer one, and grants more than
        // `MAX_RUN` permits.
        if reserved || cost > slots.min(MAX_RUN) {
            return Plain::Unknown;
        }
        let (stamp, slots_of_ring) = (seen.now.max(newest), seen.cell.rings.get(ring.start, slots));
        let back = |back: u32| match back {
            _ if back <= run => newest,
            // Behind the ring there is no permit that counts.
            _ if back > slots => 0,
            _ => slots_of_ring.load(position, back),
        };
        let decides = limit + 1 - cost;
        let until = back(decides) + window;
        if until > stamp {
            return Plain::Denied(until);
        }
        // If the newest grant has expired, so have all others: nothing is spilled.
        if newest + window > stamp {
            // The grant takes its slots from the oldest permits, which must have expired. In a full-grown
            // ring the newest of these is the stamp that decided.
            let last = slots + 1 - cost;
            if last != decides && back(last) + window > stamp {
                return Plain::Unknown;
            }
            slots_of_ring.raise_last(position, run, newest);
        }
        let end = position + cost;
        let position = if end < slots { end } else { end - slots };
        Plain::Granted(Permits::pack(LogState { newest: stamp, run: cost, position, ring, reserved }))
    }
}

impl<L: Layout> LogPlan<L> {
    /// The wait of a request that a hint denies, and the number of the quota. If there are several, or
    /// the newest permit was refunded, the ring tells which permits are left of each.
    #[inline(always)]
    pub(super) fn denied_by_hint(&self, seen: Seen<'_>, cost: u32, left: Option<&mut PerQuota>) -> Option<(u64, u8)> {
        // One permit may be free before there are more.
        if cost != 1 {
            return None;
        }
        // The word was loaded before the hint (INV-HINT).
        let newest = LogState::newest_in(seen.word);
        let (until, bound) = seen.cell.hint.later_than(seen.now.max(self.layout.end_of(newest)))?;
        let (bound, wait_ns) = (self.bounds.get(bound)?, until - seen.now);
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

#[cfg(test)]
mod kit;
#[cfg(all(test, tollgate_loom))]
mod loom_tests;
#[cfg(all(test, not(tollgate_loom)))]
mod tests;
