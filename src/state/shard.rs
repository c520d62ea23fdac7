//! A shard: the arena that its keys are in, and the way of a request to the word of its key.

use core::ops::{Deref, Range};
use std::collections::HashSet;
use std::sync::Arc;

use super::arena::{Arena, Next, room_for};
use super::cell::{AtomicWord, Cell, Found, Hint, Key, Word, time_of};
use super::claims::{CellName, Cells, Claims, Part};
use super::places::{Places, Taken};
use super::plan::{Plan, Plans, Version};
use super::request::{CellRef, Proposal, Request, Seen};
use super::root::{Guard, Root};
use super::sync::{AtomicU64, Ordering};
use crate::clock::Clock;
use crate::decision::{Decision, FastDecision, PerQuota};
use crate::sync::CachePadded;

mod rebuild;

/// The keys of a shard.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(super) root: Root<Arena>,
    /// The latest time of the keys without permits that rebuilds came across. The permits of a new or
    /// forgotten key count as granted no earlier (INV-FLOOR).
    floor: AtomicU64,
}

/// The shards of a table, and what they share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) shards: Box<[CachePadded<Shard>]>,
    pub(super) places: Places,
    pub(super) claims: Claims,
}

impl Shared {
    /// Finishes the joint claim that has the key of this word.
    #[cold]
    pub(super) fn finish(&self, word: Word) {
        self.claims.finish(self, word);
    }
}

/// A cell, which keeps its arena.
pub(super) struct Kept {
    arena: Arc<Arena>,
    index: usize,
}

impl Deref for Kept {
    type Target = Cell;

    fn deref(&self) -> &Cell {
        self.arena.cell(self.index)
    }
}

impl Cells for Shared {
    type Cell = Kept;

    fn cell(&self, name: CellName) -> Option<Kept> {
        let arena = self.shards[name.shard as usize].arenas().find(|arena| arena.number >= name.arena)?;
        (arena.number == name.arena).then_some(Kept { arena, index: name.index as usize })
    }
}

/// What tells the permits of a request from others of the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Charged {
    pub(super) mark: u128,
    /// The life of the key, from before the charge.
    pub(super) life: u64,
}

/// The cell of a key.
pub(super) struct Seat<'a> {
    pub(super) arena: Guard<'a, Arena>,
    pub(super) index: usize,
    /// Neither held nor frozen.
    pub(super) word: Word,
    /// If the key has no permits, the time before which it gets none.
    pub(super) vacant_until: Option<u64>,
    pub(super) now: u64,
}

impl<'a> Seat<'a> {
    pub(super) fn cell(&self) -> &Cell {
        self.arena.cell(self.index)
    }

    pub(super) fn seen(&self) -> Seen<'_> {
        Seen { cell: self.arena.cell_ref(self.cell()), word: self.word, now: self.now }
    }

    pub(super) fn version(&self, key: Key) -> &Version {
        self.arena.version(key)
    }

    /// The answer to a request for at most as many permits as the limit.
    #[inline(always)]
    fn propose(&self, plan: &Plan, request: Request, mut left: Option<&mut PerQuota>) -> Proposal {
        match self.vacant_until {
            None => {
                let cost = request.cost;
                let is_plain = Request { enters: false, ..request } == Request::acquire(cost);
                match if is_plain { plan.denied_by_hint(self.seen(), cost, left.as_deref_mut()) } else { None } {
                    Some((wait_ns, quota)) => Proposal::Deny { wait_ns, quota, word: None },
                    None => plan.propose(self.seen(), request, left),
                }
            }
            Some(not_before) => plan.propose_first(self.seen(), not_before, request, left),
        }
    }

    /// The change of its word to another. A key that gets its first permits by it gets the place.
    #[inline(always)]
    pub(super) fn change(self, key: Key, new: Word, life: Option<u64>, mut taken: Option<Taken<'a>>) -> Change<'a> {
        // The key has a place already, or gets no permit that needs one.
        if self.vacant_until.is_none() || new == self.word {
            taken = None;
        }
        let Seat { arena, index, word: old, .. } = self;
        Change { key, arena, index, old, new, life, taken }
    }
}

/// Another word for a key. What is decided by it is so as soon as the word is swapped.
pub(super) struct Change<'a> {
    pub(super) key: Key,
    pub(super) arena: Guard<'a, Arena>,
    index: usize,
    old: Word,
    /// The same word, if it stays.
    new: Word,
    /// The life that the key has to be in. `None` if any will do.
    pub(super) life: Option<u64>,
    /// The place of a key that gets its first permits.
    taken: Option<Taken<'a>>,
}

impl Change<'_> {
    /// Swaps the word, if it still stands. Returns whether it did: then the key keeps its place.
    pub(super) fn swap(&mut self) -> bool {
        // What changes no word holds as of the load.
        let is_swapped = self.new == self.old || self.arena.cell(self.index).word.swap(self.old, self.new);
        if is_swapped {
            self.keep_place();
        }
        is_swapped
    }

    /// The part of a joint claim, of a cell in this shard.
    pub(super) fn part(&self, shard: usize) -> Part<'_> {
        let &Self { index, old, new, life, .. } = self;
        #[expect(clippy::cast_possible_truncation, reason = "there are fewer shards, and fewer cells in one")]
        let name = CellName { shard: shard as u32, arena: self.arena.number, index: index as u32 };
        Part { name, cell: Some(self.arena.cell(index)), old, new, life }
    }

    /// The word is swapped: the key has its place from now on.
    pub(super) fn keep_place(&mut self) {
        self.taken.take().into_iter().for_each(Taken::keep);
    }
}

/// The answer to a request, and the change that makes it so.
pub(super) struct Prepared<'a> {
    pub(super) decision: FastDecision,
    pub(super) charged: Charged,
    pub(super) change: Change<'a>,
}

/// There is no place for another key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Full;

/// The pauses after the first swap that a thread lost: meanwhile the other thread decides a few times
/// without moving the cache line.
const FIRST_PAUSE: u32 = 32;

/// How often the pause doubles.
const DOUBLINGS: u32 = 2;

impl Shard {
    /// An empty shard with room for so many keys.
    pub(super) fn new(plans: Arc<Plans>, keys: usize) -> Self {
        let (cells, slots) = room_for(keys);
        let first = Arena::new(0, plans, cells, slots);
        first.rings.settle();
        Self { root: Root::new(first), floor: AtomicU64::new(0) }
    }

    /// The root, and the arenas that its keys move to.
    fn arenas(&self) -> impl Iterator<Item = Arc<Arena>> {
        let root = || self.root.load().to_arc();
        core::iter::successors(Some(root()), move |arena| match arena.next() {
            Next::None => None,
            Next::Arena(next) => Some(next),
            // The root has been swapped meanwhile.
            Next::Gone => Some(root()),
        })
    }

    /// The keys that have a cell, in any arena.
    pub(super) fn keys(&self) -> HashSet<Key> {
        self.arenas().flat_map(|arena| arena.cells().filter_map(Cell::key).collect::<Vec<_>>()).collect()
    }

    /// The arena at which requests begin.
    pub(super) fn root(&self) -> Guard<'_, Arena> {
        self.root.load()
    }

    /// The versions that decide for the keys.
    pub(super) fn plans(&self) -> Arc<Plans> {
        Arc::clone(&self.root.load().plans)
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        self.arenas().map(|arena| arena.bytes()).sum()
    }
}

/// A shard, what it shares with others, and the clock of a request.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) shard: &'a Shard,
    pub(super) shared: &'a Shared,
    pub(super) clock: &'a dyn Clock,
}

impl<'a> Context<'a> {
    #[inline(always)]
    pub(super) fn now(self) -> u64 {
        time_of(self.clock.now())
    }

    /// One attempt at a decision: the word that the request wants for its key, a part of a joint
    /// claim perhaps. The key gets a cell if it has none, and takes a place if it gets its first
    /// permits. `None` if another thread was faster, or the cost is above the limit.
    #[inline(always)]
    pub(super) fn prepare(
        self,
        key: Key,
        request: Request,
        left: Option<&mut PerQuota>,
    ) -> Result<Option<Prepared<'a>>, Full> {
        let mut taken = None;
        let root = self.shard.root.load();
        let found = match root.find(key) {
            // Any other word needs `seat`: it takes a place, finishes a claim, or moves the key.
            Found::Cell(index, cell) => Some((index, cell.word.load(), None)).filter(|(_, word, _)| word.is_open()),
            Found::End(end) if request.cost <= root.version(key).most => {
                self.first_place(&root, end, key, &mut taken)?
            }
            _ => None,
        };
        let seat = match found {
            Some((index, word, vacant_until)) => Seat { arena: root, index, word, vacant_until, now: self.now() },
            // It takes no place.
            None if request.cost > root.version(key).most => return Ok(None),
            None => self.seat(key, &mut taken)?,
        };
        let version = seat.version(key);
        if request.cost > version.most {
            return Ok(None);
        }
        let Some((decision, new, mark)) = seat.propose(&version.plan, request, left).answer() else { return Ok(None) };
        let charged = Charged { mark, life: seat.cell().hint.life() };
        let new = new.unwrap_or(seat.word);
        Ok(Some(Prepared { decision, charged, change: seat.change(key, new, None, taken) }))
    }

    /// The index of a cell for a key that is not in this root, where its search ended. With it, the word
    /// of a new key, and the time before which it gets no permit. `None` if the way of
    /// [`seat`](Self::seat) is needed: the shard is due for a rebuild or in one, or another thread is
    /// faster.
    ///
    /// This is the way of nearly all new keys: it needs no further search.
    fn first_place(
        self,
        root: &Arena,
        end: usize,
        key: Key,
        taken: &mut Option<Taken<'a>>,
    ) -> Result<Option<(usize, Word, Option<u64>)>, Full> {
        // After the search: a key that has moved on was moved behind a link.
        if !root.is_last() || root.is_full() {
            return Ok(None);
        }
        // Before a cell, as in `seat`.
        *taken = Some(self.shared.places.take().ok_or(Full)?);
        // Another key was inserted there, or a sweep sealed the cell. The search begins anew.
        if !root.insert(end, key) {
            return Ok(None);
        }
        self.shrink(root);
        let word = root.cell(end).word.load();
        // Another thread may have found the cell, or a sweep.
        if word != Word::NEW {
            return Ok(None);
        }
        Ok(Some((end, word, Some(self.shard.floor.load(Ordering::Acquire)))))
    }

    /// The cell of a key, with its word: neither held nor frozen. The key gets a cell if it has
    /// none. If it has no permits, it gets a place in `taken`: before it has a cell, so that a flood
    /// of keys at the cap takes no cells.
    pub(super) fn seat(self, key: Key, taken: &mut Option<Taken<'a>>) -> Result<Seat<'a>, Full> {
        loop {
            if taken.is_none() && self.is_vacant(key) {
                *taken = Some(self.shared.places.take().ok_or(Full)?);
            }
            let root = self.shard.root.load().to_arc();
            let number = root.number;
            // If there is none, the root was swapped meanwhile.
            let Some((arena, index)) = self.cell_of(root, key) else { continue };
            if arena.number > number {
                self.keep_up(&self.shard.root.load());
            }
            let word = arena.cell(index).word.load();
            if word.is_held() {
                self.shared.finish(word);
                continue;
            }
            let vacant_until = word.vacant_until();
            // It was frozen after the search, or its permits ended after the look at it.
            if word.is_frozen() || vacant_until.is_some() && taken.is_none() {
                continue;
            }
            // Who left the key behind had raised the floor before.
            let vacant_until = vacant_until.map(|time| time.max(self.shard.floor.load(Ordering::Acquire)));
            return Ok(Seat { arena: Guard::of(&self.shard.root, arena), index, word, vacant_until, now: self.now() });
        }
    }

    /// Whether the key has no permits, so that it needs a place to get some.
    pub(super) fn is_vacant(self, key: Key) -> bool {
        self.open_seat(key).is_none()
    }

    /// The cell of a key with permits. Any other key gets none.
    #[inline]
    pub(super) fn open_seat(self, key: Key) -> Option<Seat<'a>> {
        let mut arena = self.shard.root.load();
        loop {
            let cell = if let Found::Cell(index, cell) = arena.find(key) { Some((index, cell)) } else { None };
            let word = cell.map_or(Word::NEW, |(_, cell)| cell.word.load());
            match cell {
                // Words are frozen before their arena goes out of use.
                Some((index, _)) if word.is_open() => {
                    return Some(Seat { arena, index, word, vacant_until: None, now: self.now() });
                }
                // A held word names its claim, which has the state.
                Some(_) if word.is_held() => self.shared.finish(word),
                _ => match (arena.next(), cell) {
                    // The arena's words tell nothing of the present.
                    (Next::Gone, _) => arena = self.shard.root.load(),
                    (Next::Arena(successor), Some((_, cell))) if word.is_frozen() => {
                        self.move_cell(&arena, cell, key, &successor, self.now());
                        arena = Guard::of(&self.shard.root, successor);
                    }
                    (Next::Arena(successor), None) => arena = Guard::of(&self.shard.root, successor),
                    _ => return None,
                },
            }
        }
    }

    /// Looks at the word of a key, if it has permits. `look` answers `None` if the word changed
    /// meanwhile.
    pub(super) fn look<T>(self, key: Key, mut look: impl FnMut(&Version, Seen<'_>) -> Option<T>) -> Option<T> {
        loop {
            let seat = self.open_seat(key)?;
            let seen = seat.seen();
            let looked = look(seat.version(key), seen);
            // Otherwise the word and the time are not of one instant.
            if looked.is_some() && seen.stands() {
                return looked;
            }
        }
    }

    /// Swaps the word of a key with permits for another. Returns whether it did: not if the key has
    /// none, or if there is no other word.
    pub(super) fn change_open(self, key: Key, other: impl Fn(&Seat<'_>) -> Option<Word>) -> bool {
        let mut lost = 0;
        while let Some(seat) = self.open_seat(key) {
            let Some(new) = other(&seat) else { return false };
            if seat.cell().word.swap(seat.word, new) {
                return true;
            }
            back_off(&mut lost);
        }
        false
    }

    /// The answer to a request, and whether the key has permits. Writes the permits left to `left`,
    /// and charges nothing.
    pub(super) fn peek(self, key: Key, request: Request, left: &mut PerQuota) -> (Decision, bool) {
        if let Some(decision) = self.look(key, |version, seen| version.peek(seen, request, left)) {
            return (decision.into(), true);
        }
        let (root, word, hint) = (self.shard.root.load(), AtomicWord::new(), Hint::new());
        let cell = CellRef { word: &word, hint: &hint, rings: &root.rings };
        let peeked = root.version(key).peek(Seen { cell, word: Word::NEW, now: self.now() }, request, left);
        (peeked.expect("a new key has no word that changes").into(), false)
    }

    /// Forgets the permits of a key. Returns whether it had any.
    pub(super) fn forget(self, key: Key) -> bool {
        let is_forgotten = self.change_open(key, |seat| {
            // Before the swap: no receipt of this life may find a word of the next.
            seat.cell().hint.end_life();
            Some(Word::forgotten(seat.version(key).plan.latest(seat.word, seat.now)))
        });
        if is_forgotten {
            self.shared.places.give_back();
        }
        is_forgotten
    }

    /// Takes the place of a key away whose permits have expired at `now`, if one of these cells has
    /// such a key. If not, the error is the earliest time at which one of their places is free.
    pub(super) fn collect(self, cells: Range<usize>, now: u64) -> Result<(), Option<u64>> {
        let mut earliest = None;
        for arena in self.shard.arenas() {
            for index in cells.start..cells.end.min(cells.start + arena.len()) {
                let Some(cell) = arena.allocated(index % arena.len()) else { continue };
                let (Some(key), word) = (cell.key(), cell.word.load()) else { continue };
                // A vacant key has no place to give. A held or frozen word is another thread's.
                if !word.is_open() {
                    continue;
                }
                let over_at = arena.version(key).plan.over_at(arena.cell_ref(cell), word);
                // If the swap fails, the key is in use, and the look goes on with the next.
                if over_at > now {
                    // Of a word that has changed it is any number.
                    earliest = earliest.into_iter().chain((cell.word.load() == word).then_some(over_at)).min();
                } else if cell.word.swap(word, Word::forgotten(over_at)) {
                    self.shared.places.give_back();
                    return Ok(());
                }
            }
        }
        Err(earliest)
    }
}

/// Waits a little longer after each lost swap.
pub(super) fn back_off(lost: &mut u32) {
    #[cfg(tollgate_loom)]
    loom::thread::yield_now();
    for _ in 0..FIRST_PAUSE << *lost {
        core::hint::spin_loop();
    }
    *lost = (*lost + 1).min(DOUBLINGS);
}

#[cfg(test)]
pub(super) mod kit;
#[cfg(all(test, tollgate_loom))]
mod loom_tests;
#[cfg(all(test, not(tollgate_loom)))]
mod tests;
