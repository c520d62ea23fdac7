//! The sliding window log on one word and a ring.
//!
//! # The protocol
//!
//! A key's word has the stamp of its newest claim, and the number of its permits (*run*). The ring
//! has the older stamps only. A request loads the word, reads the clock, and reads the slot of the
//! stamp that decides: of the N-th newest permit, for a limit of N and a cost of one.
//!
//! - **Live: denied.** The slot belongs to the word if the word still stands afterwards.
//! - **Expired: admitted.** The request *spills* the newest claim into its slots, then swaps the
//!   word for one with its own claim. If the swap fails, it starts again and reads the clock again.
//! - **The new claim's slots hold live stamps: copied.** The request writes all live stamps to a
//!   new ring and swaps the word for one that names it. Refunds and claims above [`MAX_RUN`] do so,
//!   too.
//!
//! A denial also leaves a [hint](super::hint), so that the next one need not read the ring.
//!
//! # Why a late spill does no harm
//!
//! A thread may stop between its load of the word and its write to a slot. Meanwhile others may
//! have claimed, and the slot may hold a newer stamp. So a spill writes a slot only from a value
//! that is *less* than the stamp it spills, by compare-and-swap. Values of a slot only grow: if the
//! slot has been spilled, the compare-and-swap fails. If it has not, the word still stands, or the
//! claim had expired when the next one was made; then the late write puts one expired stamp in
//! place of another.
//!
//! # Why no window holds more than N
//!
//! Stamps never decrease along the ring, because a claim's stamp is not before the newest. So all
//! live stamps are among the newest, and if the N-th newest has expired, at most N - 1 are live. A
//! swap succeeds only if the word stood from its load to the swap. So nothing was claimed in
//! between, and the slots that were read belong to it: a word never returns. (`position` moves with
//! each claim of one stamp; a copy names a new ring, or moves the position too.)
//!
//! # Orderings
//!
//! - The swap of the word releases the spilled slots, and those of a copied ring; the load of the
//!   word acquires them.
//! - The compare-and-swap of a spill releases, and the loads of slots acquire: a thread that sees a
//!   newer stamp than its word's also sees the newer word when it loads the word again, so a denial
//!   by a wrong slot is never told.

use super::hint::Hint;
use super::ring::{Ring, Rings};
use super::sync::Ordering;
use super::word::{AtomicWord, LogState, MAX_CLASS, MAX_RUN, RingRef, Word};
use crate::decision::{Left, PerQuota};

mod plan;

pub(super) use plan::{LogPlan, Refusal};

/// A word and the rings of its arena.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(super) word: &'a AtomicWord,
    pub(super) hint: &'a Hint,
    pub(super) rings: &'a Rings,
}

/// One attempt at a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Attempt<T> {
    Done(T),
    /// Another thread has changed the word.
    Lost,
    /// The arena has to be rebuilt before it takes another ring.
    NoRoom,
}

/// The answer to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// The stamp of the permits, and the wait until then.
    Admitted {
        stamp: u64,
        delay_ns: u64,
    },
    Denied {
        wait_ns: u64,
        quota: u8,
    },
}

/// A log as of one word, at one reading of the clock.
#[derive(Clone, Copy)]
struct View<'a> {
    word: Word,
    state: LogState,
    ring: Ring<'a>,
    /// The clock.
    reading: u64,
    /// The time by which stamps are live: the clock, or the newest stamp if that is later.
    time: u64,
}

impl<'a> View<'a> {
    #[inline]
    fn of(place: Place<'a>, word: Word, reading: u64) -> Self {
        let state = LogState::unpack(word);
        View { word, state, ring: place.rings.get(state.ring), reading, time: reading.max(state.newest) }
    }

    /// The stamp of the permit so far back: the newest is 1 back. Zero if there is none that
    /// counts.
    #[inline]
    fn back(&self, back: u32) -> u64 {
        if back <= self.state.run {
            return self.state.newest;
        }
        if back as usize > self.ring.len() {
            return 0;
        }
        self.ring[self.slot(self.state.position.wrapping_sub(back))].load(Ordering::Acquire)
    }

    /// The place of a position in the ring.
    #[inline]
    fn slot(&self, position: u32) -> usize {
        position as usize & (self.ring.len() - 1)
    }

    /// The most permits that the word and the ring can have.
    fn most(&self) -> u32 {
        u32::try_from(self.ring.len()).unwrap_or(u32::MAX).max(self.state.run)
    }

    /// How many of the newest permits, at most `most`, are as late as this or later. Stamps never
    /// decrease, so this is a bisection.
    fn count_from(&self, first: u64, most: u32) -> u32 {
        let (mut known, mut beyond) = (0, most.min(self.most()) + 1);
        while beyond - known > 1 {
            let middle = known + (beyond - known) / 2;
            if self.back(middle) >= first { known = middle } else { beyond = middle }
        }
        known
    }

    /// Whether a clock is still before a reserved stamp: no request is admitted.
    #[inline]
    fn is_behind_reserved(&self) -> bool {
        self.state.reserved && self.reading < self.state.newest
    }

    /// The time by which a copy without a claim may drop stamps: no decision comes before it,
    /// whatever the clocks say.
    fn lasting(&self) -> u64 {
        self.kept_by().min(self.state.newest)
    }

    /// The time by which a claim may drop stamps. Behind a reserved stamp it is the clock: if the
    /// reservation is refunded, earlier permits decide again.
    #[inline]
    fn kept_by(&self) -> u64 {
        if self.is_behind_reserved() { self.reading } else { self.time }
    }
}

impl LogPlan {
    /// One attempt to decide a request of `cost` permits, at least 1 and at most the least limit,
    /// that accepts a wait of `within`.
    #[inline(always)]
    pub(super) fn decide(&self, place: Place<'_>, word: Word, reading: u64, cost: u32, within: u64) -> Attempt<Answer> {
        let hint = place.hint.load();
        if cost == 1 && within == 0 {
            if let Some((until, bound)) = hint.later_than(reading.max(LogState::newest_in(word))) {
                let quota = self.bound(bound).quota;
                return Attempt::Done(Answer::Denied { wait_ns: until - reading, quota });
            }
        }
        let view = View::of(place, word, reading);
        let (stamp, delay_ns) = match self.refusal(&view, cost) {
            None => (view.time, 0),
            Some(Refusal { until, bound }) => {
                let wait_ns = until - reading;
                // Further ahead it would have to remember more than twice the limit.
                let within = within.min(self.window());
                if wait_ns > within {
                    if place.word.load() != word {
                        return Attempt::Lost;
                    }
                    if cost == 1 {
                        place.hint.publish(hint, until, bound);
                    }
                    return Attempt::Done(Answer::Denied { wait_ns: wait_ns - within, quota: self.bound(bound).quota });
                }
                (until, wait_ns)
            }
        };
        match self.claim(place, &view, cost, stamp) {
            Attempt::Done(()) => Attempt::Done(Answer::Admitted { stamp, delay_ns }),
            Attempt::Lost => Attempt::Lost,
            Attempt::NoRoom => Attempt::NoRoom,
        }
    }

    /// The quota that denies the request for longest, and until when; `None` if it fits.
    #[inline(always)]
    fn refusal(&self, view: &View<'_>, cost: u32) -> Option<Refusal> {
        let behind = view.is_behind_reserved();
        let mut refusal: Option<Refusal> = behind.then_some(Refusal { until: view.state.newest, bound: 0 });
        for (number, bound) in self.bounds().enumerate() {
            let until = view.back(bound.limit + 1 - cost) + bound.window;
            if until > view.time && refusal.is_none_or(|other| other.until <= until) {
                refusal = Some(Refusal { until, bound: number });
            }
        }
        refusal
    }

    /// Claims `cost` permits with this stamp, no earlier than the newest.
    #[inline(always)]
    fn claim(&self, place: Place<'_>, view: &View<'_>, cost: u32, stamp: u64) -> Attempt<()> {
        let (state, len) = (view.state, view.ring.len());
        let reserved = stamp > view.time || stamp > view.reading && view.state.reserved;
        let claimed = |ring| LogState { newest: stamp, run: cost, position: state.after(cost), ring, reserved };
        if cost > MAX_RUN {
            return self.claim_in_copy(place, view, cost, stamp, reserved);
        }
        let expired = |stamp: u64| stamp + self.window() <= view.kept_by();
        if expired(state.newest) || state.run == 0 && len == 0 {
            // Nothing counts, so nothing is spilled.
            let ring = if cost as usize <= len { state.ring } else { RingRef::NONE };
            return done_if(place.word.swap(view.word, claimed(ring).pack()));
        }
        let fits = (state.run + cost) as usize <= len;
        if fits && expired(view.back(u32::try_from(len).unwrap_or(u32::MAX) + 1 - cost)) {
            spill(view);
            return done_if(place.word.swap(view.word, claimed(state.ring).pack()));
        }
        self.claim_in_copy(place, view, cost, stamp, reserved)
    }

    /// Claims in a new ring, with the stamps that are live.
    #[cold]
    fn claim_in_copy(&self, place: Place<'_>, view: &View<'_>, cost: u32, stamp: u64, reserved: bool) -> Attempt<()> {
        let live = view.count_from(self.live_from(view.kept_by()), u32::MAX);
        let run = cost.min(MAX_RUN);
        // Twice the permits, so that the next claims fit, but no more than the limit needs.
        let slots = (live + cost).max(live.saturating_mul(2).min(self.limit()));
        let stamps = (1..=live).rev().map(|back| view.back(back));
        let stamps = stamps.chain(core::iter::repeat_n(stamp, (cost - run) as usize));
        if place.rings.is_full() {
            return Attempt::NoRoom;
        }
        let Some(ring) = written(place.rings, slots, stamps) else { return Attempt::NoRoom };
        let new = LogState { newest: stamp, run, position: live + cost, ring, reserved };
        done_if(place.word.swap(view.word, new.pack()))
    }

    /// One attempt to refund up to `cost` permits with this stamp: how many there were.
    pub(super) fn refund(&self, place: Place<'_>, word: Word, reading: u64, cost: u32, stamp: u64) -> Attempt<u32> {
        let view = View::of(place, word, reading);
        let live = view.count_from(self.live_from(view.lasting()), u32::MAX);
        let found = view.count_from(stamp, live) - view.count_from(stamp + 1, live);
        let refunded = found.min(cost);
        if refunded == 0 || stamp + self.window() <= view.time {
            return if place.word.load() == word { Attempt::Done(0) } else { Attempt::Lost };
        }
        let mut skipped = 0;
        let kept = (1..=live).rev().map(|back| view.back(back)).filter(|&other| {
            let skips = other == stamp && skipped < refunded;
            skipped += u32::from(skips);
            !skips
        });
        if place.rings.is_full() {
            return Attempt::NoRoom;
        }
        place.hint.turn_off();
        match self.copied(place.rings, &view, kept, live - refunded) {
            Some(new) if place.word.swap(word, new) => Attempt::Done(refunded),
            Some(_) => Attempt::Lost,
            None => Attempt::NoRoom,
        }
    }

    /// The word of the same log in another arena, as far as its permits may ever count; `None` if
    /// there is no room. The word must be frozen.
    pub(super) fn moved(&self, from: Place<'_>, word: Word, reading: u64, to: &Rings) -> Option<Word> {
        let view = View::of(from, word, reading);
        let live = view.count_from(self.live_from(view.lasting()), u32::MAX);
        self.copied(to, &view, (1..=live).rev().map(|back| view.back(back)), live)
    }

    /// A word with `count` of the permits of another, oldest first.
    fn copied(&self, rings: &Rings, view: &View<'_>, stamps: impl Iterator<Item = u64>, count: u32) -> Option<Word> {
        let stamps: Vec<u64> = stamps.collect();
        debug_assert_eq!(stamps.len(), count as usize);
        // The newest stamp stays even if its permits are gone: no later permit is before it, and
        // the key is not forgotten before it expires. A reserved one may be later than every clock.
        let newest = match stamps.last() {
            Some(&kept) if view.is_behind_reserved() => kept,
            None if view.is_behind_reserved() => view.reading,
            _ => view.state.newest,
        };
        let run = stamps.iter().rev().take_while(|&&stamp| stamp == newest).count();
        let run = u32::try_from(run).unwrap_or(u32::MAX).min(MAX_RUN);
        let older = &stamps[..stamps.len() - run as usize];
        // A word without a ring has a position that was not before.
        let (ring, position) = if older.is_empty() {
            (RingRef::NONE, view.state.after(1))
        } else {
            (written(rings, count, older.iter().copied())?, count)
        };
        let reserved = view.state.reserved && newest > view.reading;
        Some(LogState { newest, run, position, ring, reserved }.pack())
    }

    /// The permits left of each quota.
    pub(super) fn left(&self, place: Place<'_>, word: Word, reading: u64) -> Option<PerQuota> {
        let view = View::of(place, word, reading);
        let left = PerQuota::of(self.given().map(|bound| self.left_of(bound, &view)));
        (place.word.load() == word).then_some(left)
    }

    fn left_of(&self, bound: plan::Bound, view: &View<'_>) -> Left {
        let from_now = |time: u64| time.saturating_sub(view.reading);
        let live = view.count_from((view.time + 1).saturating_sub(bound.window), bound.limit);
        if live == 0 {
            return Left::all(bound.limit);
        }
        let next = view.back(live) + bound.window;
        let reset_after_ns = from_now(view.back(1) + bound.window);
        if view.is_behind_reserved() {
            let next_after_ns = from_now(if live == bound.limit { next } else { 0 }.max(view.state.newest));
            return Left { limit: bound.limit, remaining: 0, next_after_ns, reset_after_ns };
        }
        Left { limit: bound.limit, remaining: bound.limit - live, next_after_ns: from_now(next), reset_after_ns }
    }

    /// The first time from which the log is no different from that of a new key.
    pub(super) fn over_at(&self, word: Word) -> u64 {
        LogState::unpack(word).newest + self.window()
    }
}

/// Writes the newest claim to its slots, unless another thread has.
#[inline]
fn spill(view: &View<'_>) {
    let LogState { newest, run, position, .. } = view.state;
    for back in 1..=run {
        let slot = &view.ring[view.slot(position.wrapping_sub(back))];
        let mut value = slot.load(Ordering::Acquire);
        while value < newest {
            match slot.compare_exchange(value, newest, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                Err(other) => value = other,
            }
        }
    }
}

/// A new ring of at least so many slots, with these stamps in the first.
fn written(rings: &Rings, slots: u32, stamps: impl Iterator<Item = u64>) -> Option<RingRef> {
    let class = slots.max(2).next_power_of_two().ilog2();
    debug_assert!(class <= MAX_CLASS);
    let name = rings.take(class)?;
    for (slot, stamp) in rings.get(name).iter().zip(stamps) {
        // The swap of the word releases it.
        slot.store(stamp, Ordering::Relaxed);
    }
    Some(name)
}

fn done_if(swapped: bool) -> Attempt<()> {
    if swapped { Attempt::Done(()) } else { Attempt::Lost }
}

#[cfg(all(test, tollgate_loom))]
mod loom_tests;
#[cfg(all(test, not(tollgate_loom)))]
mod tests;
