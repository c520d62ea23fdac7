//! Cells whose permits are counted in steps: the quantised sliding window log. What it admits is in `quantised/history.rs`.
//!
//! # How it works
//! A key's *block* holds what was granted before its newest step, and does not change once it is the cell's:
//!
//! ```text
//! newest step | permits before it, permits it began with | entries | entry, entry, ...        (oldest first)
//! ```
//!
//! The head holds the permits *used* in the newest step. A request of that step is **one compare-and-swap on the head**. One that
//! begins a step replaces the block, as a log's growth does (see the essay in `log.rs`): the head is marked *growing*, which stops
//! charges, so what was used stands still. Whoever wants permits then copies the entries that still count into a block of its own, adds
//! the step that is over and its own claim, and offers that by one compare-and-swap on the cell's reference. The first offer wins, and
//! its claim with it; then the head opens with what the new block says its step began with, which whoever comes by can do.
//!
//! # Why it is exact
//! 1. A charge succeeds only on the head that was seen. Heads do not return (see below), so nothing was charged meanwhile and the
//!    block was the same all the time: a block is replaced only while the head is growing, and then the head that opens is another.
//! 2. An offer succeeds only on the reference that was seen, and if the head stood after that (see the essay in `log.rs`). References
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
//! The loom tests in `cell/quantised/loom_tests.rs` exercise them.

mod algorithm;
pub(super) mod blocks;
mod decide;
mod history;
#[cfg(feature = "serde")]
mod keep;
#[cfg(all(test, tollgate_loom))]
mod loom_tests;
pub(super) mod plan;
mod refund;
#[cfg(all(test, not(tollgate_loom)))]
mod stalled_tests;
pub(super) mod view;
