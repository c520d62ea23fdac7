//! The quantised sliding window log on one word and a ring. [`fields`] says what counts when.
//!
//! # The protocol
//!
//! A key's word has its newest step, and the permits *used* in it. The ring has the steps that are
//! over, an entry each: the step, and the *total* of permits up to it since the ring was made. So
//! the permits that count are the difference of two totals, and a bisection finds the entry from
//! which on steps count. A request loads the word, reads the clock, and reads the ring.
//!
//! - **Too many count: denied.** The entries belong to the word if the word still stands
//!   afterwards.
//! - **It fits, in the newest step:** the request swaps the word for one with more permits used.
//! - **It fits, in a later step:** the request *spills* the newest step into its slot, and swaps
//!   the word for one with its own step, whose slot is the next.
//! - **The next slot is still needed, or its numbers have run out: copied.** The request writes all
//!   steps that count to a new ring and swaps the word for one that names it. Refunds do so, too.
//!
//! # What a word can read
//!
//! While a word stands, only the slot of its newest step is written. The others were written
//! before, and late spills leave them as they are (see below). So a word reads the others alone:
//! the steps that count, and one entry before them, whose total is where they begin. A step begins
//! in a ring only if that leaves such an entry outside its own slot. A ring with two slots more
//! than the window has steps is always long enough.
//!
//! A thread may stop between its loads of the word and of the ring. If the word has changed, the
//! slot before the newest step's may have been written again: it has a later step then, and the
//! thread starts again. Otherwise it has the total that the newest step began with. So what is
//! spilled is right for its word, whether that still stands or not.
//!
//! # Why a late spill does no harm
//!
//! A spill writes a slot only from a value that is *less*, by compare-and-swap. The values of a
//! slot only grow: within a step the total grows, and the next round of the ring has later steps.
//! So when a thread spills late,
//!
//! - either the newest step is the same: the claim that begins the next step writes the slot again,
//!   with as many permits or more;
//! - or another step has begun in this ring: the slot was written before, with as many permits or
//!   more, and the late write fails;
//! - or the word names another ring, or is frozen: no word reads this slot.
//!
//! Numbers in slots do not wrap. A ring belongs to words of one epoch of 2^32 steps. A ring whose
//! total would exceed 31 bits is copied, and what counts, at most 2^30, is counted anew.
//!
//! # Why no window holds more than the limit
//!
//! A swap succeeds only if the word stood from its load to the swap. While it stands the ring has
//! the same entries, so what was read belongs to it. A word with a ring never returns: `used` only
//! grows in a step, `slot` moves with each, and a refund names a new ring. Without a ring a refund
//! may bring a word back; but then everything is in the word. Steps never decrease, and a copy
//! drops only what had expired when the newest step began, so everything that counts is there.
//!
//! # Orderings
//!
//! - The swap of the word releases the spilled slot, and those of a copied ring; the load of the
//!   word acquires them: `loom_steps_two_claims_begin_a_step`.
//! - The compare-and-swap of a spill releases, and the loads of slots acquire: a thread that sees a
//!   later entry than its word's also sees the later word when it loads the word again, so a denial
//!   by a wrong entry is never told: `loom_steps_a_late_spill_finds_its_slot_taken`.

use super::ring::{Ring, Rings};
use super::sync::Ordering;
use super::word::Word;
use crate::decision::PerQuota;

mod fields;
mod view;

use super::plan::{Ask, Attempt, Place, Proposal};
pub(crate) use fields::StepsPlan;
use fields::{Entry, MAX_TOTAL, StepsState};
use view::View;

impl View<'_> {
    /// The word with a claim of `cost` permits, which fit; `None` if there is no room for a ring.
    #[inline]
    fn claimed(&self, rings: &Rings, cost: u32) -> Option<Word> {
        let state = self.state;
        if self.step == state.newest {
            return Some(StepsState { used: state.used.saturating_add(cost), ..state }.pack());
        }
        let first = self.step.saturating_sub(self.plan.window);
        let total = self.total.saturating_add(state.used);
        // The next slot is lost to this step. So an entry that has expired must be in the one after
        // it.
        let is_free = |ring: Ring<'_>| {
            let (back, number) = (u32::try_from(ring.len()).unwrap_or(u32::MAX) - 2, state.number_of(first));
            state.is_in_epoch_of(self.step) && total <= MAX_TOTAL && self.back(back).number() < number
        };
        match self.ring {
            Some(ring) if is_free(ring) => {
                spill(ring, state, total);
                Some(state.next(self.step, cost).pack())
            }
            _ => self.claimed_in_copy(rings, first, cost),
        }
    }

    /// The word with a claim that begins a step, and a new ring for the steps that count.
    #[cold]
    fn claimed_in_copy(&self, rings: &Rings, first: u64, cost: u32) -> Option<Word> {
        let older = self.all_from(first);
        // Twice the entries, so that the next steps fit, but no more than the window needs.
        let slots = (older.len() + 3).max(2 * older.len()).min(self.plan.most_slots());
        written(rings, StepsState { newest: self.step, used: cost, ..StepsState::default() }, &older, slots)
    }
}

impl StepsPlan {
    /// The slots of a ring that never has to be copied.
    fn most_slots(&self) -> usize {
        usize::try_from(self.window).unwrap_or(usize::MAX).saturating_add(2)
    }

    /// See [`Plan::propose`](super::plan::Plan::propose). No permit can be reserved ahead.
    #[inline]
    pub(super) fn propose(
        &self,
        place: Place<'_>,
        word: Word,
        reading: u64,
        Ask { cost, peeks, .. }: Ask,
        left: Option<&mut PerQuota>,
    ) -> Proposal {
        let Some(view) = View::of(self, place, word, reading) else { return Proposal::Lost };
        let denied_until = view.denied_until(cost);
        let grants = denied_until.is_none() && !peeks;
        if let Some(left) = left {
            left.set([if grants { view.left_after(cost) } else { view.left() }]);
        }
        if grants {
            let claimed = view.claimed(place.rings, cost);
            return claimed.map_or(Proposal::NoRoom, |word| Proposal::Admit {
                word,
                mark: view.step.into(),
                delay_ns: 0,
            });
        }
        if place.word.load() != word {
            return Proposal::Lost;
        }
        match denied_until {
            Some(until) => Proposal::Deny { wait_ns: until.saturating_sub(reading), quota: 0, word: None },
            None => Proposal::Admit { word, mark: 0, delay_ns: 0 },
        }
    }

    /// The word after a refund of `cost` permits of the step that is the mark, and their number. If
    /// they have expired, or were refunded, the word is the same.
    #[expect(clippy::cast_possible_truncation, reason = "a mark is a step")]
    pub(super) fn refund(
        &self,
        place: Place<'_>,
        word: Word,
        reading: u64,
        cost: u32,
        mark: u128,
    ) -> Attempt<(Word, u32)> {
        let Some(view) = View::of(self, place, word, reading) else { return Attempt::Lost };
        let (mut state, step) = (view.state, mark as u64);
        let mut older = view.older_from(view.lasting());
        let permits = if step == state.newest {
            Some(&mut state.used)
        } else {
            older.iter_mut().find(|(other, _)| *other == step).map(|(_, permits)| permits)
        };
        match permits {
            Some(permits) if *permits >= cost && cost > 0 && step >= view.first => *permits -= cost,
            _ if place.word.load() == word => return Attempt::Done((word, 0)),
            _ => return Attempt::Lost,
        }
        older.retain(|&(_, permits)| permits > 0);
        let new = written(place.rings, state, &older, older.len() + 2);
        Attempt::with_room(new).map(|new| (new, cost))
    }

    /// The first time from which a key with this word is no different from a new one.
    pub(super) fn over_at(&self, word: Word) -> u64 {
        self.free_at(StepsState::unpack(word).newest)
    }

    /// A frozen word as it goes on in another arena, with the steps that may ever count; `None` if
    /// there is no room.
    pub(super) fn moved(&self, from: Place<'_>, word: Word, reading: u64, to: &Rings) -> Option<Word> {
        let view = View::of(self, from, word, reading)?;
        let older = view.older_from(view.lasting());
        written(to, view.state, &older, older.len() + 2)
    }

    /// The ends of the steps that count, and their permits, oldest first. `None` if the word changed
    /// meanwhile.
    #[cfg(feature = "snapshot")]
    pub(super) fn ends(&self, place: Place<'_>, word: Word, reading: u64) -> Option<Vec<(u64, u32)>> {
        let view = View::of(self, place, word, reading)?;
        let steps = view.all_from(view.first).into_iter();
        let ends = steps.map(|(step, permits)| (self.end_of(step), permits)).collect();
        (place.word.load() == word).then_some(ends)
    }

    /// The word of a key with so many permits at these times, oldest first; `None` if there is no
    /// room.
    ///
    /// Stamps rounded by another clock are rounded up again, by less than a step, but not past the
    /// present step: no permit is later than that.
    #[cfg(feature = "snapshot")]
    pub(super) fn imported(&self, rings: &Rings, ends: &[(u64, u32)], now: u64) -> Option<Word> {
        let latest = self.step_of(now);
        let mut steps: Vec<(u64, u32)> = Vec::with_capacity(ends.len());
        for &(end, permits) in ends.iter().filter(|&&(_, permits)| permits > 0) {
            let step = self.step_of(end).min(latest);
            match steps.last_mut() {
                Some((last, sum)) if *last >= step => *sum = sum.saturating_add(permits),
                _ => steps.push((step, permits)),
            }
        }
        let Some((newest, used)) = steps.pop() else { return Some(Word::NEW) };
        steps.retain(|&(step, _)| newest - step <= self.window);
        let state = StepsState { newest, used: used.min(MAX_TOTAL), ..StepsState::default() };
        written(rings, state, &steps, steps.len() + 2)
    }

    /// The slots that a word takes in another arena, at most.
    pub(super) fn slots(&self, word: Word) -> usize {
        StepsState::unpack(word).ring().len()
    }
}

/// Writes the newest step to its slot, unless another thread has.
#[inline]
fn spill(ring: Ring<'_>, state: StepsState, total: u32) {
    ring.raise(state.place(0), Entry::new(state.number_of(state.newest), total).0);
}

/// A word with this newest step, and a new ring of at least so many slots with the older steps, if
/// there are any.
fn written(rings: &Rings, state: StepsState, older: &[(u64, u32)], slots: usize) -> Option<Word> {
    if older.is_empty() {
        return Some(StepsState { slot: 0, class: 0, ..state }.pack());
    }
    let name = rings.take(slots.next_power_of_two().ilog2())?;
    // A slot of zero remains before the first entry: nothing was granted before it.
    let state = state.in_ring(name, older.len() + 1)?;
    let ring = rings.get(name);
    let mut total = 0_u32;
    for (slot, &(step, permits)) in ring.iter().skip(1).zip(older) {
        total = total.saturating_add(permits).min(MAX_TOTAL);
        // The swap of the word releases it.
        slot.store(Entry::new(state.number_of(step), total).0, Ordering::Relaxed);
    }
    Some(state.pack())
}

#[cfg(all(test, tollgate_loom))]
mod loom_tests;
#[cfg(all(test, not(tollgate_loom)))]
mod tests;
