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
//! # Memory that changes hands
//! A claimant that sleeps before its publication may wake up when its ring, or its cell, is another key's. Its swap must fail,
//! so what it expects, a stamp s that had expired, must not be there again:
//!
//! 1. Before the ring is given away the claim has been published, by a stamp of s + W or later, and stamps do not decrease; so
//!    the newest is that late. Before the ring is given away the *horizon* is raised to it.
//! 2. The next owner's stamps are no earlier than the horizon when they are chosen, and those that it copies are live then, or made
//!    to be. So all of them are later than s, whatever the clocks say.
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
//! The loom tests in `cell/loom_tests.rs` exercise them; `tests/weaken/mutations` says which test notices which weakening.

mod growth;
mod life;
#[cfg(all(test, tollgate_loom))]
mod loom_tests;
mod ring;
#[cfg(all(test, not(tollgate_loom)))]
mod stalled_tests;
mod words;

use once_cell::race::OnceBox;

use crate::clock::Clock;
use crate::decision::{Admission, Decision, Denial, DenialReason, Status};
use crate::fingerprint::Fingerprint;
use crate::quota::Quota;
use crate::slab::Slab;
use crate::sync::{AtomicU64, Ordering};
use growth::Wanted;
pub(crate) use life::Reclaimed;
use ring::Ring;
pub(crate) use words::{Head, State, time_of};
use words::{RingRef, Slot};

/// The words of a cell. The fingerprint's first half doubles as the free list's link.
const HEAD: usize = 0;
const RING: usize = 1;
const LOW: usize = 2;
const HIGH: usize = 3;
const CELL_WORDS: usize = 4;

/// A cell is half a cache line.
const _: () = assert!(CELL_WORDS * size_of::<u64>() == 32);

/// Size classes of rings: the slot in the cell, 4, 8, ... 2^24.
const CLASSES: usize = 24;

/// All the cells of a limiter and their rings.
pub(crate) struct Cells {
    quota: Quota,
    limit: usize,
    window: u64,
    cells: Slab,
    /// Rings by size class, from class 1 on; class 0 is the slot inside the cell.
    rings: [OnceBox<Slab>; CLASSES],
    /// Marks for slots that were never used.
    marks: AtomicU64,
    /// No stamp that is chosen for a new key or a new ring is earlier: the latest end of a stamp that was lost with its cell,
    /// or the newest stamp of a ring that was given back.
    horizon: AtomicU64,
}

/// What a request asks of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Grant if possible.
    Acquire,
    /// Only say what would be.
    Peek,
}

/// A cell that decides for the key that was asked for, as of the head that was seen.
#[derive(Clone, Copy)]
pub(crate) struct Seat<'a> {
    pub(crate) cell: u32,
    pub(crate) head: Head,
    words: &'a [AtomicU64; CELL_WORDS],
}

impl Cells {
    pub(crate) fn new(quota: Quota, key_cap: u32) -> Self {
        let cells = Self {
            quota,
            limit: quota.limit() as usize,
            window: quota.window_ns(),
            cells: Slab::new(CELL_WORDS, LOW, key_cap),
            rings: [const { OnceBox::new() }; CLASSES],
            marks: AtomicU64::new(0),
            horizon: AtomicU64::new(0),
        };
        if cfg!(tollgate_loom) {
            cells.make_all_pools();
        }
        cells
    }

    pub(crate) fn quota(&self) -> Quota {
        self.quota
    }

    /// The cell, if it is of this life and decides for this key.
    #[inline]
    pub(crate) fn seat_for(&self, cell: u32, life: u64, fingerprint: Fingerprint) -> Option<Seat<'_>> {
        let words = self.cells.block_of(cell);
        let head = Head(words[HEAD].load(Ordering::Acquire));
        let decides = matches!(head.state(), State::Open | State::Growing) && head.life() == life;
        // Acquired, so that who sees the fingerprint of the cell's next key also sees that the head has changed.
        let is_for = |at: usize, half: u64| words[at].load(Ordering::Acquire) == half;
        (decides && is_for(LOW, fingerprint.low) && is_for(HIGH, fingerprint.high)).then_some(Seat {
            cell,
            head,
            words,
        })
    }

    /// Decides a request of `cost` permits, at least 1 and at most the limit, if that takes nothing out of the ordinary.
    #[inline]
    pub(crate) fn decide_at_once(&self, seat: Seat<'_>, cost: u32, reading: u64) -> Option<Decision> {
        let Seat { head, words, .. } = seat;
        let reference = RingRef(words[RING].load(Ordering::Acquire));
        if head.state() != State::Open {
            return None;
        }
        let ring = self.ring(words, reference);
        let newest = ring.newest(head)?;
        if newest.is_ancient() {
            return None;
        }
        let time = time_of(reading).max(newest.time());
        let needed = cost as usize;
        if needed > ring.len() {
            return None;
        }
        let due = ring.load(head.pos() + needed - 1);
        if time.saturating_sub(due.time()) >= self.window {
            ring.claim(&words[HEAD], head, needed, self.window, time)?;
            return Some(Decision::Admitted(Admission::COUNTED));
        }
        // A ring that is shorter than the limit may grow. The loads above were acquired, so a head that still stands here stood
        // there throughout.
        let stands = Head(words[HEAD].load(Ordering::Relaxed)) == head;
        (ring.len() == self.limit && stands).then(|| self.denial(due, reading))
    }

    /// Decides a request of `cost` permits, at least 1 and at most the limit (0 for a peek). `None` when the cell no longer
    /// decides for the key.
    pub(crate) fn decide(&self, ask: Ask, seat: Seat<'_>, cost: u32, clock: &impl Clock) -> Option<Status> {
        let Seat { mut head, words, .. } = seat;
        let life = head.life();
        loop {
            match self.attempt(ask, words, head, cost, clock) {
                Attempt::Decided(status) => return Some(status),
                Attempt::Lost(now) => head = now,
            }
            if head.life() != life || matches!(head.state(), State::Free | State::Dead) {
                return None;
            }
        }
    }

    fn attempt(&self, ask: Ask, words: &[AtomicU64], head: Head, cost: u32, clock: &impl Clock) -> Attempt {
        let lost = || Attempt::Lost(Head(words[HEAD].load(Ordering::Acquire)));
        let reference = RingRef(words[RING].load(Ordering::Acquire));
        if reference.epoch() != head.epoch() {
            if head.state() == State::Growing {
                self.open(words, head);
            }
            return lost();
        }
        // Read anew at each attempt: a reading from before a lost race may be stale by any amount.
        let reading = clock.now();
        let time = time_of(reading);
        let needed = cost as usize;
        let ring = self.ring(words, reference);
        let Some(newest) = ring.newest(head) else {
            self.settle(words, head, ring, time);
            return lost();
        };
        // How far the newest stamp lies ahead of a clock that went back. Where it was lost, the horizon stands for it.
        let floor = if newest.is_ancient() { self.horizon.load(Ordering::Acquire) } else { newest.time() };
        let lead = floor.saturating_sub(time);
        let time = time + lead;
        let live = ring.live_at(head, time, self.window);
        // Loads that turn out to be of different heads may contradict each other until the head is looked at again.
        let idle_after = if live == 0 { 0 } else { self.end_of(newest).saturating_sub(time - lead) };
        let fits = live + needed <= self.limit;
        if fits && ask == Ask::Acquire {
            if head.state() == State::Growing || ring.len() - live < needed {
                let wanted = Wanted { needed, live, newest, time };
                return self.grow(words, head, reference, wanted, clock).map_or_else(lost, |(time, live)| {
                    let lead = time.saturating_sub(time_of(reading));
                    Attempt::Decided(self.admitted(self.limit - live - needed, self.window + lead))
                });
            }
            return match ring.claim(&words[HEAD], head, needed, self.window, time) {
                Some(()) => Attempt::Decided(self.admitted(self.limit - live - needed, self.window + lead)),
                None => lost(),
            };
        }
        let status = if fits {
            self.admitted(self.limit - live, idle_after)
        } else {
            // The permit whose expiry makes room: of the live ones, all but (limit - cost) have to go.
            let due = ring.load(head.pos() + (ring.len() - live) + (live + needed - self.limit) - 1);
            Status { decision: self.denial(due, reading), ..self.admitted(self.limit - live, idle_after) }
        };
        // While a cell grows its head stands still, but the ring may be given away.
        let stands =
            words[HEAD].load(Ordering::Relaxed) == head.0 && words[RING].load(Ordering::Relaxed) == reference.0;
        if stands { Attempt::Decided(status) } else { lost() }
    }

    /// Publishes the last claim if it is not published yet. It may be the first of a new key, so its stamp must not be
    /// earlier than the horizon.
    fn settle(&self, words: &[AtomicU64], head: Head, ring: Ring<'_>, time: u64) {
        ring.settle(&words[HEAD], head, self.window, time.max(self.horizon.load(Ordering::Acquire)));
    }

    /// The ring of the cell. Whatever the reference says, even one that is long out of date, it names memory that exists.
    #[inline]
    fn ring<'a>(&'a self, words: &'a [AtomicU64], reference: RingRef) -> Ring<'a> {
        if reference.is_ring() {
            let rings = self.rings[reference.class() % CLASSES].get();
            let rings = rings.expect("a ring is referred to only once its class is there");
            Ring::new(rings.block(reference.block()))
        } else {
            Ring::new(&words[RING..=RING])
        }
    }

    /// When the stamp expires.
    fn end_of(&self, stamp: Slot) -> u64 {
        stamp.time().saturating_add(self.window)
    }

    fn admitted(&self, remaining: usize, reset_after_ns: u64) -> Status {
        let decision = Decision::Admitted(Admission::COUNTED);
        let remaining = u32::try_from(remaining).unwrap_or(u32::MAX);
        Status { decision, limit: self.quota.limit(), remaining, reset_after_ns }
    }

    /// What a key without permits is told.
    pub(crate) fn status_of_nothing(&self) -> Status {
        self.admitted(self.limit, 0)
    }

    /// What a new key is told that has just been granted `cost` permits.
    pub(crate) fn first_status(&self, cost: u32, time: u64) -> Status {
        let lead = self.horizon.load(Ordering::Acquire).saturating_sub(time);
        self.admitted(self.limit - cost as usize, self.window + lead)
    }

    #[inline]
    fn denial(&self, due: Slot, reading: u64) -> Decision {
        let wait = self.end_of(due).saturating_sub(time_of(reading));
        Decision::Denied(Denial::new(wait, DenialReason::Quota))
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        self.cells.bytes()
            + self.rings.iter().filter_map(OnceBox::get).map(|slab| slab.bytes() + size_of::<Slab>()).sum::<usize>()
    }
}

/// How one attempt at a decision ended.
enum Attempt {
    Decided(Status),
    /// Something changed meanwhile; this is the head now.
    Lost(Head),
}
