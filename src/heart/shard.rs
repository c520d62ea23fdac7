//! A shard: the arena that its keys are in, and the way of a request through a rebuild.

use std::sync::Arc;

use super::arena::{Arena, Cell, Found, Key, Next, PAGE};
use super::log::{Attempt, LogPlan, Place};
use super::ring::Rings;
use super::root::Root;
use super::sync::{AtomicU64, Ordering};
use super::word::{LogState, Word};

/// What a shard asks of an algorithm: of all keys alike.
pub(crate) trait Algorithm {
    /// The first time from which a key with this word is no different from a new one.
    fn over_at(&self, word: Word) -> u64;

    /// A frozen word as it goes on in another arena; `None` if there is no room.
    fn moved(&self, from: Place<'_>, word: Word, reading: u64, to: &Rings) -> Option<Word>;

    /// The slots that the word takes in another arena, at most.
    fn slots(&self, word: Word) -> usize;
}

impl Algorithm for LogPlan {
    fn over_at(&self, word: Word) -> u64 {
        Self::over_at(self, word)
    }

    fn moved(&self, from: Place<'_>, word: Word, reading: u64, to: &Rings) -> Option<Word> {
        Self::moved(self, from, word, reading, to)
    }

    fn slots(&self, word: Word) -> usize {
        LogState::unpack(word).ring.len()
    }
}

/// A request on a key's word.
///
/// A trait and not a closure, so that the usual way is one function without calls.
pub(crate) trait Request {
    type Answer;

    /// One attempt, at a reading of the clock. It may swap the word.
    fn attempt(&self, place: Place<'_>, word: Word, now: u64) -> Attempt<Self::Answer>;
}

/// The keys of a shard.
#[derive(Debug)]
pub(crate) struct Shard {
    root: Root<Arena>,
    /// The latest end of a key that was dropped. A new key's first permit is no earlier, however
    /// far a clock lags.
    floor: AtomicU64,
}

/// The cells and slots of the smallest arena.
const LEAST_CELLS: usize = if cfg!(tollgate_loom) {
    2
} else if cfg!(test) {
    4
} else {
    64
};
const LEAST_SLOTS: usize = if cfg!(test) { 16 } else { 256 };

/// One insertion of so many looks whether the arena is much too large.
const LOOK_EVERY: u64 = 16;

/// The pages that a request sweeps during a rebuild: 256 cells.
const PAGES_A_REQUEST: usize = if cfg!(tollgate_loom) { 1 } else { 2 };

/// The attempts after which a thread that lost a swap no longer waits longer.
const LONGEST_BACKOFF: u32 = 6;

impl Shard {
    /// An empty shard with room for so many keys.
    pub(crate) fn new(keys: usize) -> Self {
        let cells = (keys * 17 / 10).max(LEAST_CELLS);
        Self { root: Root::new(Arena::new(cells, (2 * keys).max(LEAST_SLOTS))), floor: AtomicU64::new(0) }
    }

    /// Decides the request on the key's word. The key gets a cell if it has none.
    #[inline(always)]
    pub(crate) fn decide<R: Request>(
        &self,
        algorithm: &impl Algorithm,
        key: Key,
        clock: &impl Fn() -> u64,
        request: &R,
    ) -> R::Answer {
        let root = self.root.load();
        let mut lost = 0;
        if let Some(cell) = root.known(key) {
            // The way of nearly all requests.
            loop {
                let word = cell.word.load();
                if !word.is_open() || word == Word::NEW {
                    break;
                }
                match request.attempt(root.place_of(cell), word, clock()) {
                    Attempt::Done(answer) => {
                        if root.is_moving() {
                            self.help(algorithm, &root, clock);
                        }
                        return answer;
                    }
                    Attempt::Lost => back_off(&mut lost),
                    Attempt::NoRoom => break,
                }
            }
        }
        drop(root);
        self.decide_at_length(algorithm, key, clock, request)
    }

    /// The same for a new key, and during a rebuild.
    #[cold]
    fn decide_at_length<R: Request>(
        &self,
        algorithm: &impl Algorithm,
        key: Key,
        clock: &impl Fn() -> u64,
        request: &R,
    ) -> R::Answer {
        let mut lost = 0;
        loop {
            let root = Arc::clone(&self.root.load());
            let Some((arena, place)) = self.seat(algorithm, root, key, clock) else { continue };
            let cell = arena.cell(place);
            let word = cell.word.load();
            if word.is_frozen() {
                continue;
            }
            let floor = if word == Word::NEW { self.floor.load(Ordering::Acquire) } else { 0 };
            match request.attempt(arena.place_of(cell), word, clock().max(floor)) {
                Attempt::Done(answer) => return answer,
                Attempt::Lost => back_off(&mut lost),
                Attempt::NoRoom => {
                    self.rebuild(algorithm, &arena, clock);
                    if let Next::Arena(successor) = arena.next() {
                        self.move_cell(algorithm, &arena, cell, key, &successor, clock);
                    }
                }
            }
        }
    }

    /// The arena and the place of the key's cell, whose word is not frozen. The key gets a cell if
    /// it has none, and moves if its arena is being rebuilt. `None` if this arena is gone.
    fn seat(
        &self,
        algorithm: &impl Algorithm,
        mut arena: Arc<Arena>,
        key: Key,
        clock: &impl Fn() -> u64,
    ) -> Option<(Arc<Arena>, usize)> {
        loop {
            match (arena.find(key), arena.next()) {
                (_, Next::Gone) => return None,
                (Found::Cell(place), next) => {
                    let cell = arena.cell(place);
                    match (cell.word.load().is_frozen(), next) {
                        (false, _) => return Some((arena, place)),
                        (true, Next::Arena(successor)) => {
                            self.move_cell(algorithm, &arena, cell, key, &successor, clock);
                            self.help(algorithm, &arena, clock);
                            arena = successor;
                        }
                        // A successor is linked before a word is frozen. It is there now.
                        (true, _) => {}
                    }
                }
                (Found::End(end), Next::Arena(successor)) => {
                    if arena.cell(end).seal() {
                        self.help(algorithm, &arena, clock);
                        arena = successor;
                    }
                }
                (Found::End(_), Next::None) if arena.is_full() => self.rebuild(algorithm, &arena, clock),
                (Found::End(end), Next::None) => {
                    if arena.insert(end, key) {
                        self.look(algorithm, &arena, clock);
                    }
                }
                (Found::Sealed | Found::Full, Next::Arena(successor)) => {
                    self.help(algorithm, &arena, clock);
                    arena = successor;
                }
                (Found::Sealed | Found::Full, Next::None) => self.rebuild(algorithm, &arena, clock),
            }
        }
    }

    /// Looks at the key's word, if it has one, and changes nothing. `look` answers `None` if the
    /// word changed meanwhile.
    pub(crate) fn view<T>(&self, key: Key, mut look: impl FnMut(Place<'_>, Word) -> Option<T>) -> Option<T> {
        loop {
            match view_in(&self.root.load(), key, &mut look) {
                Seen::Word(seen) => return Some(seen),
                Seen::Nothing => return None,
                Seen::Gone => {}
            }
        }
    }

    /// Starts a rebuild of this arena, or helps with the one under way.
    fn rebuild(&self, algorithm: &impl Algorithm, arena: &Arc<Arena>, clock: &impl Fn() -> u64) {
        arena.link(|| {
            let (cells, slots) = self.needed(algorithm, arena, clock());
            // An arena that is being filled is full of keys that no sample of it can tell.
            let least = if Arc::ptr_eq(&self.root.load(), arena) { 0 } else { 2 * arena.len() };
            Arena::new(cells.max(least), slots.max(2 * least))
        });
        self.help(algorithm, arena, clock);
    }

    /// The cells and slots of a successor, by a sample: at first, at most 10 of 17 cells are taken.
    fn needed(&self, algorithm: &impl Algorithm, arena: &Arena, now: u64) -> (usize, usize) {
        let (mut live, mut slots) = (0, 0);
        let (cells, sample) = arena.sample(now);
        for cell in sample {
            let word = cell.word.load();
            if cell.key().is_some() && word.state() != 0 && algorithm.over_at(word) > now {
                live += 1;
                slots += algorithm.slots(word);
            }
        }
        let all = |part: usize| (part * arena.len()).div_ceil(cells);
        // A sample may miss a few.
        let keys = all(live) + arena.len() / 64;
        ((keys * 17 / 10 + PAGE).max(LEAST_CELLS), (2 * all(slots) + keys).max(LEAST_SLOTS))
    }

    /// Now and then, looks whether the root is much larger than its keys need. An arena that is
    /// being filled is not.
    fn look(&self, algorithm: &impl Algorithm, arena: &Arc<Arena>, clock: &impl Fn() -> u64) {
        let due = arena.used.load(Ordering::Relaxed) % LOOK_EVERY == LOOK_EVERY / 2
            && arena.len() > 8 * LEAST_CELLS
            && Arc::ptr_eq(&self.root.load(), arena);
        if due && self.needed(algorithm, arena, clock()).0 < arena.len() / 8 {
            self.rebuild(algorithm, arena, clock);
        }
    }

    /// Sweeps a few pages of an arena that has a successor. After the last, swaps the root.
    fn help(&self, algorithm: &impl Algorithm, arena: &Arc<Arena>, clock: &impl Fn() -> u64) {
        let Next::Arena(successor) = arena.next() else { return };
        let mut each = |cell: &Cell| {
            if cell.seal() {
                return;
            }
            if let Some(key) = cell.key() {
                self.move_cell(algorithm, arena, cell, key, &successor, clock);
            }
        };
        let all_swept = (0..PAGES_A_REQUEST).any(|_| arena.sweep_page(&mut each));
        if all_swept {
            successor.rings.settle();
        }
        // The thread that swapped the root may have stopped before it unlinked the arena.
        if all_swept && (self.root.swap(arena, successor) || !self.is_linked(arena)) {
            arena.unlink();
        }
    }

    /// Freezes a word, and copies it to the successor if it still matters.
    fn move_cell(
        &self,
        algorithm: &impl Algorithm,
        arena: &Arena,
        cell: &Cell,
        key: Key,
        successor: &Arc<Arena>,
        clock: &impl Fn() -> u64,
    ) {
        let word = cell.freeze();
        let (over_at, now) = (algorithm.over_at(word), clock());
        if word.state() == 0 {
            return;
        }
        if over_at <= now {
            self.floor.fetch_max(over_at, Ordering::AcqRel);
            return;
        }
        // If the successor is gone, the key was moved long ago.
        while let Some((to, place)) = self.seat(algorithm, Arc::clone(successor), key, clock) {
            let there = to.cell(place);
            if there.word.load() != Word::NEW && !there.word.load().is_frozen() {
                return;
            }
            let Some(moved) = algorithm.moved(arena.place_of(cell), word, now, &to.rings) else { return };
            if there.word.swap(Word::NEW, moved) {
                return;
            }
        }
    }

    /// Whether a request may still come to this arena, which has a successor, from the root.
    fn is_linked(&self, arena: &Arc<Arena>) -> bool {
        let mut linked = Arc::clone(&self.root.load());
        while !Arc::ptr_eq(&linked, arena) {
            linked = match linked.next() {
                Next::Arena(successor) => successor,
                Next::None => return false,
                // The root has been swapped meanwhile.
                Next::Gone => Arc::clone(&self.root.load()),
            };
        }
        true
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        let root = self.root.load();
        let further = if let Next::Arena(successor) = root.next() { successor.bytes() } else { 0 };
        root.bytes() + further
    }
}

enum Seen<T> {
    Word(T),
    Nothing,
    /// The arena is not linked any more.
    Gone,
}

/// Looks at the key's word in the latest arena that has one.
fn view_in<T>(arena: &Arena, key: Key, look: &mut impl FnMut(Place<'_>, Word) -> Option<T>) -> Seen<T> {
    loop {
        let cell = match arena.find(key) {
            Found::Cell(place) => Some(arena.cell(place)),
            _ => None,
        };
        let word = cell.map_or(Word::NEW, |cell| cell.word.load());
        match arena.next() {
            Next::Gone => return Seen::Gone,
            // A word that is not frozen is the latest.
            Next::Arena(successor) if cell.is_none() || word.is_frozen() => match view_in(&successor, key, look) {
                Seen::Nothing => {}
                seen => return seen,
            },
            _ => {}
        }
        let Some(cell) = cell.filter(|_| word.state() != 0) else { return Seen::Nothing };
        if let Some(seen) = look(arena.place_of(cell), word) {
            return Seen::Word(seen);
        }
    }
}

/// Waits a little longer after each lost swap.
#[inline]
fn back_off(lost: &mut u32) {
    #[cfg(tollgate_loom)]
    loom::thread::yield_now();
    for _ in 0..1_u32 << *lost {
        core::hint::spin_loop();
    }
    *lost = (*lost + 1).min(LONGEST_BACKOFF);
}

#[cfg(all(test, tollgate_loom))]
mod loom_tests;
#[cfg(all(test, not(tollgate_loom)))]
mod tests;
