//! The sliding window log on one word and a ring.
//!
//! # The protocol
//!
//! A key's word has the stamp of its newest claim, and the number of its permits (*run*). The ring
//! has the older stamps, and of a claim above [`MAX_RUN`] the permits beyond. A request loads the word, reads the clock, and reads the slot of the
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
//! that is *less* than the stamp it spills, by compare-and-swap (INV-SPILL-BELOW). Values of a slot
//! only grow: if the slot has been spilled, the compare-and-swap fails. If it has not, the word
//! still stands, or the claim had expired when the next one was made; then the late write puts one
//! expired stamp in place of another.
//!
//! # Why no window holds more than N
//!
//! Stamps never decrease along the ring, because a claim's stamp is not before the newest. So all
//! live stamps are among the newest, and if the N-th newest has expired, at most N - 1 are live. A
//! swap succeeds only if the word stood from its load to the swap. So nothing was claimed in
//! between, and the slots that were read belong to it (INV-STANDS): a word with a ring never
//! returns. (`position` moves with each claim of one stamp, and a copy names a new ring.) A word
//! without a ring may, but has all permits of its key.
//!
//! # Orderings
//!
//! - The swap of the word releases the spilled slots, and those of a copied ring; the load of the
//!   word acquires them.
//! - The compare-and-swap of a spill releases, and the loads of slots acquire: a thread that sees a
//!   newer stamp than its word's also sees the newer word when it loads the word again, so a denial
//!   by a wrong slot is never told.

use super::plan::{Ask, AskKind, Attempt, Place, Proposal};
use super::ring::{Ring, Rings};
use super::sync::Ordering;
use super::word::{LogState, MAX_CLASS, MAX_RUN, RingRef, Word};
use crate::decision::{Left, PerQuota};

mod plan;

pub(super) use plan::{Bound, LogPlan, Refusal};

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

    /// Whether the word is still the same, so that the slots that were read belong to it.
    #[inline]
    fn stands(&self, place: Place<'_>) -> bool {
        place.word.load() == self.word
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

    /// The stamps of so many of the newest permits, oldest first.
    fn newest_stamps(&self, count: u32) -> impl Iterator<Item = u64> + '_ {
        (1..=count).rev().map(|back| self.back(back))
    }

    /// The same as `back`, once a claim is made.
    fn back_after(&self, claim: Claim, back: u32) -> u64 {
        if back <= claim.cost { claim.stamp } else { self.back(back - claim.cost) }
    }

    /// Whether a claim is later than the clock: it is reserved, or behind one that is.
    #[inline]
    fn is_ahead(&self, claim: Claim) -> bool {
        claim.stamp > self.time || claim.stamp > self.reading && self.state.reserved
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
    /// decrease, so this is a bisection, unless it is all of them.
    fn count_from(&self, first: u64, most: u32) -> u32 {
        let most = most.min(self.most());
        let (mut known, mut beyond) = if self.back(most) >= first { (most, most + 1) } else { (0, most) };
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

/// Permits that a request adds to a log.
#[derive(Clone, Copy)]
struct Claim {
    cost: u32,
    stamp: u64,
}

impl LogPlan {
    /// See [`Plan::propose`](super::plan::Plan::propose).
    #[inline(always)]
    pub(super) fn propose(
        &self,
        place: Place<'_>,
        word: Word,
        reading: u64,
        ask: Ask,
        left: Option<&mut PerQuota>,
    ) -> Proposal {
        let hint = place.hint.load();
        if ask == Ask::acquire(1) && left.is_none() && !self.counts_refused() {
            if let Some((until, bound)) = hint.later_than(reading.max(LogState::newest_in(word))) {
                return Proposal::Deny { wait_ns: until - reading, quota: self.bound(bound).quota, word: None };
            }
        }
        let view = View::of(place, word, reading);
        if ask.kind == AskKind::Refused {
            return self.deny_and_count(place, &view, ask, left);
        }
        let (stamp, delay_ns) = match self.refusal(&view, ask.cost) {
            None => (view.time, 0),
            Some(refusal) => {
                let (wait_ns, within) = (refusal.until - reading, ask.within.min(self.furthest_ahead()));
                if wait_ns > within {
                    return self.deny(place, &view, ask, refusal, wait_ns - within, left);
                }
                (refusal.until, wait_ns)
            }
        };
        let claim = Claim { cost: ask.cost, stamp };
        self.tell(left, &view, (!ask.peeks).then_some(claim));
        if ask.peeks {
            return if view.stands(place) { Proposal::Admit { word, mark: 0, delay_ns } } else { Proposal::Lost };
        }
        let claimed = self.claim(place.rings, &view, claim);
        claimed.map_or(Proposal::NoRoom, |word| Proposal::Admit { word, mark: stamp.into(), delay_ns })
    }

    /// The denial of a request, which counts if refused requests do.
    #[inline]
    fn deny(
        &self,
        place: Place<'_>,
        view: &View<'_>,
        ask: Ask,
        refusal: Refusal,
        wait_ns: u64,
        left: Option<&mut PerQuota>,
    ) -> Proposal {
        if self.counts_refused() {
            return self.deny_and_count(place, view, ask, left);
        }
        let hint = place.hint.load();
        self.tell(left, view, None);
        if !view.stands(place) {
            return Proposal::Lost;
        }
        if ask.cost == 1 && !ask.peeks {
            place.hint.publish(hint, refusal.until, refusal.bound);
        }
        Proposal::Deny { wait_ns, quota: self.bound(refusal.bound).quota, word: None }
    }

    /// A denial whose permits are added to the log. The wait is that of the same request
    /// afterwards.
    #[cold]
    fn deny_and_count(&self, place: Place<'_>, view: &View<'_>, ask: Ask, left: Option<&mut PerQuota>) -> Proposal {
        let claim = Claim { cost: ask.cost, stamp: view.time };
        self.tell(left, view, (!ask.peeks).then_some(claim));
        let (wait_ns, quota) = self.refused_for(view, claim);
        if ask.peeks {
            return if view.stands(place) { Proposal::Deny { wait_ns, quota, word: None } } else { Proposal::Lost };
        }
        let claimed = self.claim(place.rings, view, claim);
        claimed.map_or(Proposal::NoRoom, |word| Proposal::Deny { wait_ns, quota, word: Some(word) })
    }

    /// Writes the permits left of each quota, after a claim.
    #[inline]
    fn tell(&self, left: Option<&mut PerQuota>, view: &View<'_>, claim: Option<Claim>) {
        if let Some(left) = left {
            left.set(self.given().map(|bound| left_of(bound, view, claim)));
        }
    }

    /// The wait of a request like this one after it was refused and counted, and the quota that
    /// denies it for longest.
    fn refused_for(&self, view: &View<'_>, claim: Claim) -> (u64, u8) {
        let until = |bound: &Bound| view.back_after(claim, bound.limit + 1 - claim.cost) + bound.window;
        let later = |last, bound| if until(bound) > until(last) { bound } else { last };
        let last = self.bounds().reduce(later).expect("a log has a bound");
        (until(last).saturating_sub(view.reading), last.quota)
    }

    /// The quota that denies the request for longest, and until when; `None` if it fits.
    #[inline(always)]
    fn refusal(&self, view: &View<'_>, cost: u32) -> Option<Refusal> {
        if cost == 0 {
            return None;
        }
        let behind = view.is_behind_reserved();
        let mut refusal: Option<Refusal> = behind.then_some(Refusal { until: view.state.newest, bound: 0 });
        for (number, bound) in self.bounds().enumerate() {
            let until = view.back(bound.limit + 1 - cost) + bound.window;
            if until > view.time && refusal.is_none_or(|other| other.until < until) {
                refusal = Some(Refusal { until, bound: number });
            }
        }
        refusal
    }

    /// The word with a claim, whose stamp is no earlier than the newest; `None` if there is no room.
    #[inline(always)]
    fn claim(&self, rings: &Rings, view: &View<'_>, claim: Claim) -> Option<Word> {
        let (state, len, cost) = (view.state, view.ring.len(), claim.cost);
        if cost > MAX_RUN {
            return self.claim_in_copy(rings, view, claim);
        }
        let claimed = |ring| LogState {
            newest: claim.stamp,
            run: cost,
            position: state.after(cost),
            ring,
            reserved: view.is_ahead(claim),
        };
        let expired = |stamp: u64| stamp + self.window() <= view.kept_by();
        if expired(state.newest) || state.run == 0 && len == 0 {
            // Nothing counts, so nothing is spilled.
            let ring = if cost as usize <= len { state.ring } else { RingRef::NONE };
            return Some(claimed(ring).pack());
        }
        // The slots of the newest claim are not expired either.
        let fits = cost as usize <= len;
        // A ring of all that is remembered takes the place of its oldest permits.
        let is_longest = self.counts_refused() && len >= self.remembered() as usize;
        if fits && (is_longest || expired(view.back(u32::try_from(len).unwrap_or(u32::MAX) + 1 - cost))) {
            spill(view);
            return Some(claimed(state.ring).pack());
        }
        self.claim_in_copy(rings, view, claim)
    }

    /// Claims in a new ring, with the stamps that are live.
    #[cold]
    fn claim_in_copy(&self, rings: &Rings, view: &View<'_>, claim: Claim) -> Option<Word> {
        let Claim { cost, stamp } = claim;
        // Of refused requests, as many as fit already: a limit may have been larger.
        let most = if self.counts_refused() { self.remembered().max(view.most()) } else { 1 << MAX_CLASS };
        let live = view.count_from(self.live_from(view.kept_by()), most.saturating_sub(cost));
        let run = cost.min(MAX_RUN);
        // Twice the permits, so that the next claims fit, but no more than the limit needs.
        let slots = (live + cost).max(live.saturating_mul(2).min(self.most_slots()));
        let stamps = view.newest_stamps(live).chain(core::iter::repeat_n(stamp, (cost - run) as usize));
        let ring = written(rings, slots, stamps)?;
        let state = LogState { newest: stamp, run, position: live + cost, ring, reserved: view.is_ahead(claim) };
        Some(state.pack())
    }

    /// See [`Plan::refund`](super::plan::Plan::refund). `stamp` is that of the permits.
    pub(super) fn refund(
        &self,
        place: Place<'_>,
        word: Word,
        reading: u64,
        cost: u32,
        stamp: u64,
    ) -> Attempt<(Word, u32)> {
        let view = View::of(place, word, reading);
        let live = view.count_from(self.live_from(view.lasting()), u32::MAX);
        let known = if self.counts_refused() { live.min(self.remembered()) } else { live };
        let found = view.count_from(stamp, known) - view.count_from(stamp + 1, known);
        let refunded = found.min(cost);
        if refunded == 0 || stamp + self.window() <= view.kept_by() {
            return if view.stands(place) { Attempt::Done((word, 0)) } else { Attempt::Lost };
        }
        let mut skipped = 0;
        let kept = view.newest_stamps(live).filter(|&other| {
            let skips = other == stamp && skipped < refunded;
            skipped += u32::from(skips);
            !skips
        });
        place.hint.turn_off();
        Attempt::with_room(copied(place.rings, &view, kept)).map(|new| (new, refunded))
    }

    /// The word of the log under other quotas in another arena, as far as its permits may ever count;
    /// `None` if there is no room. The word must be frozen.
    pub(super) fn moved(&self, from: Place<'_>, word: Word, reading: u64, under: &Self, to: &Rings) -> Option<Word> {
        let view = View::of(from, word, reading);
        // What has expired does not come back under a longer window.
        let time = if under.window() > self.window() { view.kept_by() } else { view.lasting() };
        let live = view.count_from(self.live_from(time), u32::MAX);
        copied(to, &view, view.newest_stamps(live))
    }

    /// The stamps that count or may come to count, oldest first. `None` if the word changed
    /// meanwhile.
    #[cfg(feature = "snapshot")]
    pub(super) fn stamps(&self, place: Place<'_>, word: Word, reading: u64) -> Option<Vec<u64>> {
        let view = View::of(place, word, reading);
        let live = view.count_from(self.live_from(view.kept_by()), u32::MAX);
        let stamps = view.newest_stamps(live).collect();
        view.stands(place).then_some(stamps)
    }

    /// The word of a log with those of these stamps that count, oldest first; `None` if there is no
    /// room.
    #[cfg(feature = "snapshot")]
    pub(super) fn imported(&self, rings: &Rings, stamps: &[u64], now: u64) -> Option<Word> {
        let live = &stamps[stamps.partition_point(|&stamp| stamp < self.live_from(now))..];
        let live = &live[live.len().saturating_sub(1 << MAX_CLASS)..];
        // A permit is reserved for at most one window ahead.
        let stamps = live.iter().map(|&stamp| stamp.min(now + self.window()));
        let stamps: Vec<u64> = stamps.collect();
        let Some(&newest) = stamps.last() else { return Some(Word::NEW) };
        packed(rings, newest, newest > now, &stamps)
    }

    /// The first time from which the log is no different from that of a new key, but for the stamps
    /// that it may grant. As of this word, if it still stands.
    pub(super) fn over_at(&self, place: Place<'_>, word: Word) -> u64 {
        let view = View::of(place, word, 0);
        // If all permits with the newest stamp were refunded, this is an earlier one, or none.
        match view.back(1) {
            0 => view.state.newest,
            last => view.state.newest.max(last + self.window()),
        }
    }
}

/// The permits left of a quota, after a claim.
fn left_of(bound: Bound, view: &View<'_>, claim: Option<Claim>) -> Left {
    let from_now = |time: u64| time.saturating_sub(view.reading);
    let (cost, newest) = claim.map_or((0, view.state.newest), |claim| (claim.cost, claim.stamp));
    let time = view.reading.max(newest);
    let older = view.count_from((time + 1).saturating_sub(bound.window), bound.limit);
    let live = (older + cost).min(bound.limit);
    if live == 0 {
        return Left::all(bound.limit);
    }
    let oldest = if live > cost { view.back(live - cost) } else { newest };
    // The permits of the newest stamp may have been refunded.
    let last = if cost > 0 { newest } else { view.back(1) };
    let (next, reset_after_ns) = (oldest + bound.window, from_now(last + bound.window));
    let is_behind = claim.map_or(view.is_behind_reserved(), |claim| view.is_ahead(claim));
    let (remaining, next) = match (is_behind, bound.limit - live) {
        (true, 0) => (0, next.max(newest)),
        (true, _) => (0, newest),
        (false, remaining) => (remaining, next),
    };
    Left { limit: bound.limit, remaining, next_after_ns: from_now(next), reset_after_ns }
}

/// A word with some of the permits of another, oldest first.
fn copied(rings: &Rings, view: &View<'_>, stamps: impl Iterator<Item = u64>) -> Option<Word> {
    let stamps: Vec<u64> = stamps.collect();
    // The newest stamp stays even if its permits are gone: no later permit is before it, and
    // the key is not forgotten before it expires. A reserved one may be later than every clock.
    let newest = match stamps.last() {
        Some(&kept) if view.is_behind_reserved() => kept,
        None if view.is_behind_reserved() => view.reading,
        _ => view.state.newest,
    };
    packed(rings, newest, view.state.reserved && newest > view.reading, &stamps)
}

/// A word with these permits, oldest first: those with the newest stamp in the word, others in a
/// new ring.
fn packed(rings: &Rings, newest: u64, reserved: bool, stamps: &[u64]) -> Option<Word> {
    let as_count = |permits: usize| u32::try_from(permits).unwrap_or(u32::MAX);
    let run = as_count(stamps.iter().rev().take_while(|&&stamp| stamp == newest).count()).min(MAX_RUN);
    let (older, position) = (&stamps[..stamps.len() - run as usize], as_count(stamps.len()));
    let ring = if older.is_empty() { RingRef::NONE } else { written(rings, position, older.iter().copied())? };
    Some(LogState { newest, run, position, ring, reserved }.pack())
}

/// Writes the newest claim to its slots, unless another thread has.
#[inline]
fn spill(view: &View<'_>) {
    let LogState { newest, run, position, .. } = view.state;
    for back in 1..=run {
        view.ring.raise(view.slot(position.wrapping_sub(back)), newest);
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

#[cfg(test)]
mod kit;
#[cfg(all(test, tollgate_loom))]
mod loom_tests;
#[cfg(all(test, not(tollgate_loom)))]
mod tests;
