//! The table: finds the cell of a key, and inserts new keys.

use once_cell::race::OnceBox;

use super::heuristics::{Heuristics, largest_for, size_for};
use super::index::{Found, Index, Put};
use super::route::{Route, SIZES};
use crate::cell::{Ask, Cells, Scope, Seat, Unchanged, Version, Versions, time_of};
use crate::clock::Clock;
use crate::decision::Status;
use crate::fingerprint::Fingerprint;
use crate::quota::Quota;
use crate::sync::{AtomicU64, CachePadded, Ordering, plain};

/// Where a new key ends up.
#[expect(clippy::large_enum_variant, reason = "it is handed on at once, and a box would be an allocation")]
pub(crate) enum Placed {
    /// The request was decided.
    Decided(Status),
    /// The key cap is reached. A place may be free after this long.
    NoRoom { retry_after_ns: u64 },
}

/// The counts of a table.
pub(crate) struct TableCounts {
    pub(crate) live_keys: usize,
    pub(crate) cells: usize,
    pub(crate) bytes: usize,
    pub(crate) refused_at_cap: u64,
}

pub(crate) struct Table {
    pub(super) cells: Cells,
    /// The memory of the indexes, by log2 of the slots and the generation's parity.
    pub(super) indexes: [[OnceBox<Box<[AtomicU64]>>; 2]; SIZES],
    /// The current generation, and whether the old one is still being swept.
    pub(super) route: AtomicU64,
    /// The chunks of the old generation that are swept.
    pub(super) cursor: CachePadded<AtomicU64>,
    /// The slots of the index that are taken or about to be, by the generation's parity.
    pub(super) filled: CachePadded<[AtomicU64; 2]>,
    pub(super) largest: u32,
    pub(super) turns: CachePadded<Heuristics>,
    pub(super) refused_at_cap: CachePadded<plain::AtomicU64>,
}

/// The place of a key's cell.
pub(super) enum Located<'a> {
    Current(Seat<'a>),
    /// In the old index only.
    Old(Seat<'a>),
    /// Nowhere. With sealing, it can no longer be inserted into the old index.
    Nowhere,
    /// The generation is over.
    Outdated,
}

impl Table {
    /// A table for up to `key_cap` keys, between 1 and the maximum, with room for `expected_keys`.
    pub(crate) fn new(plan: Versions, key_cap: usize, expected_keys: usize) -> Self {
        Self::of_plans([plan].into(), key_cap, expected_keys)
    }

    /// As [`new`](Self::new), for keys of several plans.
    pub(crate) fn of_plans(plans: Box<[Versions]>, key_cap: usize, expected_keys: usize) -> Self {
        Self::of_cells(Cells::new(plans, number(key_cap)), key_cap, expected_keys)
    }

    /// As [`new`](Self::new), for joint claims on keys of several plans.
    pub(crate) fn together(plans: Box<[Versions]>, key_cap: usize, expected_keys: usize) -> Self {
        Self::of_cells(Cells::together(plans, number(key_cap)), key_cap, expected_keys)
    }

    fn of_cells(cells: Cells, key_cap: usize, expected_keys: usize) -> Self {
        let (size, largest) = (size_for(expected_keys), largest_for(key_cap));
        let table = Self {
            cells,
            indexes: [const { [const { OnceBox::new() }; 2] }; SIZES],
            route: AtomicU64::new(Route::first(size).0),
            cursor: CachePadded(AtomicU64::new(0)),
            filled: CachePadded([AtomicU64::new(0), AtomicU64::new(0)]),
            largest,
            turns: CachePadded::default(),
            refused_at_cap: CachePadded(plain::AtomicU64::new(0)),
        };
        table.make_index(Route::first(size));
        if cfg!(tollgate_loom) {
            // The model checker needs its atomics before threads start.
            for size in size..=largest {
                table.make_index(Route::first(size));
                table.make_index(Route::first(size).turned(size));
            }
        }
        table
    }

    /// The current version of a plan.
    #[inline]
    pub(crate) fn version(&self, plan: usize) -> &Version {
        self.cells.versions(plan).current()
    }

    /// The current version for a key.
    #[inline]
    pub(crate) fn version_for(&self, key: Fingerprint) -> &Version {
        self.cells.versions(key.plan()).current_for(key)
    }

    /// Whether keys may have quotas of their own.
    pub(crate) fn keys_may_have_quotas(&self) -> bool {
        self.cells.versions(0).may_have_own()
    }

    /// Changes the quotas of a plan's keys to other validated ones, from now on.
    pub(crate) fn change(
        &self,
        plan: usize,
        scope: Scope,
        quotas: &[Quota],
        clock: &impl Clock,
    ) -> Result<(), Unchanged> {
        self.cells.versions(plan).change(scope, quotas, || time_of(clock.now()))?;
        // Cells may be idle sooner than a sweep has noted.
        self.turns.note_forgotten();
        Ok(())
    }

    /// Whether such a change can be made, if no other comes between.
    pub(crate) fn can_change(
        &self,
        plan: usize,
        scope: Scope,
        quotas: &[Quota],
        clock: &impl Clock,
    ) -> Result<(), Unchanged> {
        self.cells.versions(plan).can_change(scope, quotas, || time_of(clock.now()))
    }

    /// Decides a request of `cost` permits, between 1 and the limit.
    #[inline(never)]
    pub(crate) fn acquire(&self, fingerprint: Fingerprint, cost: u32, clock: &impl Clock) -> Placed {
        loop {
            let seat = match self.find_or_insert(self.route(), fingerprint, cost, clock) {
                FindOrInsert::Seat(seat) => seat,
                FindOrInsert::Granted { time } => {
                    return Placed::Decided(self.cells.first_status(fingerprint, cost, time));
                }
                FindOrInsert::NoRoom { retry_after_ns } => {
                    self.count_refused();
                    return Placed::NoRoom { retry_after_ns };
                }
                FindOrInsert::Retry => continue,
            };
            if let Some(status) = self.cells.decide(Ask::Acquire, seat, cost, clock) {
                return Placed::Decided(status);
            }
        }
    }

    /// The answer to a peek, as if there were a place for every key.
    pub(crate) fn peek(&self, fingerprint: Fingerprint, cost: u32, clock: &impl Clock) -> Status {
        let status = self.peek_cell(fingerprint, cost, clock);
        status.unwrap_or_else(|| self.cells.status_of_nothing(fingerprint, cost, clock))
    }

    /// Forgets a key's permits. Returns whether it had a cell.
    pub(crate) fn forget(&self, fingerprint: Fingerprint, clock: &impl Clock) -> bool {
        loop {
            match self.locate::<false>(self.route(), fingerprint) {
                Located::Current(seat) | Located::Old(seat) => {
                    if self.cells.forget_at(seat.id, seat.head, clock) {
                        self.turns.note_forgotten();
                        return true;
                    }
                }
                Located::Nowhere => return false,
                Located::Outdated => {}
            }
        }
    }

    /// Forgets every key.
    pub(crate) fn clear(&self, clock: &impl Clock) {
        for id in self.cells.numbers() {
            self.cells.forget_any(id, clock);
        }
        self.turns.note_forgotten();
    }

    pub(crate) fn counts(&self, clock: &impl Clock) -> TableCounts {
        let time = time_of(clock.now());
        let (mut cells, mut live_keys) = (0, 0);
        for id in self.cells.numbers() {
            let (in_use, live) = self.cells.is_used_and_live(id, time);
            cells += usize::from(in_use);
            live_keys += usize::from(live);
        }
        TableCounts { live_keys, cells, bytes: self.bytes(), refused_at_cap: self.refused_at_cap() }
    }

    #[cold]
    pub(super) fn count_refused(&self) {
        self.refused_at_cap.fetch_add(1, Ordering::Relaxed);
    }

    /// The requests of new keys that were refused for want of a place.
    pub(crate) fn refused_at_cap(&self) -> u64 {
        self.refused_at_cap.load(Ordering::Relaxed)
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        let indexes = self.indexes.iter().flatten().filter_map(OnceBox::get);
        self.cells.bytes() + indexes.map(|index| size_of_val(&**index) + size_of_val(index)).sum::<usize>()
    }

    #[inline]
    pub(super) fn route(&self) -> Route {
        Route(self.route.load(Ordering::Acquire))
    }

    #[inline]
    pub(super) fn current(&self, route: Route) -> Index<'_> {
        self.index(route.size(), route.generation())
    }

    pub(super) fn old(&self, route: Route) -> Index<'_> {
        self.index(route.old_size(), route.generation().wrapping_sub(1))
    }

    #[inline]
    fn index(&self, size: u32, generation: u32) -> Index<'_> {
        let memory = self.indexes[size as usize % SIZES][(generation & 1) as usize].get();
        let memory = memory.expect("a route names an index only once its memory is there");
        #[expect(clippy::cast_possible_truncation, reason = "entries export the lower half")]
        Index::new(memory, generation as u16)
    }

    pub(super) fn make_index(&self, route: Route) {
        self.indexes[route.size() as usize][(route.generation() & 1) as usize]
            .get_or_init(|| Box::new(core::iter::repeat_with(|| AtomicU64::new(0)).take(1 << route.size()).collect()));
    }

    /// Whether the generation is still current. Then a head that was loaded before is of the
    /// incarnation that an entry of this generation names, not of one 256 later: a cell has at most
    /// one new incarnation per generation (INV-INCARNATION).
    pub(super) fn lasts(&self, route: Route) -> bool {
        self.route().generation() == route.generation()
    }

    /// Looks for the key in the current index and, during a turn, in the old one.
    pub(super) fn locate<const SEAL: bool>(&self, route: Route, fingerprint: Fingerprint) -> Located<'_> {
        match self.look_for::<SEAL>(route, fingerprint) {
            Located::Current(_) | Located::Old(_) if !self.lasts(route) => Located::Outdated,
            located => located,
        }
    }

    fn look_for<const SEAL: bool>(&self, route: Route, fingerprint: Fingerprint) -> Located<'_> {
        match self.current(route).find(fingerprint, &self.cells) {
            Found::Here(seat) => return Located::Current(seat),
            Found::Absent(_) => {}
            // The current index is sealed only once it is no longer current.
            Found::Sealed | Found::Outdated => return Located::Outdated,
        }
        if !route.is_turning() {
            return Located::Nowhere;
        }
        let old = self.old(route);
        loop {
            return match old.find(fingerprint, &self.cells) {
                Found::Here(seat) => Located::Old(seat),
                Found::Outdated => Located::Outdated,
                Found::Sealed | Found::Absent(None) => Located::Nowhere,
                Found::Absent(Some((at, word))) if !SEAL || old.seal(at, word) => Located::Nowhere,
                // Another thread inserted an entry where the seal should go: perhaps this very key.
                Found::Absent(Some(_)) => continue,
            };
        }
    }

    /// Finds or inserts: migrates the cell of a key, or makes one with the first permits granted.
    pub(super) fn find_or_insert(
        &self,
        route: Route,
        fingerprint: Fingerprint,
        cost: u32,
        clock: &impl Clock,
    ) -> FindOrInsert<'_> {
        match self.locate::<true>(route, fingerprint) {
            Located::Current(seat) => return FindOrInsert::Seat(seat),
            Located::Outdated => return FindOrInsert::Retry,
            Located::Old(seat) => {
                return match self.migrate(route, fingerprint, seat.id, seat.head.incarnation()) {
                    Put::Done | Put::There => FindOrInsert::Seat(seat),
                    Put::Other | Put::Outdated | Put::Full => FindOrInsert::Retry,
                };
            }
            Located::Nowhere => {}
        }
        // Before any write: a flood of new keys at the cap must not slow others down.
        if !self.cells.has_room() {
            return self.seek_place(fingerprint, clock);
        }
        self.sweep_some(route, clock);
        if !self.reserve(route) {
            self.make_way(route, clock);
            return FindOrInsert::Retry;
        }
        let Some(created) = self.cells.new_cell(fingerprint, cost) else {
            self.unreserve(route);
            return self.seek_place(fingerprint, clock);
        };
        let put = self.current(route).put(fingerprint, created.id, created.head.incarnation(), &self.cells);
        if let Put::Done | Put::There = put {
            let time = time_of(clock.now());
            self.cells.publish_first(created, clock);
            self.turns.note_new(route, || self.cells.first_end(fingerprint, cost, time));
            return FindOrInsert::Granted { time };
        }
        self.cells.discard(created.id);
        self.unreserve(route);
        FindOrInsert::Retry
    }

    /// Makes room for a key that was found nowhere.
    #[cold]
    fn seek_place(&self, fingerprint: Fingerprint, clock: &impl Clock) -> FindOrInsert<'_> {
        match self.make_room(1, clock) {
            Ok(()) => FindOrInsert::Retry,
            // Another thread may have taken the last place for this very key, since it was found
            // nowhere.
            Err(_) if self.has_cell(fingerprint) => FindOrInsert::Retry,
            Err(retry_after_ns) => FindOrInsert::NoRoom { retry_after_ns },
        }
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The outcome of find or insert.
pub(super) enum FindOrInsert<'a> {
    Seat(Seat<'a>),
    /// The first permits have been granted.
    Granted {
        time: u64,
    },
    /// The key cap is reached. A place may be free after this long.
    NoRoom {
        retry_after_ns: u64,
    },
    Retry,
}
