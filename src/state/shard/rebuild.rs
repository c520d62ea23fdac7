//! Rebuilds of a shard: growth, shrinking, collection, and changes of quotas.

use core::ptr::eq;
use std::sync::Arc;

use super::Context;
use crate::quota::Quota;
use crate::state::arena::{Arena, LEAST_CELLS, LEAST_SLOTS, Next};
use crate::state::cell::{Cell, Found, Key, PAGE, Word};
use crate::state::plan::Plans;
use crate::state::request::Seen;
use crate::state::sync::Ordering;

/// One insertion of so many looks whether the arena is much too large.
const LOOK_EVERY: u64 = 64;

/// The pages that a request sweeps during a rebuild: 256 cells.
const PAGES_A_REQUEST: usize = if cfg!(test) { 1 } else { 4 };

impl Context<'_> {
    /// The first cell of the key in this arena and those behind it, and its index. The key gets one in
    /// the last if it has none. `None` if an arena on the way is gone.
    fn first_cell(self, mut arena: Arc<Arena>, key: Key) -> Option<(Arc<Arena>, usize)> {
        loop {
            let end = match arena.find(key) {
                Found::Cell(index, _) => return Some((arena, index)),
                Found::End(end) => Some(end),
                Found::Closed => None,
            };
            match (end, arena.next()) {
                // The root was swapped: the caller begins there.
                (_, Next::Gone) => return None,
                (Some(end), Next::None) if !arena.is_full() => {
                    // If it fails, the next search ends elsewhere, or finds the key.
                    if arena.insert(end, key) {
                        self.shrink(&arena);
                        return Some((arena, end));
                    }
                }
                (_, Next::None) => self.rebuild(&arena),
                // Another key was inserted there meanwhile, perhaps this one.
                (Some(end), Next::Arena(_)) if !arena.cell(end).seal() => {}
                (_, Next::Arena(successor)) => arena = successor,
            }
        }
    }

    /// The arena and the index of the key's cell. Its word was not frozen. A key without a cell gets
    /// one, and a key with a frozen word moves. `None` if this arena, or one behind it, is gone.
    pub(super) fn cell_of(self, mut arena: Arc<Arena>, key: Key) -> Option<(Arc<Arena>, usize)> {
        loop {
            let (found, index) = self.first_cell(arena, key)?;
            let cell = found.cell(index);
            if !cell.word.load().is_frozen() {
                return Some((found, index));
            }
            // A successor is linked before a word is frozen.
            let Next::Arena(successor) = found.next() else { return None };
            self.move_cell(&found, cell, key, &successor, self.now());
            arena = successor;
        }
    }

    /// Begins a rebuild if one is due, or helps with it. It may freeze the word of the caller's key. So a
    /// request calls it after its swap, or after an attempt that failed.
    #[inline]
    pub(in crate::state) fn keep_up(self, arena: &Arena) {
        if arena.rings.are_due() {
            self.collect_rings(arena);
        }
    }

    /// Makes room if a sample shows well over half of the slots in use. Otherwise begins a rebuild of this
    /// arena, or helps with the one under way.
    #[cold]
    fn collect_rings(self, arena: &Arena) {
        if !arena.rings.extend(|| self.needed(arena).1 as u64) {
            self.rebuild(arena);
        }
    }

    /// Begins a rebuild of this arena, or helps with the one under way.
    #[cold]
    fn rebuild(self, arena: &Arena) {
        self.link(arena, Arc::clone);
        self.help(arena);
    }

    /// Links a successor with these plans. Returns whether it did.
    fn link(self, arena: &Arena, plans: impl FnOnce(&Arc<Plans>) -> Arc<Plans>) -> bool {
        arena.link(|| {
            let (cells, slots) = self.needed(arena);
            // Keys that have not moved here yet are in no sample of an arena that is being filled.
            let least = if eq(&*self.shard.root.load(), arena) { 0 } else { 2 * arena.len() };
            Arena::new(arena.number + 1, plans(&arena.plans), cells.max(least), slots.max(2 * least))
        })
    }

    /// Moves all keys to an arena with other plans: when this returns, each request is decided by
    /// them.
    pub(in crate::state) fn set_plans(self, plans: impl Fn(&Plans) -> Plans) {
        loop {
            let root = self.shard.root.load();
            let is_linked = self.link(&root, |old| Arc::new(plans(old)));
            // It waits for the rebuild: each later request is to be under the new quotas.
            while eq(&*self.shard.root.load(), &*root) {
                self.help(&root);
                #[cfg(tollgate_loom)]
                loom::thread::yield_now();
            }
            // Otherwise another thread linked first, a successor with the old quotas.
            if is_linked {
                return;
            }
        }
    }

    /// The cells and slots of a successor, by a sample: at first, at most 10 of 17 cells are taken.
    fn needed(self, arena: &Arena) -> (usize, usize) {
        let now = self.now();
        let (mut live, mut slots) = (0, 0);
        let (cells, sample) = arena.sample(now);
        for cell in sample {
            let (Some(key), word) = (cell.key(), cell.word.load()) else { continue };
            let plan = &arena.version(key).plan;
            if let Some(until) = word.vacant_until() {
                live += usize::from(is_remembered(arena, cell, key, until, now));
            } else if word.is_open() && plan.over_at(arena.cell_ref(cell), word) > now {
                live += 1;
                slots += plan.slots(word);
            }
        }
        let all = |part: usize| (part * arena.len()).div_ceil(cells);
        // A sample may miss a few.
        let keys = all(live) + arena.len() / 64;
        ((keys * 17 / 10 + PAGE).max(LEAST_CELLS), (2 * all(slots) + keys).max(LEAST_SLOTS))
    }

    /// Now and then, looks whether the arena is much larger than its keys need, if it is the root:
    /// others are being filled.
    pub(super) fn shrink(self, arena: &Arena) {
        let due = arena.used.load(Ordering::Relaxed) % LOOK_EVERY == LOOK_EVERY / 2
            && arena.len() > 8 * LEAST_CELLS
            && eq(&*self.shard.root.load(), arena);
        if due && self.needed(arena).0 < arena.len() / 8 {
            self.rebuild(arena);
        }
    }

    /// Sweeps a few pages of an arena that has a successor. After the last, swaps the root.
    pub(super) fn help(self, arena: &Arena) {
        let Next::Arena(successor) = arena.next() else { return };
        let now = self.now();
        let mut each = |cell: &Cell| {
            if let (false, Some(key)) = (cell.seal(), cell.key()) {
                self.move_cell(arena, cell, key, &successor, now);
            }
        };
        if (0..PAGES_A_REQUEST).any(|_| arena.sweep_page(&mut each)) {
            successor.rings.settle();
            if self.shard.root.swap(arena, successor) {
                arena.unlink();
            }
        }
    }

    /// Freezes a word, and copies it to the successor, or the arena behind that: once. It is not copied
    /// if its key has no permits and receipts of before can't be mistaken for later ones.
    ///
    /// The copy is the first word of the key's new cell. Any other word there shows that another
    /// thread has copied the key, or left it behind. A frozen new word shows that it was not, and
    /// will not be: the copy goes to the arena behind.
    ///
    /// `now` may be from before the word was loaded. Then the copy has permits that have expired since,
    /// and a forgotten key is remembered for longer.
    pub(super) fn move_cell(self, arena: &Arena, cell: &Cell, key: Key, successor: &Arc<Arena>, now: u64) {
        let word = self.freeze(arena, cell, key, now);
        let vacant_until = word.vacant_until();
        if let Some(until) = vacant_until {
            // Before the key is left behind: a request that finds it new must see the floor.
            self.shard.floor.fetch_max(until, Ordering::AcqRel);
            if !is_remembered(arena, cell, key, until, now) {
                return;
            }
        }
        let mut to = Arc::clone(successor);
        // If an arena is gone, all keys were moved long ago.
        while let Some((found, index)) = self.first_cell(to, key) {
            let there = found.cell(index);
            match there.word.load() {
                Word::NEW => {
                    there.hint.go_on_from(cell.hint.life());
                    // Other quotas count from now on, so not from before the word was frozen.
                    let now = if Arc::ptr_eq(&arena.plans, &found.plans) { now } else { self.now() };
                    let seen = Seen { cell: arena.cell_ref(cell), word, now };
                    let (plan, under) = (&arena.version(key).plan, &found.version(key).plan);
                    let mut moved = match vacant_until {
                        Some(until) => Word::forgotten(until),
                        None => plan.moved(seen, under, &found.rings),
                    };
                    // Nothing counts under the new quotas.
                    let is_over = moved == Word::NEW;
                    if is_over {
                        there.hint.go_on_from(cell.hint.life() + 1);
                        moved = Word::forgotten(seen.now);
                    }
                    // From zero alone: a late copy must not undo what the key did since.
                    if there.word.swap(Word::NEW, moved) {
                        if is_over {
                            self.shared.places.give_back();
                        }
                        return;
                    }
                }
                // An aborted claim puts the new word back.
                held if held.is_held() => self.shared.finish(held),
                frozen if frozen == Word::NEW.frozen() => {
                    // A successor is linked before a word is frozen.
                    let Next::Arena(behind) = found.next() else { return };
                    to = behind;
                    continue;
                }
                _ => return,
            }
            to = found;
        }
    }

    /// Freezes the word of a key, and returns it. If its permits have expired, it is forgotten by the
    /// same swap.
    pub(super) fn freeze(self, arena: &Arena, cell: &Cell, key: Key, now: u64) -> Word {
        loop {
            let word = cell.word.load();
            if word.is_frozen() {
                return word;
            }
            if word.is_held() {
                self.shared.finish(word);
                continue;
            }
            let over_at = || arena.version(key).plan.over_at(arena.cell_ref(cell), word);
            let expired = word.vacant_until().is_none().then(over_at).filter(|&at| at <= now);
            let last = expired.map_or(word, Word::forgotten).frozen();
            if cell.word.swap(word, last) {
                // Only the thread whose swap ended the permits, so the place is given back once.
                if expired.is_some() {
                    self.shared.places.give_back();
                }
                return last;
            }
        }
    }
}

/// Whether a key without permits since `until` keeps its cell: it was forgotten, and a permit that it
/// gets now could count in the same window or have the same stamp as one of before, whose receipt
/// must not refund it.
fn is_remembered(arena: &Arena, cell: &Cell, key: Key, until: u64, now: u64) -> bool {
    let windows = || arena.version(key).quotas.iter().map(Quota::window_ns);
    cell.hint.life() > 0 && now <= until.saturating_add(windows().max().unwrap_or(0).saturating_mul(2))
}

#[cfg(all(test, not(tollgate_loom)))]
mod stalled_tests;
#[cfg(all(test, not(tollgate_loom)))]
mod tests;
