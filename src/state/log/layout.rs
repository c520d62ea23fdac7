//! What a log is made of: its state in a word, and its ring. A [`Layout`] tells the two kinds apart.

use core::fmt::Debug;

use crate::state::cell::Word;
use crate::state::request::Seen;
use crate::state::ring::{Ring, Rings};

/// The state of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::state) struct LogState {
    /// The stamp of the newest grant, or a step before which no permit may be granted.
    pub(super) newest: u64,
    /// The permits of the newest grant whose slots the next grant writes.
    pub(super) run: u32,
    /// One past the slots of the newest grant, counted around the ring.
    pub(super) position: u32,
    pub(super) ring: RingRef,
    /// Whether `newest` may be later than every clock.
    pub(super) reserved: bool,
}

/// Names a ring of an arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::state) struct RingRef {
    /// Tells the number of slots: see [`Layout::slots_of`].
    pub(super) class: u32,
    /// The number of its first slot, which is even: at most 31 bits.
    pub(super) start: u32,
}

impl RingRef {
    pub(super) const NONE: Self = Self { class: 0, start: 0 };
}

/// How a log has its permits in a word and a ring.
pub(in crate::state) trait Layout: Copy + PartialEq + Debug + Send + Sync {
    /// Whether permits may be reserved ahead.
    const RESERVES: bool;

    /// The most permits that a word and a ring can hold.
    const MOST: u32;

    /// The most permits of one item that has a stamp.
    #[cfg(feature = "snapshot")]
    const AT_ONCE: u32;

    /// The steps that have passed at a time, and the step that it belongs to, if `newest` is the
    /// newest stamp of the key: stamps never decrease.
    fn around(self, newest: u64, time: u64) -> (u64, u64);

    /// The steps that have passed at the first moment of a step.
    fn begun(self, step: u64) -> u64;

    /// The step that a time belongs to.
    fn step_of(self, time: u64) -> u64;

    /// The time at which a step ends.
    fn end_of(self, step: u64) -> u64;

    fn pack(state: LogState) -> Word;

    fn unpack(word: Word) -> LogState;

    /// The number of slots of a ring of this class; none, if it is zero.
    fn slots_of(self, class: u32) -> u32;

    /// The stamp of the permit so far back: the newest is 1 back. Zero if there is none that
    /// counts.
    fn back(view: &View<'_, Self>, back: u32) -> u64;

    /// How many of the newest permits, at most `most`, are as late as this or later.
    fn count_from(view: &View<'_, Self>, first: u64, most: u32) -> u32;

    /// These permits, oldest first: stamps, and the number of permits with each. An exact log has one
    /// item for each permit.
    fn permits_from(view: &View<'_, Self>, first: u64) -> impl ExactSizeIterator<Item = (u64, u32)>;

    /// The state with a grant in the same ring, or in none. It spills the newest grant. Stamps from
    /// `live_from` on are live, and slots with those before `free_below` may be written. `None` if
    /// the ring has to be copied.
    fn continued(view: &View<'_, Self>, grant: Grant, live_from: u64, free_below: u64) -> Option<LogState>;

    /// The most slots that so many live permits need.
    fn most_slots(permits: u32, window: u64) -> usize;

    /// The state with the same newest stamp, the permits of its run, and these before them, oldest
    /// first: in a new ring, unless the word has room for all. The ring is as long as they need, or
    /// longer up to `room`, so that the next grants fit: twice as long, or four slots.
    fn copied(
        self,
        rings: &Rings,
        state: LogState,
        older: impl ExactSizeIterator<Item = (u64, u32)>,
        room: usize,
    ) -> LogState;
}

/// A log as of one word, at one reading of the clock.
#[derive(Clone, Copy)]
pub(in crate::state) struct View<'a, L> {
    pub(super) layout: L,
    pub(super) seen: Seen<'a>,
    pub(super) state: LogState,
    pub(super) ring: Ring<'a>,
    /// The steps that have passed, by the clock or the newest stamp. They tell which stamps are live.
    pub(super) passed: u64,
    /// The stamp of a permit that is granted now.
    pub(super) step: u64,
}

impl<'a, L: Layout> View<'a, L> {
    #[inline(always)]
    pub(super) fn of(layout: L, seen: Seen<'a>) -> Self {
        let state = L::unpack(seen.word);
        let (passed, step) = layout.around(state.newest, seen.now);
        let ring = seen.cell.rings.get(state.ring.start, layout.slots_of(state.ring.class));
        View { layout, seen, state, ring, passed, step }
    }

    /// The time from the clock to the end of a step.
    pub(super) fn until(&self, step: u64) -> u64 {
        self.layout.end_of(step).saturating_sub(self.seen.now)
    }

    /// The same as [`Layout::back`], once a grant is made.
    pub(super) fn back_after(&self, grant: Grant, back: u32) -> u64 {
        if back <= grant.cost { grant.stamp } else { L::back(self, back - grant.cost) }
    }

    /// A grant of so many permits. It is reserved if it is later than the clock, or behind one that
    /// is.
    pub(super) fn grant(&self, cost: u32, stamp: u64) -> Grant {
        Grant { cost, stamp, reserved: stamp > self.step || self.state.reserved && stamp > self.seen.now }
    }

    /// Whether a clock is still before a reserved stamp: no request is admitted.
    pub(super) fn is_behind_reserved(&self) -> bool {
        self.state.reserved && self.seen.now < self.state.newest
    }

    /// The steps that have passed when permits are dropped. Behind a reserved stamp it is the clock:
    /// if the reservation is refunded, earlier permits decide again.
    pub(super) fn kept_by(&self) -> u64 {
        if self.is_behind_reserved() { self.seen.now } else { self.passed }
    }

    /// The same if the newest stamp is this one: no decision comes before it, whatever the clocks say.
    pub(super) fn lasting(&self, newest: u64) -> u64 {
        self.kept_by().min(self.layout.begun(newest))
    }
}

/// Permits that a request adds to a log.
#[derive(Clone, Copy)]
pub(in crate::state) struct Grant {
    pub(super) cost: u32,
    pub(super) stamp: u64,
    /// Whether the stamp may be later than every clock.
    pub(super) reserved: bool,
}

/// Of so many numbers from 1 on, those for which it holds, if it holds for the first of them alone.
pub(super) fn bisect(most: u32, holds: impl Fn(u32) -> bool) -> u32 {
    let (mut known, mut beyond) = (0, most + 1);
    while beyond - known > 1 {
        let middle = known + (beyond - known) / 2;
        if holds(middle) { known = middle } else { beyond = middle }
    }
    known
}
