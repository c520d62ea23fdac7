//! Descriptors of joint claims.

use crate::state::cell::{Cell, Word};
use crate::state::sync::{AtomicU64, Ordering, Record};

/// The most cells of one claim.
pub(crate) const MAX_PARTS: usize = if cfg!(tollgate_loom) { 2 } else { 8 };

/// Names a cell: no other cell of the table ever has this name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct CellName {
    pub(in crate::state) shard: u32,
    /// The number of the arena in its shard.
    pub(in crate::state) arena: u64,
    pub(in crate::state) index: u32,
}

/// One cell of a claim. Neither word is held or frozen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    pub(in crate::state) name: CellName,
    /// `None` if its arena is gone: then the word is frozen.
    pub(in crate::state) cell: Option<&'a Cell>,
    pub(in crate::state) old: Word,
    pub(in crate::state) new: Word,
    /// The life that the key has to be in. `None` if any will do.
    pub(in crate::state) life: Option<u64>,
}

/// Stands for any life in a descriptor. Lives have fewer bits.
const ANY_LIFE: u64 = u64::MAX;

/// Names a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ClaimName {
    pub(super) descriptor: u32,
    pub(super) serial: u32,
}

/// What a held word says.
///
/// ```text
/// { descriptor: 32, serial: 32, installation: 61 }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Held {
    pub(super) claim: ClaimName,
    /// Not zero.
    pub(super) installation: u64,
}

#[derive(Debug)]
pub(super) struct Descriptor {
    /// A [`State`].
    state: AtomicU64,
    /// The helpers so far that might install.
    helpers: AtomicU64,
    /// The first installation of each part; zero while there is none.
    winners: [AtomicU64; MAX_PARTS],
    /// The name, the old and the new word of each part, and its life.
    parts: [Record<7>; MAX_PARTS],
}

/// The state of a descriptor.
///
/// ```text
/// { phase: 2, parts: 4, workers: 26, serial: 32 }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct State {
    /// The number of the claim among those of this descriptor, modulo 2^32.
    pub(super) serial: u32,
    /// The threads at work on the claim.
    pub(super) workers: u32,
    /// The number of parts.
    pub(super) parts: u32,
    pub(super) phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// There is no claim, or its owner is writing it.
    Free,
    Undecided,
    Granted,
    Aborted,
}

impl Descriptor {
    pub(super) fn new() -> Self {
        Self {
            state: AtomicU64::new(0),
            helpers: AtomicU64::new(0),
            winners: core::array::from_fn(|_| AtomicU64::new(0)),
            parts: core::array::from_fn(|_| Record::new()),
        }
    }

    /// Takes the descriptor, if it is free, for the claim of this serial number.
    pub(super) fn take(&self) -> Option<u32> {
        let is_free = |state: State| state.phase == Phase::Free && state.workers == 0;
        // Acquires from `leave`: no worker of the last claim reads the parts any more.
        let taken = self.change(Ordering::Acquire, Ordering::Relaxed, |state| {
            is_free(state).then_some(State { workers: 1, ..state })
        });
        taken.ok().map(|state| state.serial)
    }

    /// Publishes the claim, with the caller as its first worker.
    #[inline(always)]
    pub(super) fn publish(&self, serial: u32, parts: &[Part<'_>]) {
        for (index, part) in parts.iter().enumerate() {
            debug_assert!([part.old, part.new].iter().all(|word| !word.is_held() && !word.is_frozen()));
            self.parts[index].write(part.pack());
            // The store of the state releases it.
            self.winners[index].store(0, Ordering::Relaxed);
        }
        #[expect(clippy::cast_possible_truncation, reason = "there are as many winners")]
        let state = State { serial, workers: 1, parts: parts.len() as u32, phase: Phase::Undecided };
        // A store will do: while the phase is `Free`, nobody else changes a state that is taken.
        self.state.store(state.pack(), Ordering::Release);
    }

    /// Makes the caller a worker. Returns how far the claim is, and the number of its parts; `None`
    /// if it is over.
    pub(super) fn join(&self, serial: u32) -> Option<(Phase, usize)> {
        // The load acquires the parts, so the swap need only count the worker.
        let joined = self.change(Ordering::Relaxed, Ordering::Acquire, |state| {
            let is_it = state.serial == serial && state.phase != Phase::Free;
            is_it.then_some(State { workers: state.workers + 1, ..state })
        });
        joined.ok().map(|state| (state.phase, state.parts as usize))
    }

    /// A number that no other helper has.
    pub(super) fn number_of_helper(&self) -> u64 {
        self.helpers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A part. Its cell is to be found by its name.
    pub(super) fn part(&self, index: usize) -> Part<'_> {
        Part::unpack(self.parts[index].read())
    }

    /// The first installation of a part; zero if there is none.
    pub(super) fn winner(&self, index: usize) -> u64 {
        self.winners[index].load(Ordering::Acquire)
    }

    /// Records an installation of a part, if it is the first.
    pub(super) fn record(&self, index: usize, installation: u64) {
        let _ = self.winners[index].compare_exchange(0, installation, Ordering::Release, Ordering::Relaxed);
    }

    /// Decides the claim, unless another worker has. Returns what was decided.
    pub(super) fn decide(&self, phase: Phase) -> Phase {
        // Releases the installations to those who find the claim decided, and release the words.
        let decided = self.change(Ordering::Release, Ordering::Acquire, |state| {
            (state.phase == Phase::Undecided).then_some(State { phase, ..state })
        });
        decided.map_or_else(|state| state.phase, |_| phase)
    }

    /// Ends the caller's work. The last worker frees the descriptor.
    pub(super) fn leave(&self) {
        // Releases to `take`: the reads of each worker come before the writes of the next owner.
        let _ = self.change(Ordering::Release, Ordering::Relaxed, |state| {
            Some(match state.workers {
                1 => State { serial: state.serial.wrapping_add(1), workers: 0, parts: 0, phase: Phase::Free },
                workers => State { workers: workers - 1, ..state },
            })
        });
    }

    /// Changes the state. Returns the one before it, or the one that was not changed.
    fn change(&self, swap: Ordering, load: Ordering, to: impl Fn(State) -> Option<State>) -> Result<State, State> {
        let changed = self.state.fetch_update(swap, load, |state| to(State::unpack(state)).map(State::pack));
        changed.map(State::unpack).map_err(State::unpack)
    }
}

impl Part<'_> {
    pub(super) fn pack(&self) -> [u64; 7] {
        let CellName { shard, arena, index } = self.name;
        let ([old, old_high], [new, new_high]) = (self.old.halves(), self.new.halves());
        let life = self.life.unwrap_or(ANY_LIFE);
        [u64::from(shard) << 32 | u64::from(index), arena, old, old_high, new, new_high, life]
    }

    #[expect(clippy::cast_possible_truncation, reason = "two halves")]
    pub(super) fn unpack([name, arena, old, old_high, new, new_high, life]: [u64; 7]) -> Self {
        let name = CellName { shard: (name >> 32) as u32, arena, index: name as u32 };
        let (old, new) = (Word::of_halves([old, old_high]), Word::of_halves([new, new_high]));
        Self { name, cell: None, old, new, life: Some(life).filter(|&life| life != ANY_LIFE) }
    }
}

impl State {
    pub(super) const fn pack(self) -> u64 {
        let Self { serial, workers, parts, phase } = self;
        (serial as u64) << 32 | (workers as u64) << 6 | (parts as u64) << 2 | phase as u64
    }

    #[expect(clippy::cast_possible_truncation, reason = "the masks leave no more bits")]
    pub(super) const fn unpack(state: u64) -> Self {
        let phase = match state & 3 {
            0 => Phase::Free,
            1 => Phase::Undecided,
            2 => Phase::Granted,
            _ => Phase::Aborted,
        };
        Self { serial: (state >> 32) as u32, workers: state as u32 >> 6, parts: state as u32 >> 2 & 15, phase }
    }
}

impl Held {
    pub(super) const fn pack(self) -> Word {
        let Self { claim: ClaimName { descriptor, serial }, installation } = self;
        Word::held((installation as u128) << 64 | (serial as u128) << 32 | descriptor as u128)
    }

    #[expect(clippy::cast_possible_truncation, reason = "parts of a word")]
    pub(super) fn of(word: Word) -> Option<Self> {
        let [name, installation] = word.halves();
        let claim = ClaimName { descriptor: name as u32, serial: (name >> 32) as u32 };
        word.is_held().then_some(Self { claim, installation: installation & ((1 << 61) - 1) })
    }
}
