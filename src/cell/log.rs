//! The sliding window log: a cell's ring holds the stamps of its key's last permits.
//!
//! # The ring: claim on the head, publish in the slot
//! A cell's `head` says how many permits have been claimed (as lap and position). Slot by slot the ring holds their stamps in
//! the order of their claims. A request of cost n for a ring of N slots at time t looks at the n-th slot from the head: the
//! newest of the n oldest stamps.
//!
//! - *Live*: N - n + 1 stamps are live, the request is denied. (The head is read again: if it has not moved, the slot that was
//!   looked at belonged to it.)
//! - *Expired*: the n oldest stamps have expired. A compare-and-swap moves the head by n: the permits are claimed, all or none.
//!   Then the stamp t is written into the n slots, first to last, each by a compare-and-swap from what was there before.
//!
//! A thread that stalls between claim and publication leaves slots whose parity is not that of their lap. **Whoever comes next
//! publishes them first** (`settle`): it takes a time of its own, read after it has seen the claim, and the compare-and-swap on
//! the first slot of the claim makes one of the proposed times the stamp of the whole claim. So nobody waits, at most one
//! claim is unpublished at any time, and no decision is taken between a claim and the choice of its stamp.
//!
//! # Why it is exact
//! 1. *Stamps never decrease along the ring.* A claimant's time is no earlier than the newest published stamp (a clock reading
//!    before it counts as that stamp), and a claim succeeds only if no other came since.
//! 2. *A slot's stamps are at least a window apart.* A claim needs the slot's last stamp to have expired at its time, and a
//!    helper's time is raised to the end of that stamp's window where its clock lags behind.
//! 3. So any half-open interval of one window holds at most one stamp of each slot: **at most N**.
//! 4. By 1 the stamps live at t are the newest ones, so "the n-th oldest has expired" is the same as "at most N - n are live".
//!    A request is admitted **if and only if** that holds.
//!
//! # Growth
//! A ring starts as the one slot inside the cell and grows as permits are live at once: 1, 4, 8, 16 ... up to the limit. A
//! ring that is shorter than the limit and full of live stamps is replaced. The head is marked *growing*, which stops claims.
//! Whoever wants permits then copies the live stamps into a larger ring of its own, oldest first and to its very end, adds the
//! stamps of its own claim, and offers that by one compare-and-swap on the cell's reference to the ring. The first offer wins,
//! and the claim with it; then the head opens at the start of the new ring, which needs no more to be known. Whoever
//! wants no permits reads the ring as it stands.
//!
//! The epoch says whether a ring belongs to a head, but only to the next: a ring two growths later is of the same epoch. So who offers a
//! ring looks at the head once more, *after* it has seen the reference that it wants to replace. Heads never return, so if it still
//! stands it stood all the time, and the ring was its own.
//!
//! # Memory that changes hands
//! A claimant that sleeps before its publication may wake up when its ring, or its cell, is another key's. Its swap must fail,
//! so what it expects, a stamp s that had expired, must not be there again:
//!
//! 1. Before the ring is given away the claim has been published, by a stamp of s + W or later, and stamps do not decrease; so
//!    the newest is that late. Before the ring is given away the *horizon* is raised to it.
//! 2. The next owner's stamps are no earlier than the horizon when they are chosen, and those that it copies are live then, or made
//!    to be. So all of them are later than s, whatever the clocks say, if its window is the same. (If it is longer, they need not be: see
//!    "Known gaps" in the DESIGN page.)
//! 3. Slots that were never used hold marks that never return.
//!
//! # Orderings
//! - `head`: a claim acquires (what it saw of the ring is no older than the head it replaces) and releases.
//! - slots: a publication releases, readers acquire; whoever sees the last slot of a claim published sees all of it, because
//!   slots are published in order and each publisher has seen the one before. A reader that sees a slot of a later claim than its
//!   head will, for the same reason, see that the head has moved.
//! - what is first written into a ring is released too, because a reader of the block's last owner may still look.
//! - the ring's reference: the swap releases the copied stamps, readers acquire them.
//!
//! The loom tests in `cell/log/*loom_tests.rs` exercise them; `tests/weaken/mutations` says which test notices which weakening.

mod algorithm;
mod decide;
#[cfg(all(test, tollgate_loom))]
mod hands_loom_tests;
mod left;
pub(super) mod limits;
#[cfg(all(test, tollgate_loom))]
mod loom_tests;
pub(super) mod loosest;
mod publish;
#[cfg(all(test, tollgate_loom))]
mod quotas_loom_tests;
mod refund;
mod refused;
mod reserve;
mod resize;
pub(super) mod ring;
#[cfg(all(test, not(tollgate_loom)))]
mod stalled_tests;
pub(super) mod view;
