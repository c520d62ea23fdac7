//! Cells whose permits are counted in steps: the quantised sliding window log. What it admits is in `steps/history.rs`.
//!
//! # How it works
//! A key's *block* holds what was granted before its newest step, and does not change once it is the cell's:
//!
//! ```text
//! newest step | permits before it, permits it began with | entries | entry, entry, ...        (oldest first)
//! ```
//!
//! The head holds the permits *used* in the newest step. A request of that step is **one compare-and-swap on the head**. One that
//! begins a step replaces the block, as a log's growth does (see the essay in `cell.rs`): the head is marked *growing*, which stops
//! charges, so what was used stands still. Whoever wants permits then copies the entries that still count into a block of its own, adds
//! the step that is over and its own claim, and offers that by one compare-and-swap on the cell's reference. The first offer wins, and
//! its claim with it; then the head opens with what the new block says its step began with, which whoever comes by can do.
//!
//! # Why it is exact
//! 1. A charge succeeds only on the head that was seen. Heads do not return (see below), so nothing was charged meanwhile and the
//!    block was the same all the time: a block is replaced only while the head is growing, and then the head that opens is another.
//! 2. An offer succeeds only on the reference that was seen, and if the head stood after that (see the essay in `cell.rs`). References
//!    do not return, so the head was growing all the time, and stood still: whoever opens it, or empties it, has replaced the
//!    block before.
//! 3. So decisions that grant take effect one after the other, each by `history.rs` on all that was granted before.
//! 4. A claim's step comes with its offer, by its own clock. Nobody publishes anything for anybody, with one exception.
//!
//! # The first step
//! A new key's step must be chosen after the cell has become known (see "Clocks" in `table.rs`). So its block has a mark in place of the
//! step, which never returns in any block; **whoever comes first publishes the step**, by a time of its own that is no earlier than
//! the horizon, and the compare-and-swap makes one of the proposed steps the step. So for a block that has been emptied.
//!
//! # What never returns
//! - *Heads*: below the life there are `{ era, used }`, a number that only grows: a charge adds to `used`, each new block (and permits
//!   given back) to `era`. A next key's goes on from there.
//! - *References*: tagged by the era.
//! - *Marks*: one counter for all cells. Links between free blocks don't look like one.
//!
//! Blocks have pools of their own: what a log's claimant that sleeps may write to in a ring that is gone is never one of these. A cell
//! never has anything but a reference where another key's log had its one slot; and as after a forgotten log, see `release`, a cell that
//! is forgotten says so to the next.
//!
//! # Orderings
//! - `head`: claims acquire and release, as for a log.
//! - the reference: the swap releases the block, readers acquire it.
//! - words of a block are released and acquired: who sees one of the block's next owner also sees that the head, or the
//!   reference, has moved on.
//!
//! The loom tests in `cell/steps_loom_tests.rs` exercise them.

mod blocks;
mod give_back;
mod history;
#[cfg(feature = "serde")]
mod keep;
mod plan;
#[cfg(all(test, not(tollgate_loom)))]
mod stalled_tests;

use super::joint::Part;
use super::memory::Cell;
use super::words::{Head, RingRef, Slot, State, time_of};
use super::{Ask, Attempt, Cells, Charged, Known, Prepared};
use crate::clock::Clock;
use crate::decision::{Admission, AtOnce, Decision, Denial, DenialReason, Status};
use crate::sync::{AtomicU64, Ordering};
use blocks::Block;
pub(super) use blocks::Blocks;
use history::{Entry, History, Verdict, low_half};
pub(crate) use plan::Stepped;

/// The first word of a block.
///
/// ```text
/// { step: 63, is_known: 1 }
/// ```
///
/// What is not known has a mark for a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Newest(u64);

impl Newest {
    fn known(step: u64) -> Self {
        Self((step << 1) | 1)
    }

    fn unknown(mark: u64) -> Self {
        Self(mark << 1)
    }

    #[inline]
    fn step(self) -> Option<u64> {
        (self.0 & 1 == 1).then_some(self.0 >> 1)
    }
}

/// A block, as of a head.
#[derive(Clone, Copy)]
struct View<'a> {
    reference: RingRef,
    history: History<'a>,
}

/// What a block is made of.
struct Contents<E> {
    newest: Newest,
    /// Permits granted before the newest step.
    start: u32,
    /// Permits granted in it.
    used: u32,
    /// As many entries there are at most.
    most: usize,
    entries: E,
}

impl Cells {
    /// A block for the caller alone, with room for so many entries at least. It is tagged by the head that it is to belong to.
    fn new_block(&self, stepped: &Stepped, head: Head, contents: Contents<impl Iterator<Item = Entry>>) -> RingRef {
        let Contents { newest, start, used, most, entries } = contents;
        let pools = self.blocks.as_ref().expect("there are blocks where there is such a plan");
        let class = pools.class_for(Block::HEADER + most);
        let blocks = pools.of(class);
        let number = blocks.take().expect("there are more blocks than there can be cells");
        let block = Block::of(blocks.block(number)).expect("a block is longer than its header");
        // Released: see "Orderings".
        let write = |word: &AtomicU64, value: u64| word.store(value, Ordering::Release);
        let mut length = 0;
        for (word, entry) in block.entries.iter().zip(entries) {
            write(word, entry.0);
            length += 1;
        }
        write(block.step, newest.0);
        write(block.counts, (u64::from(start) << 32) | u64::from(used));
        write(block.length, length);
        RingRef::new(head.epoch(), class, stepped.era(head), number)
    }

    /// A block for a key that has been granted nothing before, to belong to this head. Its step is not known.
    fn new_empty_block(&self, stepped: &Stepped, head: Head) -> RingRef {
        let newest = Newest::unknown(self.marks.fetch_add(1, Ordering::Relaxed));
        let contents = Contents { newest, start: 0, used: stepped.used(head), most: 0, entries: core::iter::empty() };
        self.new_block(stepped, head, contents)
    }

    /// A block, or one that a reference names that is out of date.
    #[inline]
    fn block_of(&self, reference: RingRef) -> Option<Block<'_>> {
        self.blocks.as_ref()?.block_of(reference)
    }

    /// What is known of a key. `None` if its newest step is not known yet.
    #[inline]
    fn history(&self, stepped: &Stepped, head: Head, reference: RingRef) -> Option<History<'_>> {
        let block = self.block_of(reference)?;
        let step = Newest(block.step.load(Ordering::Acquire)).step()?;
        let length = block.length.load(Ordering::Acquire);
        let length = usize::try_from(length).map_or(0, |length| length.min(block.entries.len()));
        let start = low_half(block.counts.load(Ordering::Acquire) >> 32);
        Some(History { step, used: stepped.used(head), start, entries: &block.entries[..length] })
    }

    /// The first cell of a key, with `cost` permits claimed in a step that is not known yet.
    pub(super) fn first_steps(&self, stepped: &Stepped, free: Head, cost: u32) -> (RingRef, Head) {
        let head = stepped.opened(free, false, cost);
        (self.new_empty_block(stepped, head), head)
    }

    /// Publishes the newest step, if that has not been done: the one that `time` belongs to. `time` is no earlier than the horizon.
    pub(super) fn settle_steps(&self, stepped: &Stepped, cell: &Cell, head: Head, reference: RingRef, time: u64) {
        let Some(newest) = self.block_of(reference).map(|block| block.step) else { return };
        let seen = Newest(newest.load(Ordering::Acquire));
        // What was read is of this head only if the head still stands; and while a cell grows its head does, but the block may have been
        // given away.
        let stands = cell.stands(head) && cell.refers_to(reference);
        if reference.epoch() != head.epoch() || seen.step().is_some() || !stands {
            return;
        }
        // Failing is as good: then somebody else has published it.
        let step = Newest::known(stepped.steps.step_of(time));
        let _ = newest.compare_exchange(seen.0, step.0, Ordering::Release, Ordering::Relaxed);
    }

    /// What a cell says about how long it matters.
    pub(super) fn known_of_steps(&self, stepped: &Stepped, head: Head, reference: RingRef) -> Known {
        if reference.epoch() != head.epoch() {
            return Known::OfAnotherRing;
        }
        let newest = match self.history(stepped, head, reference) {
            Some(history) => history.newest(),
            None if stepped.used(head) > 0 => return Known::Unpublished,
            None => None,
        };
        match newest {
            // What is noted of a key that is forgotten is no later than what some clock has shown.
            Some(step) => Known::Until(stepped.steps.free_at(step), Slot::new(stepped.steps.begin_of(step), false, 0)),
            None => Known::Until(0, Slot::ancient(0, 0)),
        }
    }

    /// The head of a growing cell once it is open on the block that it has by now.
    pub(super) fn opened_on(&self, stepped: &Stepped, growing: Head, reference: RingRef) -> Head {
        let used = self.block_of(reference).map_or(0, |block| low_half(block.counts.load(Ordering::Acquire)));
        stepped.opened(growing, !growing.epoch(), used)
    }

    /// Replaces the block of a growing cell by an empty one, whatever still counts.
    pub(super) fn empty_steps(&self, stepped: &Stepped, cell: &Cell, growing: Head, old: RingRef) {
        let offer = self.new_empty_block(stepped, stepped.opened(growing, !growing.epoch(), 0));
        self.offer(cell, growing, old, 0, offer);
    }

    /// Decides on an open cell, if that takes nothing out of the ordinary.
    #[inline]
    pub(super) fn steps_at_once(
        &self,
        stepped: &Stepped,
        cell: &Cell,
        head: Head,
        cost: u32,
        reading: u64,
    ) -> Option<AtOnce> {
        let reference = cell.reference();
        if reference.epoch() != head.epoch() {
            return None;
        }
        let history = self.history(stepped, head, reference)?;
        let time = time_of(reading);
        match history.verdict(&stepped.steps, time, cost) {
            Verdict::Charge => {
                cell.claim(head, stepped.charged(head, cost))?;
                Some(AtOnce::admitted(0))
            }
            Verdict::Begin(_) => None,
            Verdict::Deny(until) => {
                let stands = cell.stands(head);
                stands.then(|| AtOnce::denied(until.saturating_sub(time), 0))
            }
        }
    }

    /// What is known of a cell once its step is. `None` if something had to be done first, or has changed.
    fn steps_view(&self, stepped: &Stepped, cell: &Cell, head: Head, clock: &impl Clock) -> Option<(View<'_>, u64)> {
        if head.state() == State::Held {
            self.help(head);
            return None;
        }
        let reference = cell.reference();
        if reference.epoch() != head.epoch() {
            if head.state().is_growing() {
                self.open(cell, head);
            }
            return None;
        }
        // Read after the head, and anew at each attempt.
        let time = time_of(clock.now());
        let Some(history) = self.history(stepped, head, reference) else {
            self.settle(cell, head, reference, time);
            return None;
        };
        Some((View { reference, history }, time))
    }

    /// One attempt at a decision.
    pub(super) fn steps_attempt(
        &self,
        stepped: &Stepped,
        ask: Ask,
        cell: &Cell,
        head: Head,
        cost: u32,
        clock: &impl Clock,
    ) -> Attempt {
        let lost = || Attempt::Lost(cell.head());
        let Some((view, time)) = self.steps_view(stepped, cell, head, clock) else { return lost() };
        let View { reference, history } = view;
        let verdict = history.verdict(&stepped.steps, time, cost);
        // As it is before the claim; and loads of different heads may contradict each other.
        let status = stepped.status(&history, time);
        let step = match verdict {
            Verdict::Deny(until) => {
                let told = Attempt::Decided(Status { decision: denied(until, time), ..status }, Charged::nothing(head));
                return if view.stands(cell, head) { told } else { lost() };
            }
            _ if ask == Ask::Peek => {
                let told = Attempt::Decided(status, Charged::nothing(head));
                return if view.stands(cell, head) { told } else { lost() };
            }
            Verdict::Charge => history.step,
            Verdict::Begin(step) => step,
        };
        let claimed = if step == history.step && head.state().is_open() {
            let charged = stepped.charged(head, cost);
            cell.claim(head, charged).map(|()| charged)
        } else {
            let growing = head.with_state(State::Growing);
            cell.begin_resize(head, growing).and_then(|()| {
                let (offer, opened) = self.next_block(stepped, growing, &history, step, cost);
                self.offer(cell, growing, reference, 0, offer).then_some(opened)
            })
        };
        let Some(head) = claimed else { return lost() };
        let remaining = status.remaining.saturating_sub(cost);
        let reset_after_ns = stepped.steps.free_at(step).saturating_sub(time);
        Attempt::Decided(Status { remaining, reset_after_ns, ..status }, Charged { head, mark: mark_of(step) })
    }

    /// A block for the caller alone with a claim of `cost` permits in this step, the newest or a later one; and the head to go with it.
    fn next_block(
        &self,
        stepped: &Stepped,
        head: Head,
        history: &History<'_>,
        step: u64,
        cost: u32,
    ) -> (RingRef, Head) {
        let begins = step != history.step;
        let used = if begins { cost } else { history.used.saturating_add(cost) };
        let start = if begins { history.start.wrapping_add(history.used) } else { history.start };
        let opened = stepped.opened(head, !head.epoch(), used);
        let entries = history.kept(&stepped.steps, step);
        let most = entries.size_hint().1.unwrap_or(history.entries.len() + 1);
        let contents = Contents { newest: Newest::known(step), start, used, most, entries };
        (self.new_block(stepped, opened, contents), opened)
    }

    /// Prepares to claim `cost` permits of a cell together with others.
    pub(super) fn prepare_steps(
        &self,
        stepped: &Stepped,
        cell: &Cell,
        id: u32,
        head: Head,
        cost: u32,
        clock: &impl Clock,
    ) -> Prepared {
        let Some((view, time)) = self.steps_view(stepped, cell, head, clock) else { return Prepared::Again };
        let View { reference, history } = view;
        let part = |next, rings, step| {
            Prepared::Fits(Part { id, seen: head, next, rings, mark: mark_of(step) }, Admission::COUNTED)
        };
        match history.verdict(&stepped.steps, time, cost) {
            Verdict::Deny(_) => Prepared::Again,
            // What was given back, and has stopped in between, is finished first: nobody else does here.
            _ if head.state().is_growing() => {
                let (offer, _) = self.next_block(stepped, head, &history, history.step, 0);
                self.offer(cell, head, reference, 0, offer);
                Prepared::Again
            }
            Verdict::Charge => part(stepped.charged(head, cost), None, history.step),
            Verdict::Begin(step) => {
                let (offer, opened) = self.next_block(stepped, head, &history, step, cost);
                part(opened, Some((reference, offer)), step)
            }
        }
    }
}

impl View<'_> {
    /// Whether what was seen was there all the time.
    fn stands(&self, cell: &Cell, head: Head) -> bool {
        cell.stands(head) && cell.refers_to(self.reference)
    }
}

/// The mark of what was charged in a step: never zero.
fn mark_of(step: u64) -> u64 {
    step + 1
}

fn denied(until: u64, time: u64) -> Decision {
    Decision::Denied(Denial::new(until.saturating_sub(time), DenialReason::Quota, 0))
}
