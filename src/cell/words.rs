//! The packed words of a cell, each with its layout and accessors that undo one another.

/// The last moment that fits in a slot: a little under 2^62 nanoseconds. The values above it mark links between free rings.
pub(crate) const MAX_TIME: u64 = (1 << 62) - (1 << 34) - 1;

/// Where time starts: a clock that reads zero. Whatever lies below [`ANCIENT_END`] had expired before time began, under the
/// longest window that a quota may have (2^60 - 1), so the numbers below can mark slots that were never used.
pub(crate) const TIME_ZERO: u64 = (1 << 60) + ANCIENT_END;
const ANCIENT_END: u64 = 1 << 40;

/// A clock reading as a time. Readings past the end (109 years after the clock's origin) all become the last moment, at
/// which nothing expires any more: a limiter can then deny too much but not admit too much.
#[inline]
pub(crate) fn time_of(reading: u64) -> u64 {
    TIME_ZERO + reading.min(MAX_TIME - TIME_ZERO)
}

const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// What a cell is doing. Zero, the state of memory that was never used, is [`State::Free`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Belongs to no key.
    Free = 0,
    /// Decides for its key.
    Open = 1,
    /// Its ring is being replaced by a larger one; no permit is granted until that is done.
    Growing = 2,
    /// Its key was forgotten; waits for a sweep to free it.
    Dead = 3,
    /// Part of a claim on several cells at once that has not been decided; see `joint.rs`.
    Held = 4,
    /// Open, and its newest stamps may lie ahead: they are reserved. See `log/reserve.rs`.
    Ahead = 5,
    /// As `Growing`, of a ring whose newest stamps may lie ahead.
    GrowingAhead = 6,
    /// As `Growing`, and the new ring's newest stamps may lie ahead, though the old one's do not.
    GoingAhead = 7,
}

impl State {
    /// Whether permits can be claimed as it is.
    #[inline]
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Open | Self::Ahead)
    }

    /// Whether the ring is being replaced.
    #[inline]
    pub(crate) fn is_growing(self) -> bool {
        matches!(self, Self::Growing | Self::GrowingAhead | Self::GoingAhead)
    }

    /// Whether the newest stamps may lie ahead of every clock.
    pub(crate) fn may_be_ahead(self) -> bool {
        matches!(self, Self::Ahead | Self::GrowingAhead)
    }

    /// The state while the ring is being replaced by one that has no stamps ahead but those that there are.
    pub(crate) fn growing(self) -> Self {
        match self {
            Self::Open => Self::Growing,
            Self::Ahead => Self::GrowingAhead,
            growing => growing,
        }
    }

    /// The state while the ring is being replaced by one with a stamp ahead.
    pub(crate) fn going_ahead(self) -> Self {
        match self {
            Self::Open | Self::Growing => Self::GoingAhead,
            Self::Ahead => Self::GrowingAhead,
            growing => growing,
        }
    }

    /// The state once the ring has been replaced.
    fn grown(self) -> Self {
        if self == Self::GrowingAhead || self == Self::GoingAhead { Self::Ahead } else { Self::Open }
    }
}

/// The head of a cell's ring: how far permits have been claimed, and whether they may be.
///
/// ```text
/// Head { state: 3, epoch: 1, life: 8, lap: 28, pos: 24 }
/// ```
///
/// `pos` is the next slot to claim and `lap` counts the rounds, across growths and across the cell's lives, so a head never
/// has the same value twice (before 2^28 laps of one cell, during one of a thread's decisions). `life` counts the keys that
/// the cell has belonged to, `epoch` tells the ring before a growth from the one after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head(pub(crate) u64);

impl Head {
    const POS_BITS: u32 = 24;
    const LAP_BITS: u32 = 28;
    const LIFE_BITS: u32 = 8;
    const LAP_AT: u32 = Self::POS_BITS;
    const LIFE_AT: u32 = Self::LAP_AT + Self::LAP_BITS;
    const EPOCH_AT: u32 = Self::LIFE_AT + Self::LIFE_BITS;
    const STATE_AT: u32 = Self::EPOCH_AT + 1;

    pub(crate) fn new(state: State, epoch: bool, life: u64, lap: u64, pos: usize) -> Self {
        Self(
            ((state as u64) << Self::STATE_AT)
                | (u64::from(epoch) << Self::EPOCH_AT)
                | ((life & mask(Self::LIFE_BITS)) << Self::LIFE_AT)
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
    pub(crate) fn life(self) -> u64 {
        (self.0 >> Self::LIFE_AT) & mask(Self::LIFE_BITS)
    }

    /// Whether a later head is certainly of the same life, and the cell decides. Lives are told modulo 256, but each takes a lap at
    /// least. The head of a cell that is held does not say its lap.
    pub(crate) fn goes_on_at(self, later: Self) -> bool {
        let decides = |head: Self| !matches!(head.state(), State::Free | State::Dead | State::Held);
        let is_near = self.life() == later.life() && self.laps_until(later) < 1 << Self::LIFE_BITS;
        is_near && decides(self) && decides(later)
    }

    #[inline]
    pub(crate) fn epoch(self) -> bool {
        (self.0 >> Self::EPOCH_AT) & 1 == 1
    }

    #[inline]
    pub(crate) fn state(self) -> State {
        match self.0 >> Self::STATE_AT {
            0 => State::Free,
            1 => State::Open,
            2 => State::Growing,
            3 => State::Dead,
            4 => State::Held,
            5 => State::Ahead,
            6 => State::GrowingAhead,
            _ => State::GoingAhead,
        }
    }

    /// Whether the state is [`Open`](State::Open) and the life this one.
    #[inline]
    pub(crate) fn is_open_in(self, life: u64) -> bool {
        let expected = ((State::Open as u64) << (Self::STATE_AT - Self::LIFE_AT)) | (life & mask(Self::LIFE_BITS));
        self.with_epoch(false).0 >> Self::LIFE_AT == expected
    }

    #[inline]
    pub(crate) fn with_epoch(self, epoch: bool) -> Self {
        Self(self.0 & !(1 << Self::EPOCH_AT) | (u64::from(epoch) << Self::EPOCH_AT))
    }

    pub(crate) fn with_state(self, state: State) -> Self {
        Self::new(state, self.epoch(), self.life(), self.lap(), self.pos())
    }

    /// The head after `cost` more permits of a ring with `slots` slots. Nothing is ahead of those who claim them.
    #[inline]
    pub(crate) fn advanced(self, cost: usize, slots: usize) -> Self {
        let pos = self.pos() + cost;
        let (lap, pos) = if pos >= slots { (self.lap() + 1, pos - slots) } else { (self.lap(), pos) };
        Self::new(State::Open, self.epoch(), self.life(), lap, pos)
    }

    /// What is below the life: the lap and the position, or what a cell with an account has there.
    #[inline]
    pub(crate) fn below_life(self) -> u64 {
        self.0 & mask(Self::LIFE_AT)
    }

    #[inline]
    pub(crate) fn with_below_life(self, below: u64) -> Self {
        Self((self.0 & !mask(Self::LIFE_AT)) | (below & mask(Self::LIFE_AT)))
    }

    /// The head once another ring has taken the place of this one's: at its start, all of it published in the lap before.
    pub(crate) fn on_new_ring(self) -> Self {
        Self::new(self.state().grown(), !self.epoch(), self.life(), self.lap() + 1, 0)
    }

    /// The head of this cell while the claim with that ticket holds it.
    pub(crate) fn held(self, ticket: Ticket) -> Self {
        Self::new(State::Held, false, self.life(), 0, 0)
            .with_below_life((u64::from(ticket.number) << Ticket::SERIAL_BITS) | u64::from(ticket.serial))
    }

    /// The claim that holds a cell.
    pub(crate) fn ticket(self) -> Ticket {
        let below = self.below_life();
        Ticket { number: low_half(below >> Ticket::SERIAL_BITS), serial: low_half(below) }
    }

    /// A number that this cell's memory has not been marked with before.
    pub(crate) fn ancient_mark(self) -> u64 {
        (self.life() << Self::LAP_BITS) | self.lap()
    }

    /// The head of the same cell without a key. The lap goes on, so that no head of an earlier life returns.
    pub(crate) fn freed(self) -> Self {
        Self::new(State::Free, false, self.life() + 1, self.lap() + 1, 0)
    }
}

/// Which claim on several cells it is.
///
/// ```text
/// { number: 20, serial: 32 }
/// ```
///
/// `number` is where it is written down, `serial` counts the claims that were written there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) number: u32,
    pub(crate) serial: u32,
}

impl Ticket {
    const SERIAL_BITS: u32 = 32;
    /// How many can be told apart.
    pub(crate) const NUMBERS: u32 = 1 << 20;
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is wanted")]
fn low_half(word: u64) -> u32 {
    word as u32
}

/// One slot of a ring: the stamp of the permit that was last granted in it.
///
/// ```text
/// Slot { time: 62, joined: 1, parity: 1 }
/// ```
///
/// `parity` is that of the lap in which the permit was claimed; where it is not the claimed lap's, the claim has not been
/// published yet. `joined` says that the next slot was claimed by the same request and has the same stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot(pub(crate) u64);

impl Slot {
    #[inline]
    pub(crate) fn new(time: u64, joined: bool, lap: u64) -> Self {
        Self((time.min(MAX_TIME) << 2) | (u64::from(joined) << 1) | (lap & 1))
    }

    /// A slot that was never used, as if published in the lap before `lap` and long expired. `mark` makes it unlike every
    /// other value this memory has held, so that a late publication of an earlier owner can't take it for its own.
    pub(crate) fn ancient(mark: u64, lap: u64) -> Self {
        debug_assert!(mark < ANCIENT_END);
        Self::new(mark % ANCIENT_END, false, lap.wrapping_add(1))
    }

    #[inline]
    pub(crate) fn time(self) -> u64 {
        self.0 >> 2
    }

    /// Whether it was never used, or what was in it has been lost.
    #[inline]
    pub(crate) fn is_ancient(self) -> bool {
        self.time() < ANCIENT_END
    }

    /// The same slot, joined to the next.
    pub(crate) fn joined_on(self) -> Self {
        Self(self.0 | 2)
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

/// The second word of a cell: the one slot of a ring of one, or where the larger ring is.
///
/// ```text
/// RingRef { block: 32, tag: 25, class: 5, ring: 1,   epoch: 1 }   (ring = 1)
/// Slot    { time: 62,                     joined: 1, parity: 1 }  (joined = 0)
/// ```
///
/// The one slot of a ring of one never has a successor to be joined to. `tag` makes two references to the same block at
/// different times differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RingRef(pub(crate) u64);

/// Size classes of rings: the slot in the cell, 4, 8, ... 2^24. What refers to a block of steps has a class past those.
pub(super) const CLASSES: usize = 24;

impl RingRef {
    const RING: u64 = 2;
    const CLASS_AT: u32 = 2;
    const TAG_AT: u32 = 7;
    const BLOCK_AT: u32 = 32;

    pub(crate) fn new(epoch: bool, class: usize, tag: u64, block: u32) -> Self {
        Self(
            (u64::from(block) << Self::BLOCK_AT)
                | ((tag & mask(25)) << Self::TAG_AT)
                | ((class as u64 & mask(5)) << Self::CLASS_AT)
                | Self::RING
                | u64::from(epoch),
        )
    }

    /// The epoch of the ring; a ring of one is always of the first.
    #[inline]
    pub(crate) fn epoch(self) -> bool {
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

    #[inline]
    pub(crate) fn block(self) -> u32 {
        (self.0 >> Self::BLOCK_AT) as u32
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests;
