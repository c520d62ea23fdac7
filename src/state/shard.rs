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

impl Seat<'_> {
    pub(super) fn cell(&self) -> &Cell {
        self.arena.cell(self.index)
    }

    pub(super) fn seen(&self) -> Seen<'_> {
        Seen { cell: self.arena.cell_ref(self.cell()), word: self.word, now: self.now }
    }

    pub(super) fn version(&self, key: Key) -> &Version {
        self.arena.plans.of(key)
    }

    /// The answer to a request for at most as many permits as the limit.
    #[inline(always)]
    fn propose(&self, plan: &Plan, request: Request, mut left: Option<&mut PerQuota>) -> Proposal {
        match self.vacant_until {
            None => {
                let is_plain = Request { enters: false, ..request } == Request::acquire(1);
                match if is_plain { plan.denied_by_hint(self.seen(), left.as_deref_mut()) } else { None } {
                    Some((wait_ns, quota)) => Proposal::Deny { wait_ns, quota, word: None },
                    None => plan.propose(self.seen(), request, left),
                }
            }
            Some(not_before) => plan.propose_first(self.seen(), not_before, request, left),
        }
    }
}

/// The answer to a request, which is so as soon as the word is swapped.
pub(super) struct Prepared<'a> {
    pub(super) arena: Guard<'a, Arena>,
    index: usize,
    old: Word,
    /// The same word, if it stays.
    new: Word,
    pub(super) decision: FastDecision,
    pub(super) charged: Charged,
    /// The place of a key that gets its first permits.
    taken: Option<Taken<'a>>,
}

impl Prepared<'_> {
    /// Swaps the word, if it still stands. Returns whether it did.
    pub(super) fn commit(&self) -> bool {
        // An answer that changes no word holds as of the load.
        self.new == self.old || self.arena.cell(self.index).word.swap(self.old, self.new)
    }

    /// The part of a joint claim, of a cell in this shard.
    pub(super) fn part(&self, shard: usize) -> Part<'_> {
        part(shard, &self.arena, self.index, self.old, self.new)
    }

    /// The word is swapped: the key has its place from now on.
    pub(super) fn keep_place(&mut self) {
        self.taken.take().into_iter().for_each(Taken::keep);
    }
}

/// A part of a claim: of a cell in this shard, in whatever life its key is.
pub(super) fn part(shard: usize, arena: &Arena, index: usize, old: Word, new: Word) -> Part<'_> {
    #[expect(clippy::cast_possible_truncation, reason = "there are fewer shards, and fewer cells in one")]
    let name = CellName { shard: shard as u32, arena: arena.number, index: index as u32 };
    Part { name, cell: Some(arena.cell(index)), old, new, life: None }
}

/// There is no place for another key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Full;

/// The pauses after the first swap that a thread lost: meanwhile the other thread decides a few times
/// without moving the cache line.
const SHORTEST_BACKOFF: u32 = 32;

/// The attempts after which a thread that lost a swap no longer waits longer.
const LONGEST_BACKOFF: u32 = 2;

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
            Found::End(end) if request.cost <= root.plans.of(key).most => {
                self.first_place(&root, end, key, &mut taken)?
            }
            _ => None,
        };
        let seat = match found {
            Some((index, word, vacant_until)) => Seat { arena: root, index, word, vacant_until, now: self.now() },
            // It takes no place.
            None if request.cost > root.plans.of(key).most => return Ok(None),
            None => self.seat(key, &mut taken)?,
        };
        let version = seat.version(key);
        if request.cost > version.most {
            return Ok(None);
        }
        let Some((decision, new, mark)) = seat.propose(&version.plan, request, left).answer() else { return Ok(None) };
        let new = new.unwrap_or(seat.word);
        // The key has a place already, or gets no permit that needs one.
        if seat.vacant_until.is_none() || new == seat.word {
            taken = None;
        }
        let charged = Charged { mark, life: seat.cell().hint.life() };
        let Seat { arena, index, word: old, .. } = seat;
        Ok(Some(Prepared { arena, index, old, new, decision, charged, taken }))
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
        if !matches!(root.next(), Next::None) || root.is_full() {
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

    /// Changes the word of a key by `change`. It returns another word, or `None` to leave it, and a
    /// result; or `None` if another thread has changed the word.
    ///
    /// The key gets a cell if it has none. If it gets its first permits, it takes a place.
    pub(super) fn change<T>(
        self,
        key: Key,
        mut change: impl FnMut(&Seat<'_>) -> Option<(Option<Word>, T)>,
    ) -> Result<T, Full> {
        let (mut taken, mut lost) = (None, 0);
        loop {
            let seat = self.seat(key, &mut taken)?;
            match change(&seat) {
                Some((None, answer)) => return Ok(answer),
                Some((Some(new), answer)) if seat.cell().word.swap(seat.word, new) => {
                    taken.filter(|_| seat.vacant_until.is_some()).into_iter().for_each(Taken::keep);
                    return Ok(answer);
                }
                // The answer follows from a word that has changed, so it is of no use.
                _ => back_off(&mut lost),
            }
        }
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

    /// Begins the account of a new key that starts low and denies the request.
    pub(super) fn open(self, key: Key, request: Request) {
        let opened = |seat: &Seat<'_>| {
            let version = seat.version(key);
            if seat.vacant_until.is_none() || request.cost > version.most {
                return Some((None, ()));
            }
            match seat.propose(&version.plan, request, None) {
                Proposal::Deny { word, .. } => Some((word, ())),
                Proposal::Admit { .. } => Some((None, ())),
                Proposal::Lost => None,
            }
        };
        // If there is no place, it begins with a later request.
        let _ = self.change(key, opened);
    }

    /// Whether the key has no permits, so that it needs a place to get some.
    pub(super) fn is_vacant(self, key: Key) -> bool {
        self.look(key, |_, _| Some(())).is_none()
    }

    /// Looks at the word of a key, if it has permits. `look` answers `None` if the word changed
    /// meanwhile.
    pub(super) fn look<T>(self, key: Key, mut look: impl FnMut(&Version, Seen<'_>) -> Option<T>) -> Option<T> {
        let mut arena = self.shard.root.load();
        loop {
            let cell = if let Found::Cell(_, cell) = arena.find(key) { Some(cell) } else { None };
            let word = cell.map_or(Word::NEW, |cell| cell.word.load());
            match (arena.next(), cell) {
                // The arena is out of use, so its words tell nothing of the present.
                (Next::Gone, _) => arena = self.shard.root.load(),
                (Next::Arena(successor), Some(cell)) if word.is_frozen() => {
                    self.move_cell(&arena, cell, key, &successor, self.now());
                    arena = Guard::of(&self.shard.root, successor);
                }
                (Next::Arena(successor), None) => arena = Guard::of(&self.shard.root, successor),
                // A held word names its claim, which has the state.
                _ if word.is_held() => self.shared.finish(word),
                (_, Some(cell)) if word.vacant_until().is_none() => {
                    let seen = Seen { cell: arena.cell_ref(cell), word, now: self.now() };
                    let looked = look(arena.plans.of(key), seen);
                    // Otherwise the word and the time are not of one instant.
                    if looked.is_some() && seen.stands() {
                        return looked;
                    }
                }
                _ => return None,
            }
        }
    }

    /// The answer to a request, and whether the key has permits. Writes the permits left to `left`,
    /// and charges nothing.
    pub(super) fn peek(self, key: Key, request: Request, left: &mut PerQuota) -> (Decision, bool) {
        if let Some(decision) = self.look(key, |version, seen| version.peek(seen, request, left)) {
            return (decision.into(), true);
        }
        let (root, word, hint) = (self.shard.root.load(), AtomicWord::new(), Hint::new());
        let cell = CellRef { word: &word, hint: &hint, rings: &root.rings };
        let peeked = root.plans.of(key).peek(Seen { cell, word: Word::NEW, now: self.now() }, request, left);
        (peeked.expect("a new key has no word that changes").into(), false)
    }

    /// Forgets the permits of a key. Returns whether it had any.
    pub(super) fn forget(self, key: Key) -> bool {
        if self.is_vacant(key) {
            return false;
        }
        // A place is taken only if the key is forgotten meanwhile, and given back at once.
        let forgotten = self.change(key, |seat| {
            if seat.vacant_until.is_some() {
                return Some((None, false));
            }
            // Before the swap: no receipt of this life may find a word of the next.
            seat.cell().hint.end_life();
            let latest = seat.version(key).plan.latest(seat.word, seat.now);
            Some((Some(Word::forgotten(latest)), true))
        });
        let is_forgotten = forgotten.unwrap_or(false);
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
                let over_at = arena.plans.of(key).plan.over_at(arena.cell_ref(cell), word);
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
    for _ in 0..SHORTEST_BACKOFF << *lost {
        core::hint::spin_loop();
    }
    *lost = (*lost + 1).min(LONGEST_BACKOFF);
}

#[cfg(test)]
pub(super) mod kit;
#[cfg(all(test, tollgate_loom))]
mod loom_tests;
#[cfg(all(test, not(tollgate_loom)))]
mod tests;
