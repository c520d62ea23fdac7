//! The quantised sliding window log: a cell's permits, counted in steps. `quantised/history.rs`
//! says which requests it admits.
//!
//! # How it works
//!
//! A key's *block* holds the permits granted before its newest step. It does not change once it is
//! offered (INV-STEP):
//!
//! ```text
//! newest step | permits before it, permits it began with | entries | entry, ... (oldest first)
//! ```
//!
//! The head holds the permits *used* in the newest step. A request in that step is one
//! compare-and-swap of the head. A request that begins a step replaces the block, by a resize
//! (INV-RESIZE): the head is marked *resizing*, so `used` stands still. A thread that wants permits
//! copies the entries that still count into a block of its own, adds the old step and its own
//! claim, and offers the block by one compare-and-swap of the reference. The first offer wins, and
//! its claim with it. Then any thread opens the head, with the number that the new block says its
//! step began with.
//!
//! # Why it is exact
//!
//! 1. A charge succeeds only on the head that was loaded. Heads do not return (INV-HEAD), so
//!    nothing was charged in between and the block was the same.
//! 2. An offer succeeds only on the reference that was loaded, if the head stood after that.
//!    References do not return (INV-REFERENCE), so the head was resizing and stood still all the
//!    time.
//! 3. So grants take effect one after the other, each decided by `history.rs` on everything granted
//!    before.
//! 4. A claim's step comes with its offer, by its own clock. No thread publishes for another, with
//!    one exception.
//!
//! # The first step
//!
//! A new key's step is chosen after its cell is reachable (INV-FIRST). So its block has a sentinel
//! in place of the step. The first thread to find it publishes a step, by a time of its own that is
//! no earlier than the timestamp floor; the compare-and-swap selects one. The same goes for a block
//! that was emptied.
//!
//! # What never returns
//!
//! - *Heads*: the fields below the incarnation are `{ era, used }`, a number that only grows. A
//!   charge adds to `used`; a block or a refund adds to `era`. The next key continues from there.
//! - *References*: their tag is the era.
//! - *Sentinels*: one counter for all cells. Links between free blocks differ from them.
//!
//! Blocks have slabs of their own, so a stalled claimant of a log never writes into one. Where
//! another key's log had its one slot, a cell with blocks always has a reference. A forgotten cell
//! tells its next incarnation so: see `free_memory` in `incarnation.rs`.
//!
//! # Orderings
//!
//! - The head: claims acquire and release, as for a log.
//! - The reference: the swap releases the block, readers acquire it.
//! - Words of a block are released and acquired: a thread that sees a word of the next owner also
//!   sees that the head or the reference has moved on.
//!
//! The models are in `cell/quantised/loom_tests.rs`.

mod decide;
mod driver;
#[cfg(feature = "snapshot")]
mod export;
mod history;
#[cfg(all(test, tollgate_loom))]
mod loom_tests;
pub(super) mod plan;
mod refund;
#[cfg(all(test, not(tollgate_loom)))]
mod stalled_tests;
pub(super) mod view;
