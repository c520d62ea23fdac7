//! Accounts: the algorithms that need two words in place of a ring.
//!
//! The head counts the permits used in an *era*. The second word is the slot of a ring of one; it
//! holds the era's anchor. A request that the running account admits swaps the head alone. A
//! request that begins an era claims it on the head and then publishes the anchor, as a log
//! publishes a stamp. The thread that finds an unpublished era publishes it first (`help`,
//! INV-PUBLISH). The rules are made for this: see [`Effect`](crate::rule::Effect).
//!
//! # Why a helper's clock can't hurt (INV-ANCHOR)
//!
//! The anchor after an advance is the same in every thread. The anchor of a new account must be
//! no earlier than the end of the old one, which a helper can compute only while the head says how
//! much was used. So the head says it until that end is taken into account:
//!
//! - One permit *replaces* an account that is over. The head of the new era keeps what the old
//!   account had used; that the new one has used one permit goes without saying. A helper finds the
//!   old anchor in the second word and computes when the old account was over. What follows is
//!   claimed only after the new anchor is published, and its head counts the permits used of it.
//! - For several permits the head has no room. The old account is *closed* first, in an era that
//!   publishes since when it is over. The next era opens, no earlier than that.
//!
//! The thread does either at once, with the reading that it has. That reading was taken after the
//! head was loaded, the claim shows that the head is unchanged, and a closed account can't be
//! charged. So no thread was charged in between by a later reading. A thread that loses a claim
//! takes the slow path, which closes.
//!
//! An account opens no earlier than its version began. So of the versions that a head may mean, one
//! that began later than the account opened is not it (`KeptBy::written_by`).
//!
//! # Why a late publication misses (INV-LATE)
//!
//! It expects what the second word held in the era before its own: the time at which an account
//! opened, to which it advanced, or since when it was over, or a sentinel. None of these returns in
//! a cell:
//!
//! 1. Within an incarnation they rise (INV-RISE).
//! 2. Before the cell changes owner, the late era is published and the timestamp floor is raised to
//!    it or past it. The next account opens no earlier.
//! 3. The word holds the time at which an account *opened*, also where windows are aligned. A
//!    reader rounds it down. Rounded before, it could equal the time at which the last key's
//!    account opened.
//! 4. A ring reference of a next key with a log has the bit of a closed account. But a time is at
//!    least 2^60, which as a reference means page 64 or later of a slab. See "Numbers that run out"
//!    in `docs/limitations.md`.
//!
//! # Why the clock is read after the head (INV-CLOCK-LAST)
//!
//! What has come back by a reading is compared with everything charged. A reading from before the
//! last charge would leave out what came back in between, and deny at a moment at which the request
//! fits. A log's newest stamp would tell; an account has no such thing. If the head moves on after
//! it was loaded, either more was charged, or the account was over and there was no denial. An
//! admission by an earlier reading is an admission at the last charge, too.
//!
//! # Orderings
//!
//! As for a log: a claim acquires and releases the head; a publication releases the anchor and a
//! reader acquires it, so a thread that sees the anchor of a later era also sees that the head has
//! moved.
//!
//! The models are in `cell/counter/loom_tests.rs` and `cell/counter/over_loom_tests.rs`.

mod decide;
mod driver;
#[cfg(feature = "snapshot")]
mod export;
pub(super) mod layout;
#[cfg(all(test, tollgate_loom))]
mod loom_tests;
#[cfg(all(test, tollgate_loom))]
mod over_loom_tests;
pub(super) mod plan;
mod refund;
#[cfg(all(test, not(tollgate_loom)))]
mod stalled_tests;
pub(super) mod view;
