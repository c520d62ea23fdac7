//! The packed words of a cell, each with its layout and accessors.

use core::ops::Range;

use crate::quota::Quota;
use crate::slab::low_half;

/// The last time that fits in a slot: a little under 2^62 nanoseconds. Larger values mark links
/// between free rings.
pub(crate) const MAX_TIME: u64 = (1 << 62) - (1 << 34) - 1;

/// The time of a clock that reads zero. A time below [`SENTINEL_END`] has expired before that under
/// the longest window (2^60 - 1), so such times serve as sentinels.
pub(crate) const TIME_ZERO: u64 = (1 << 60) + SENTINEL_END;
const SENTINEL_END: u64 = 1 << 40;
/// Set in the number of a [`Slot::sentinel_after_ring`] only: other sentinels of cells have less.
const AFTER_RING: u64 = SENTINEL_END >> 1;

/// A clock reading as a time. A reading past the end (109 years after the clock's origin) becomes
/// [`MAX_TIME`], at which no stamp expires: a limiter may then deny too much, but not admit too
/// much.
#[inline]
pub(crate) fn time_of(reading: u64) -> u64 {
    TIME_ZERO + reading.min(MAX_TIME - TIME_ZERO)
}

const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// The state of a cell. Zero is [`State::Free`], the state of memory that was never used. The
/// internals chapter lists all transitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Belongs to no key.
    Free = 0,
    /// Decides for its key.
    Open = 1,
    /// Its ring is being replaced; no permit is claimed.
    Resizing = 2,
    /// Its key was forgotten; a sweep will free it.
    Dead = 3,
    /// Part of a joint claim that is not decided; see `joint.rs`.
    Held = 4,
    /// Open, with stamps that may be reserved; see `log/reserve.rs`.
    Reserved = 5,
    /// As `Resizing`; the old ring's newest stamps may be reserved.
    ResizingReserved = 6,
    /// As `Resizing`; the new ring's newest stamp is reserved, and the old ring has none.
    ResizingToReserved = 7,
}

impl State {
    /// Whether permits can be claimed in this state.
    #[inline]
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Open | Self::Reserved)
    }

    /// Whether the ring is being replaced.
    #[inline]
    pub(crate) fn is_resizing(self) -> bool {
        matches!(self, Self::Resizing | Self::ResizingReserved | Self::ResizingToReserved)
    }

    /// Whether the newest stamps may be later than every clock.
    pub(crate) fn may_have_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::ResizingReserved)
    }

    /// The state during a resize that reserves nothing more.
    pub(crate) fn resizing(self) -> Self {
        match self {
            Self::Open => Self::Resizing,
            Self::Reserved => Self::ResizingReserved,
            resizing => resizing,
        }
    }

    /// The state during a resize that reserves a stamp.
    pub(crate) fn resizing_to_reserved(self) -> Self {
        match self {
            Self::Open | Self::Resizing => Self::ResizingToReserved,
            Self::Reserved => Self::ResizingReserved,
            resizing => resizing,
        }
    }

    /// The state once the ring has been replaced.
    fn resized(self) -> Self {
        if self == Self::ResizingReserved || self == Self::ResizingToReserved { Self::Reserved } else { Self::Open }
    }
}

/// The head of a cell: its state, and how far permits have been claimed.
///
/// ```text
/// Head { state: 3, ring_parity: 1, incarnation: 8, lap: 28, pos: 24 }
/// ```
///
/// `pos` is the next slot to claim. `lap` counts the rounds, across resizes and incarnations
/// (INV-HEAD). `incarnation` is modulo 256. `ring_parity` differs before and after a resize.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head(pub(crate) u64);

impl Head {
    const POS_BITS: u32 = 24;
    const LAP_BITS: u32 = 28;
    const INCARNATION_BITS: u32 = 8;
    const LAP_AT: u32 = Self::POS_BITS;
    const INCARNATION_AT: u32 = Self::LAP_AT + Self::LAP_BITS;
    const RING_PARITY_AT: u32 = Self::INCARNATION_AT + Self::INCARNATION_BITS;
    const STATE_AT: u32 = Self::RING_PARITY_AT + 1;

    pub(crate) fn new(state: State, ring_parity: bool, incarnation: u64, lap: u64, pos: usize) -> Self {
        Self(
            ((state as u64) << Self::STATE_AT)
                | (u64::from(ring_parity) << Self::RING_PARITY_AT)
                | ((incarnation & mask(Self::INCARNATION_BITS)) << Self::INCARNATION_AT)
                | ((lap & mask(Self::LAP_BITS)) << Self::LAP_AT)
                | (pos as u64 & mask(Self::POS_BITS)),
        )
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "24 bits")]
    pub(crate) fn pos(self) -> usize {
        (self.0 & mask(Self::POS_BITS)) as usize
    }

    #[inline]
    pub(crate) fn lap(self) -> u64 {
        (self.0 >> Self::LAP_AT) & mask(Self::LAP_BITS)
    }

    /// How many laps it is until that head.
    pub(crate) fn laps_until(self, later: Self) -> u64 {
        later.lap().wrapping_sub(self.lap()) & mask(Self::LAP_BITS)
    }

    #[inline]
    pub(crate) fn incarnation(self) -> u64 {
        (self.0 >> Self::INCARNATION_AT) & mask(Self::INCARNATION_BITS)
    }

    /// Whether a later head is certainly of the same incarnation, and both decide
    /// (INV-INCARNATION). The head of a held cell has no lap.
    pub(crate) fn goes_on_at(self, later: Self) -> bool {
        let decides = |head: Self| !matches!(head.state(), State::Free | State::Dead | State::Held);
        let is_near = self.incarnation() == later.incarnation() && self.laps_until(later) < 1 << Self::INCARNATION_BITS;
        is_near && decides(self) && decides(later)
    }

    #[inline]
    pub(crate) fn ring_parity(self) -> bool {
        (self.0 >> Self::RING_PARITY_AT) & 1 == 1
    }

    #[inline]
    pub(crate) fn state(self) -> State {
        match self.0 >> Self::STATE_AT {
            0 => State::Free,
            1 => State::Open,
            2 => State::Resizing,
            3 => State::Dead,
            4 => State::Held,
            5 => State::Reserved,
            6 => State::ResizingReserved,
            _ => State::ResizingToReserved,
        }
    }

    /// Whether the state is [`Open`](State::Open) and the incarnation this one.
    #[inline]
    pub(crate) fn is_open_in(self, incarnation: u64) -> bool {
        let expected = ((State::Open as u64) << (Self::STATE_AT - Self::INCARNATION_AT))
            | (incarnation & mask(Self::INCARNATION_BITS));
        self.with_ring_parity(false).0 >> Self::INCARNATION_AT == expected
    }

    #[inline]
    pub(crate) fn with_ring_parity(self, ring_parity: bool) -> Self {
        Self(self.0 & !(1 << Self::RING_PARITY_AT) | (u64::from(ring_parity) << Self::RING_PARITY_AT))
    }

    pub(crate) fn with_state(self, state: State) -> Self {
        Self::new(state, self.ring_parity(), self.incarnation(), self.lap(), self.pos())
    }

    /// The head after `cost` more permits of a ring with `slots` slots. No stamp is reserved after
    /// them.
    #[inline]
    pub(crate) fn advanced(self, cost: usize, slots: usize) -> Self {
        let pos = self.pos() + cost;
        let (lap, pos) = if pos >= slots { (self.lap() + 1, pos - slots) } else { (self.lap(), pos) };
        Self::new(State::Open, self.ring_parity(), self.incarnation(), lap, pos)
    }

    /// The 52 bits below the incarnation: lap and position, or the fields of an account or a
    /// quantised log.
    #[inline]
    pub(crate) fn low_bits(self) -> u64 {
        self.0 & mask(Self::INCARNATION_AT)
    }

    #[inline]
    pub(crate) fn with_low_bits(self, below: u64) -> Self {
        Self((self.0 & !mask(Self::INCARNATION_AT)) | (below & mask(Self::INCARNATION_AT)))
    }

    /// The head after a resize: at the start of a ring that is published in the lap before.
    pub(crate) fn on_new_ring(self) -> Self {
        Self::new(self.state().resized(), !self.ring_parity(), self.incarnation(), self.lap() + 1, 0)
    }

    /// The head of this cell while the joint claim with that ticket holds it.
    pub(crate) fn held(self, ticket: Ticket) -> Self {
        Self::new(State::Held, false, self.incarnation(), 0, 0)
            .with_low_bits((u64::from(ticket.number) << Ticket::SERIAL_BITS) | u64::from(ticket.serial))
    }

    /// The joint claim that holds a cell.
    pub(crate) fn ticket(self) -> Ticket {
        let below = self.low_bits();
        Ticket { number: low_half(below >> Ticket::SERIAL_BITS), serial: low_half(below) }
    }

    /// A number for a sentinel that this cell has not had before (INV-SENTINEL).
    pub(crate) fn sentinel_number(self) -> u64 {
        (self.incarnation() << Self::LAP_BITS) | self.lap()
    }

    /// The head of the same cell without a key. The lap goes on, so no head returns (INV-HEAD).
    pub(crate) fn freed(self) -> Self {
        Self::new(State::Free, false, self.incarnation() + 1, self.lap() + 1, 0)
    }
}

/// Names a joint claim.
///
/// ```text
/// { number: 20, serial: 32 }
/// ```
///
/// `number` names the descriptor. `serial` counts the claims that used it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) number: u32,
    pub(crate) serial: u32,
}

impl Ticket {
    const SERIAL_BITS: u32 = 32;
    /// The number of descriptors.
    pub(crate) const NUMBERS: u32 = 1 << 20;
}

/// One slot of a ring: the stamp of the permit that was last granted in it.
///
/// ```text
/// Slot { time: 62, joined: 1, parity: 1 }
/// ```
///
/// `parity` is that of the lap in which the permit was claimed. If it differs from the parity of
/// the claimed lap, the claim is unpublished. `joined` says that the next slot belongs to the same
/// claim and has the same stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot(pub(crate) u64);

impl Slot {
    #[inline]
    pub(crate) fn new(time: u64, joined: bool, lap: u64) -> Self {
        Self((time.min(MAX_TIME) << 2) | (u64::from(joined) << 1) | (lap & 1))
    }

    /// A sentinel: long expired, as if published in the lap before `lap`. `number` makes it differ
    /// from every other value of this memory (INV-SENTINEL).
    pub(crate) fn sentinel(number: u64, lap: u64) -> Self {
        debug_assert!(number < SENTINEL_END);
        Self::new(number % SENTINEL_END, false, lap.wrapping_add(1))
    }

    #[inline]
    pub(crate) fn time(self) -> u64 {
        self.0 >> 2
    }

    /// Whether it is a sentinel: the slot was never used, or its stamp was dropped.
    #[inline]
    pub(crate) fn is_sentinel(self) -> bool {
        self.time() < SENTINEL_END
    }

    /// A sentinel for the account of a cell in which a thread may still want to replace the one
    /// slot of an earlier key by its ring.
    pub(crate) fn sentinel_after_ring(number: u64, lap: u64) -> Self {
        Self::sentinel(number | AFTER_RING, lap)
    }

    pub(crate) fn is_after_ring(self) -> bool {
        self.is_sentinel() && self.time() & AFTER_RING != 0
    }

    /// The anchor of an account that is running: no word of a log's one slot (INV-REFERENCE).
    pub(crate) fn running(anchor: u64, era: u64) -> Self {
        Self::new(anchor, true, era)
    }

    pub(crate) fn over(since: u64, era: u64) -> Self {
        Self::new(since, false, era)
    }

    #[inline]
    pub(crate) fn is_over(self) -> bool {
        self.0 & 2 == 0
    }

    #[inline]
    pub(crate) fn joined(self) -> bool {
        self.0 & 2 != 0
    }

    #[inline]
    pub(crate) fn is_of_lap(self, lap: u64) -> bool {
        (self.0 ^ lap) & 1 == 0
    }
}

/// The second word of a cell: the one slot of a ring of one, or a reference to a larger ring.
///
/// ```text
/// RingRef { block: 32, tag: 25, class: 5, ring: 1,   ring_parity: 1 }  (ring = 1)
/// Slot    { time: 62,                     joined: 1, parity: 1 }       (joined = 0)
/// ```
///
/// The slot of a ring of one has no successor, so it is never joined. `tag` tells two references to
/// the same block apart (INV-REFERENCE).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RingRef(pub(crate) u64);

/// Size classes of rings: the slot in the cell, 4, 8, ... 2^24.
pub(super) const RING_CLASSES: Range<usize> = 0..24;

/// Size classes of blocks of steps: 4, 16, 128, 1024, 8192 and 65,536 words.
pub(super) const BLOCK_CLASSES: Range<usize> = 24..30;

/// The most slots of a ring: twice the largest limit.
pub(super) const MAX_SLOTS: usize = 2 << (RING_CLASSES.end - 1);
const _: () = assert!(MAX_SLOTS == 2 * Quota::MAX_LIMIT as usize && MAX_SLOTS <= 1 << Head::POS_BITS);

impl RingRef {
    const RING: u64 = 2;
    /// The classes that a reference can name.
    pub(crate) const CLASSES: usize = 1 << 5;
    const CLASS_AT: u32 = 2;
    const TAG_AT: u32 = 7;
    const BLOCK_AT: u32 = 32;

    pub(crate) fn new(ring_parity: bool, class: usize, tag: u64, block: u32) -> Self {
        Self(
            (u64::from(block) << Self::BLOCK_AT)
                | ((tag & mask(25)) << Self::TAG_AT)
                | ((class as u64 & mask(5)) << Self::CLASS_AT)
                | Self::RING
                | u64::from(ring_parity),
        )
    }

    /// The ring parity; that of a ring of one is always `false`.
    #[inline]
    pub(crate) fn ring_parity(self) -> bool {
        self.0 & (Self::RING | 1) == Self::RING | 1
    }

    #[inline]
    pub(crate) fn is_ring(self) -> bool {
        self.0 & Self::RING != 0
    }

    /// The size class; zero for the slot in the cell.
    #[inline]
    pub(crate) fn class(self) -> usize {
        let class = ((self.0 >> Self::CLASS_AT) & mask(5)) as usize;
        if self.is_ring() { class } else { 0 }
    }

    /// Whether it refers to a block of steps.
    #[inline]
    pub(crate) fn is_block(self) -> bool {
        self.class() >= BLOCK_CLASSES.start
    }

    #[inline]
    pub(crate) fn block(self) -> u32 {
        (self.0 >> Self::BLOCK_AT) as u32
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests;
