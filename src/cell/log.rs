//! The sliding window log: a cell's ring holds the stamps of its key's last permits.
//!
//! # Claim on the head, publish in the slot
//!
//! The head of a cell says how many permits have been claimed, as lap and position. The ring holds
//! their stamps in the order of their claims. A request of cost n looks at the n-th slot from the
//! head: the newest of the n oldest stamps.
//!
//! - *Live*: more than N - n stamps are live, so the request is denied. The head is loaded again
//!   (INV-DENIAL).
//! - *Expired*: a compare-and-swap moves the head by n. Then the stamp is written into the n slots,
//!   first to last, each by a compare-and-swap.
//!
//! A thread that stalls in between leaves slots whose parity is not that of their lap. The thread
//! that finds them publishes them first (`help`, INV-PUBLISH). It proposes a time of its own; the
//! compare-and-swap on the claim's first slot selects one (INV-ONE-STAMP).
//!
//! By INV-ORDER and INV-SPACING no window holds more than N stamps, and every request that fits is
//! admitted (INV-COUNT).
//!
//! # Resize
//!
//! A ring starts as the one slot in the cell, and has 4, 8, 16 ... slots, up to the limit, as
//! permits are live at once. If it is full of live stamps, the head is marked *resizing*, which
//! stops claims. A thread that wants permits copies the live stamps into a larger ring of its own,
//! oldest first and to its end, adds its own claim, and offers the ring by one compare-and-swap of
//! the reference. The first offer wins, and its claim with it (INV-RESIZE). A thread that wants no
//! permits reads the old ring.
//!
//! The ring parity tells a ring from the next one only; two resizes later it is the same. So a
//! thread loads the head again after the reference that it wants to replace (INV-REFERENCE).
//!
//! # Memory that changes owner
//!
//! A claimant that stalls before it publishes may wake when its ring or cell belongs to another
//! key. Its compare-and-swap then fails (INV-LATE), because the timestamp floor is raised before
//! the ring is freed (INV-FLOOR), and unused slots hold sentinels (INV-SENTINEL).
//!
//! # Orderings
//!
//! - The head: a claim acquires, so the ring is no older than the head, and releases.
//! - Slots: a publication releases, readers acquire. Slots are published in order, so the last slot
//!   of a claim shows all of it. For the same reason a slot of a later claim shows that the head
//!   has moved.
//! - First writes into a ring release, because a reader of its last owner may still look.
//! - The reference: the swap releases the copied stamps, readers acquire them.
//!
//! The models are in `cell/log/*loom_tests.rs`.

mod decide;
mod driver;
#[cfg(feature = "snapshot")]
mod export;
#[cfg(all(test, tollgate_loom))]
mod hands_loom_tests;
mod left;
#[cfg(all(test, tollgate_loom))]
mod loom_tests;
pub(super) mod loosest;
pub(super) mod plan;
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
