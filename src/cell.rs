//! A cell decides for one key: a ring of the stamps of its last permits.
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
//! The loom tests in `cell/*loom_tests.rs` exercise them; `tests/weaken/mutations` says which test notices which weakening.

mod account;
#[cfg(all(test, tollgate_loom))]
mod account_loom_tests;
#[cfg(all(test, tollgate_loom))]
mod account_over_loom_tests;
#[cfg(all(test, not(tollgate_loom)))]
mod account_stalled_tests;
mod ahead;
mod books;
#[cfg(all(test, tollgate_loom))]
mod changing_loom_tests;
mod give_back;
mod growth;
#[cfg(all(test, tollgate_loom))]
mod hands_loom_tests;
mod joint;
#[cfg(feature = "serde")]
mod keep;
#[cfg(all(test, tollgate_loom, feature = "serde"))]
mod keep_loom_tests;
mod layout;
#[cfg(all(test, tollgate_loom))]
mod lending_loom_tests;
mod life;
mod log;
#[cfg(all(test, tollgate_loom))]
mod loom_kit;
#[cfg(all(test, tollgate_loom))]
mod loom_tests;
mod loosest;
mod memory;
mod plan;
mod prepare;
#[cfg(all(test, tollgate_loom))]
mod quotas_loom_tests;
mod refused;
mod revisions;
mod ring;
mod rules;
#[cfg(all(test, not(tollgate_loom)))]
mod stalled_tests;
mod steps;
#[cfg(all(test, tollgate_loom))]
mod steps_loom_tests;
mod words;

use once_cell::race::OnceBox;

use crate::clock::Clock;
use crate::decision::{AtOnce, Decision, Denial, DenialReason, Status};
use crate::fingerprint::{Fingerprint, MAX_PLANS};
use crate::slab::{FIRST_PAGES, Slab};
use crate::sync::{Apart, AtomicU64, Ordering};
use joint::Joint;
#[cfg(all(test, not(tollgate_loom)))]
pub(crate) use joint::Stalled;
pub(crate) use joint::{MAX_CELLS, Part};
#[cfg(feature = "serde")]
pub(crate) use keep::Kept;
pub(crate) use life::Reclaimed;
use memory::Cell;
pub(crate) use prepare::Prepared;
pub(crate) use revisions::{Revision, Revisions, Unchanged, Whose};
use ring::Ring;
use rules::{Known, Rules};
use steps::Blocks;
use words::RingRef;
pub(crate) use words::{Head, MAX_TIME, State, time_of};

/// Size classes of rings: the slot in the cell, 4, 8, ... 2^24.
const CLASSES: usize = 24;

/// All the cells of a limiter and their rings.
pub(crate) struct Cells {
    /// How keys are limited, by the number of the plan in their fingerprints.
    plans: Box<[Revisions]>,
    /// The largest limit of a log.
    longest: usize,
    cells: Slab<Cell, FIRST_PAGES>,
    /// Rings by size class, from class 1 on; class 0 is the slot inside the cell.
    rings: [OnceBox<Slab>; CLASSES],
    /// Blocks of steps, where there are such.
    blocks: Option<Box<Blocks>>,
    /// Marks for slots that were never used.
    marks: Apart<AtomicU64>,
    /// No stamp that is chosen for a new key or a new ring is earlier: the latest end of a stamp that was lost with its cell,
    /// or the newest stamp of a ring that was given back.
    horizon: Apart<AtomicU64>,
    /// Claims on several cells, where there are such.
    joint: Option<Box<Joint>>,
}

/// What a request asks of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Grant if possible.
    Acquire,
    /// Only say what would be.
    Peek,
    /// Grant if possible after at most so many nanoseconds.
    Reserve { within: u64 },
}

/// What has to be known of a charge to give it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Charged {
    /// The head as the charge left it, or a later one of the same life.
    head: Head,
    /// A log: no later than the charge's stamps. An account: when it opened, or to where it has advanced. Zero if that is not known,
    /// or if nothing was charged.
    mark: u64,
}

/// A cell that decides for the key that was asked for, as of the head that was seen.
#[derive(Clone, Copy)]
pub(crate) struct Seat<'a> {
    pub(crate) id: u32,
    pub(crate) head: Head,
    plan: usize,
    cell: &'a Cell,
}

/// One whose cell is [open](State::Open).
#[derive(Clone, Copy)]
pub(crate) struct OpenSeat<'a>(Seat<'a>);

impl<'a> OpenSeat<'a> {
    pub(crate) fn seat(self) -> Seat<'a> {
        self.0
    }
}

impl Cells {
    /// Cells for keys of these plans, at least one and at most [`MAX_PLANS`].
    pub(crate) fn new(plans: Box<[Revisions]>, key_cap: u32) -> Self {
        assert!((1..=MAX_PLANS).contains(&plans.len()), "{} plans", plans.len());
        let cells = Self {
            longest: plans.iter().map(|plan| plan.current().plan.longest_ring()).max().unwrap_or(1),
            blocks: Blocks::for_plans(&plans),
            plans,
            cells: Slab::new(1, key_cap),
            rings: [const { OnceBox::new() }; CLASSES],
            marks: Apart(AtomicU64::new(0)),
            horizon: Apart(AtomicU64::new(0)),
            joint: None,
        };
        if cfg!(tollgate_loom) {
            cells.make_all_pools();
        }
        cells
    }

    /// As [`new`](Self::new), for claims on several cells, one of each plan.
    pub(crate) fn together(plans: Box<[Revisions]>, key_cap: u32) -> Self {
        Self { joint: Some(Box::new(Joint::new())), ..Self::new(plans, key_cap) }
    }

    /// The cell, if it is of this life and decides for this key.
    #[inline(always)]
    pub(crate) fn seat_for(&self, id: u32, life: u64, fingerprint: Fingerprint) -> Option<Seat<'_>> {
        let cell = self.cells.element(id);
        let head = cell.head();
        let decides = !matches!(head.state(), State::Free | State::Dead) && head.life() == life;
        (decides && is_for(cell, fingerprint)).then_some(Seat { id, head, plan: fingerprint.plan(), cell })
    }

    /// The same, if the cell is also open, and nothing is ahead of who claims.
    #[inline(always)]
    pub(crate) fn open_seat_for(&self, id: u32, life: u64, fingerprint: Fingerprint) -> Option<OpenSeat<'_>> {
        let cell = self.cells.element(id);
        let head = cell.head();
        let decides = head.is_open_in(life) && is_for(cell, fingerprint);
        decides.then_some(OpenSeat(Seat { id, head, plan: fingerprint.plan(), cell }))
    }

    /// Decides a request of `cost` permits, at least 1 and at most the limit, if that takes nothing out of the ordinary. The clock
    /// was read after the seat was found.
    #[inline(always)]
    pub(crate) fn decide_at_once(&self, OpenSeat(seat): OpenSeat<'_>, cost: u32, reading: u64) -> Option<AtOnce> {
        let Seat { head, cell, .. } = seat;
        match self.rules_at(seat) {
            Rules::Log(limits) => self.log_at_once(limits, cell, head, cost, reading),
            Rules::Account(books) => self.account_at_once(books, cell, head, cost, reading),
            Rules::Steps(stepped) if cost > stepped.limit() => None,
            Rules::Steps(stepped) => self.steps_at_once(stepped, cell, head, cost, reading),
        }
    }

    /// The same for tests, whose seats may be of any state.
    #[cfg(test)]
    pub(crate) fn at_once_if_open(&self, seat: Seat<'_>, cost: u32, reading: u64) -> Option<Decision> {
        let seat = (seat.head.state() == State::Open).then_some(OpenSeat(seat))?;
        self.decide_at_once(seat, cost, reading).map(Decision::from)
    }

    /// Decides a request of `cost` permits, at least 1 and at most the limit (0 for a peek). `None` when the cell may no longer
    /// decide for the key.
    pub(crate) fn decide(&self, ask: Ask, seat: Seat<'_>, cost: u32, clock: &impl Clock) -> Option<Status> {
        self.decide_to_lend(ask, seat, cost, clock).map(|(status, _)| status)
    }

    /// As [`decide`](Self::decide), and says what has to be known to give back what was charged.
    pub(crate) fn decide_to_lend(
        &self,
        ask: Ask,
        seat: Seat<'_>,
        cost: u32,
        clock: &impl Clock,
    ) -> Option<(Status, Charged)> {
        let Seat { mut head, cell, .. } = seat;
        loop {
            let attempt = match self.rules_at(seat) {
                Rules::Log(limits) => self.log_attempt(limits, ask, cell, head, cost, clock),
                Rules::Account(books) => self.account_attempt(books, ask, cell, head, cost, clock),
                Rules::Steps(stepped) if cost > stepped.limit() => {
                    let never = Decision::Denied(Denial::new(u64::MAX, DenialReason::Quota, 0));
                    let status = Status { decision: never, limit: stepped.limit(), remaining: 0, reset_after_ns: 0 };
                    Attempt::Decided(status, Charged::nothing(head))
                }
                Rules::Steps(stepped) => self.steps_attempt(stepped, ask, cell, head, cost, clock),
            };
            match attempt {
                Attempt::Decided(status, charged) => return Some((status, charged)),
                Attempt::Lost(now) if head.goes_on_at(now) => head = now,
                Attempt::Lost(_) => return None,
            }
        }
    }

    /// The ring of the cell. A reference that is long out of date may name anything, also what never was a ring, because the cell has
    /// an account by now. Any slot will do then.
    #[inline]
    fn ring<'a>(&'a self, cell: &'a Cell, reference: RingRef) -> Ring<'a> {
        if reference.is_ring() {
            let rings = self.rings.get(reference.class()).and_then(OnceBox::get);
            if let Some(slots) = rings.and_then(|rings| rings.block_if_there(reference.block())) {
                return Ring::new(slots);
            }
        }
        Ring::new(core::slice::from_ref(&cell.ring))
    }

    /// Reads a cell for nothing but to have it in the cache; gives what leads to its ring.
    #[inline]
    pub(crate) fn touch(&self, id: u32) -> (Head, u64) {
        self.cells
            .element_if_there(id)
            .map_or((Head(0), 0), |cell| (Head(cell.head.load(Ordering::Relaxed)), cell.ring.load(Ordering::Relaxed)))
    }

    /// Reads the ring for nothing but to have it in the cache, if it is one.
    #[inline]
    pub(crate) fn touch_ring(&self, (head, reference): (Head, u64)) -> u64 {
        let reference = RingRef(reference);
        if !reference.is_ring() {
            return 0;
        }
        let rings = self.rings.get(reference.class()).and_then(OnceBox::get);
        let slots = rings.and_then(|rings| rings.block_if_there(reference.block()));
        slots.and_then(|slots| slots.get(head.pos())).map_or(0, |slot| slot.load(Ordering::Relaxed))
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        self.cells.bytes()
            + self.plans.iter().map(Revisions::bytes).sum::<usize>()
            + self.joint.as_ref().map_or(0, |joint| joint.bytes())
            + self.blocks.as_ref().map_or(0, |blocks| blocks.bytes())
            + self.rings.iter().filter_map(OnceBox::get).map(|slab| slab.bytes() + size_of::<Slab>()).sum::<usize>()
    }
}

/// Whether a cell is for this key, if its head is the same as before. Acquired, so that who sees the fingerprint of the cell's next key also
/// sees that the head has changed.
#[inline(always)]
fn is_for(cell: &Cell, fingerprint: Fingerprint) -> bool {
    cell.low.load(Ordering::Acquire) == fingerprint.low && cell.high.load(Ordering::Acquire) == fingerprint.high
}

/// How one attempt at a decision ended.
enum Attempt {
    Decided(Status, Charged),
    /// Something changed meanwhile; this is the head now.
    Lost(Head),
}
