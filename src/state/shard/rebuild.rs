//! Rebuilds of a shard: growth, shrinking, collection, and changes of quotas.

use std::sync::Arc;

use super::{Context, Shard};
use crate::clock::Clock;
use crate::quota::Quota;
use crate::state::arena::{Arena, Cell, Found, LEAST_CELLS, LEAST_SLOTS, Next, PAGE};
use crate::state::key::Key;
use crate::state::sync::Ordering;
use crate::state::versions::Plans;
use crate::state::word::Word;

/// One insertion of so many looks whether the arena is much too large.
const LOOK_EVERY: u64 = 16;

/// The pages that a request sweeps during a rebuild: 256 cells.
const PAGES_A_REQUEST: usize = if cfg!(tollgate_loom) { 1 } else { 4 };

impl Shard {
    /// The arena and the place of the key's cell, whose word is not frozen. The key gets a cell if
    /// it has none, and moves if its arena is being rebuilt. `None` if this arena is gone.
    pub(super) fn cell_of<C: Clock>(
        &self,
        with: Context<'_, C>,
        mut arena: Arc<Arena>,
        key: Key,
    ) -> Option<(Arc<Arena>, usize)> {
        loop {
            match (arena.find(key), arena.next()) {
                (_, Next::Gone) => return None,
                (Found::Cell(place), next) => {
                    let cell = arena.cell(place);
                    match (cell.word.load().is_frozen(), next) {
                        (false, _) => return Some((arena, place)),
                        (true, Next::Arena(successor)) => {
                            self.move_cell(with, &arena, cell, key, &successor);
                            self.help(with, &arena);
                            arena = successor;
                        }
                        // A successor is linked before a word is frozen. It is there now.
                        (true, _) => {}
                    }
                }
                (Found::End(end), Next::Arena(successor)) => {
                    if arena.cell(end).seal() {
                        self.help(with, &arena);
                        arena = successor;
                    }
                }
                (Found::End(_), Next::None) if arena.is_full() => self.rebuild(with, &arena),
                (Found::End(end), Next::None) => {
                    if arena.insert(end, key) {
                        self.shrink(with, &arena);
                    }
                }
                (Found::Sealed | Found::Full, Next::Arena(successor)) => {
                    self.help(with, &arena);
                    arena = successor;
                }
                (Found::Sealed | Found::Full, Next::None) => self.rebuild(with, &arena),
            }
        }
    }

    /// Starts a rebuild of this arena, or helps with the one under way.
    fn rebuild<C: Clock>(&self, with: Context<'_, C>, arena: &Arc<Arena>) {
        arena.link(|| {
            let (cells, slots) = self.needed(with, arena);
            // An arena that is being filled is full of keys that no sample of it can tell.
            let least = if Arc::ptr_eq(&self.root.load(), arena) { 0 } else { 2 * arena.len() };
            Arena::new(arena.number + 1, Arc::clone(&arena.plans), cells.max(least), slots.max(2 * least))
        });
        self.help(with, arena);
    }

    /// Makes room for a ring of the key: its arena is rebuilt, and it is the first to move.
    pub(super) fn make_room_for_rings<C: Clock>(
        &self,
        with: Context<'_, C>,
        arena: &Arc<Arena>,
        cell: &Cell,
        key: Key,
    ) {
        self.rebuild(with, arena);
        if let Next::Arena(successor) = arena.next() {
            self.move_cell(with, arena, cell, key, &successor);
        }
    }

    /// Moves all keys to an arena with other plans: when this returns, each request is decided by
    /// them.
    pub(in crate::state) fn set_plans<C: Clock>(&self, with: Context<'_, C>, plans: impl Fn(&Plans) -> Plans) {
        loop {
            let root = Arc::clone(&self.root.load());
            let is_linked = root.link(|| {
                let (cells, slots) = self.needed(with, &root);
                Arena::new(root.number + 1, Arc::new(plans(&root.plans)), cells, slots)
            });
            while Arc::ptr_eq(&self.root.load(), &root) {
                self.help(with, &root);
                #[cfg(tollgate_loom)]
                loom::thread::yield_now();
            }
            if is_linked {
                return;
            }
        }
    }

    /// The cells and slots of a successor, by a sample: at first, at most 10 of 17 cells are taken.
    fn needed<C: Clock>(&self, with: Context<'_, C>, arena: &Arena) -> (usize, usize) {
        let now = with.now();
        let (mut live, mut slots) = (0, 0);
        let (cells, sample) = arena.sample(now);
        for cell in sample {
            let word = cell.word.load();
            let Some(key) = cell.key() else { continue };
            if let Some(until) = word.vacant_until() {
                live += usize::from(is_remembered(arena, cell, key, until, now));
                continue;
            }
            let plan = &arena.plans.of(key).plan;
            if word.is_held() {
                live += 1;
            } else if plan.over_at(arena.place_of(cell), word) > now {
                live += 1;
                slots += plan.slots(word);
            }
        }
        let all = |part: usize| (part * arena.len()).div_ceil(cells);
        // A sample may miss a few.
        let keys = all(live) + arena.len() / 64;
        ((keys * 17 / 10 + PAGE).max(LEAST_CELLS), (2 * all(slots) + keys).max(LEAST_SLOTS))
    }

    /// Now and then, looks whether the root is much larger than its keys need. An arena that is
    /// being filled is not.
    fn shrink<C: Clock>(&self, with: Context<'_, C>, arena: &Arc<Arena>) {
        let due = arena.used.load(Ordering::Relaxed) % LOOK_EVERY == LOOK_EVERY / 2
            && arena.len() > 8 * LEAST_CELLS
            && Arc::ptr_eq(&self.root.load(), arena);
        if due && self.needed(with, arena).0 < arena.len() / 8 {
            self.rebuild(with, arena);
        }
    }

    /// Sweeps a few pages of an arena that has a successor. After the last, swaps the root.
    pub(super) fn help<C: Clock>(&self, with: Context<'_, C>, arena: &Arc<Arena>) {
        let Next::Arena(successor) = arena.next() else { return };
        let mut each = |cell: &Cell| {
            if cell.seal() {
                return;
            }
            if let Some(key) = cell.key() {
                self.move_cell(with, arena, cell, key, &successor);
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

    /// Freezes a word, and copies it to the successor, unless its key has no permits and receipts of
    /// before can't be mistaken for later ones.
    fn move_cell<C: Clock>(&self, with: Context<'_, C>, arena: &Arena, cell: &Cell, key: Key, successor: &Arc<Arena>) {
        let word = freeze(with, arena, cell, key);
        match word.vacant_until() {
            Some(until) => {
                self.floor.fetch_max(until, Ordering::AcqRel);
                if is_remembered(arena, cell, key, until, with.now()) {
                    self.copy(with, arena, cell, key, word, Arc::clone(successor));
                }
            }
            None => self.copy(with, arena, cell, key, word, Arc::clone(successor)),
        }
    }

    /// Copies a frozen word to another arena, or the one behind that: once.
    ///
    /// The copy is the first word of the key's new cell. A cell with any other word has had it. A
    /// new word that is frozen has not, nor will; then the copy goes on behind it.
    fn copy<C: Clock>(
        &self,
        with: Context<'_, C>,
        arena: &Arena,
        cell: &Cell,
        key: Key,
        word: Word,
        mut to: Arc<Arena>,
    ) {
        loop {
            match (to.find(key), to.next()) {
                // All keys were moved long ago.
                (_, Next::Gone) => return,
                (Found::Cell(place), next) => {
                    let there = &to.cell(place).word;
                    to.cell(place).hint.go_on_with(&cell.hint);
                    match (there.load(), next) {
                        (Word::NEW, _) if word.vacant_until().is_some() => {
                            let until = word.vacant_until().unwrap_or(0);
                            if there.swap(Word::NEW, Word::forgotten(until)) {
                                return;
                            }
                        }
                        (Word::NEW, _) => {
                            let (from, under) = (&arena.plans.of(key).plan, &to.plans.of(key).plan);
                            let now = with.now();
                            match from.moved(arena.place_of(cell), word, now, under, &to.rings) {
                                // Nothing counts under the new quotas.
                                Some(Word::NEW) => {
                                    to.cell(place).hint.end_life();
                                    if there.swap(Word::NEW, Word::forgotten(now)) {
                                        with.shared.places.give_back();
                                        return;
                                    }
                                }
                                Some(moved) if there.swap(Word::NEW, moved) => return,
                                Some(_) => {}
                                None => self.rebuild(with, &to),
                            }
                        }
                        (there, Next::Arena(behind)) if there == Word::NEW.frozen() => to = behind,
                        // A successor is linked before a word is frozen. It is there now.
                        (there, _) if there == Word::NEW.frozen() => {}
                        // An aborted claim puts the new word back.
                        (there, _) if there.is_held() => with.shared.finish(there),
                        _ => return,
                    }
                }
                (Found::End(end), Next::Arena(behind)) => {
                    if to.cell(end).seal() {
                        to = behind;
                    }
                }
                (Found::End(_), Next::None) if to.is_full() => self.rebuild(with, &to),
                (Found::End(end), Next::None) => {
                    to.insert(end, key);
                }
                (Found::Sealed | Found::Full, Next::Arena(behind)) => to = behind,
                (Found::Sealed | Found::Full, Next::None) => self.rebuild(with, &to),
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
}

/// Whether a key without permits since `until` keeps its cell: it was forgotten, and a permit that it
/// gets now could count in the same window or have the same stamp as one of before, whose receipt
/// must not refund it.
fn is_remembered(arena: &Arena, cell: &Cell, key: Key, until: u64, now: u64) -> bool {
    let windows = || arena.plans.of(key).quotas.iter().map(Quota::window_ns);
    cell.hint.life() > 0 && now <= until.saturating_add(windows().max().unwrap_or(0).saturating_mul(2))
}

/// Freezes the word of a key, and returns it. If its permits have expired, it is forgotten by the
/// same swap.
fn freeze<C: Clock>(with: Context<'_, C>, arena: &Arena, cell: &Cell, key: Key) -> Word {
    loop {
        let word = cell.word.load();
        if word.is_frozen() {
            return word;
        }
        if word.is_held() {
            with.shared.finish(word);
            continue;
        }
        let over_at = || arena.plans.of(key).plan.over_at(arena.place_of(cell), word);
        let expired = if word.vacant_until().is_none() { Some(over_at()).filter(|&at| at <= with.now()) } else { None };
        let last = expired.map_or(word, Word::forgotten).frozen();
        if cell.word.swap(word, last) {
            if expired.is_some() {
                with.shared.places.give_back();
            }
            return last;
        }
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod stalled_tests;
#[cfg(all(test, not(tollgate_loom)))]
mod tests;
