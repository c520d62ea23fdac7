//! The table: finds the cell of a key, and inserts new keys.

use once_cell::race::OnceBox;

use super::heuristics::{Heuristics, largest_for, size_for};
use super::index::{Found, Put, Route, SIZES};
use crate::cell::{Ask, Cells, NewCell, Scope, Seat, Unchanged, Version, Versions, time_of};
use crate::clock::Clock;
use crate::decision::Status;
use crate::fingerprint::Fingerprint;
use crate::quota::Quota;
use crate::sync::{AtomicU64, CachePadded, Ordering, plain};

/// The counts of a table.
pub(crate) struct TableCounts {
    pub(crate) live_keys: usize,
    pub(crate) cells: usize,
}

pub(crate) struct Table {
    pub(crate) cells: Cells,
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
    /// As [`of_plans`](Self::of_plans), for keys of one plan.
    #[cfg(test)]
    pub(crate) fn new(plan: Versions, key_cap: usize, expected_keys: usize) -> Self {
        Self::of_plans([plan].into(), key_cap, expected_keys)
    }

    /// A table for up to `key_cap` keys of these plans, between 1 and the maximum, with room for
    /// `expected_keys`.
    pub(crate) fn of_plans(plans: Box<[Versions]>, key_cap: usize, expected_keys: usize) -> Self {
        Self::of_cells(Cells::new(plans, number(key_cap)), key_cap, expected_keys)
    }

    /// As [`of_plans`](Self::of_plans), for joint claims.
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

    /// Changes the quotas of a plan's keys to other validated ones, from now on.
    pub(crate) fn change(
        &self,
        plan: usize,
        scope: Scope,
        quotas: &[Quota],
        clock: &impl Clock,
    ) -> Result<(), Unchanged> {
        self.cells.versions(plan).change(scope, quotas, || time_of(clock.now()))?;
        self.note_idle();
        Ok(())
    }

    /// Decides a request of `cost` permits, between 1 and the limit.
    /// An error says when there may be a place for the key.
    pub(crate) fn acquire(&self, fingerprint: Fingerprint, cost: u32, clock: &impl Clock) -> Result<Status, u64> {
        loop {
            let found = self.find_or_insert(self.route(), fingerprint, cost, clock);
            match found.inspect_err(|_| self.count_refused())? {
                FindOrInsert::Seat(seat) => {
                    if let Some(status) = self.cells.decide(Ask::Acquire, seat, cost, clock) {
                        return Ok(status);
                    }
                }
                FindOrInsert::Granted(version, time) => return Ok(self.cells.first_status(version, cost, time)),
                FindOrInsert::Discarded | FindOrInsert::Retry => {}
            }
        }
    }

    /// The answer of [`acquire`](Self::acquire). Charges nothing. At the key cap it makes room for
    /// a new key as the request would, so both give the same answer.
    pub(crate) fn preview(
        &self,
        ask: Ask,
        fingerprint: Fingerprint,
        cost: u32,
        clock: &impl Clock,
    ) -> Result<Status, u64> {
        loop {
            if let Some(status) = self.peek_cell(ask, fingerprint, cost, clock) {
                return Ok(status);
            }
            let made = if self.cells.has_room() { Ok(()) } else { self.make_room(1, clock) };
            match made {
                Ok(()) => return Ok(self.cells.status_of_nothing(fingerprint, cost, clock)),
                // The key may have got a place meanwhile.
                Err(_) if self.seat_of(fingerprint).is_some() => {}
                Err(retry_after_ns) => return Err(retry_after_ns),
            }
        }
    }

    /// The answer of the key's cell to a peek at `cost` permits; `None` if it has none. Writes
    /// nothing.
    pub(super) fn peek_cell(
        &self,
        ask: Ask,
        fingerprint: Fingerprint,
        cost: u32,
        clock: &impl Clock,
    ) -> Option<Status> {
        let mut status = if ask == Ask::Peek { self.fast_peek(fingerprint, cost, clock) } else { None };
        while status.is_none() {
            status = self.cells.decide(ask, self.seat_of(fingerprint)?, cost, clock);
        }
        status
    }

    /// The answer to a peek, as if there were a place for every key.
    pub(crate) fn peek(&self, fingerprint: Fingerprint, cost: u32, clock: &impl Clock) -> Status {
        self.peek_as(Ask::Peek, fingerprint, cost, clock)
    }

    /// The same, to one of the two peeks.
    pub(crate) fn peek_as(&self, ask: Ask, fingerprint: Fingerprint, cost: u32, clock: &impl Clock) -> Status {
        let status = self.peek_cell(ask, fingerprint, cost, clock);
        status.unwrap_or_else(|| self.cells.status_of_nothing(fingerprint, cost, clock))
    }

    /// Forgets a key's permits. Returns whether it had a cell.
    pub(crate) fn forget(&self, fingerprint: Fingerprint, clock: &impl Clock) -> bool {
        while let Some(seat) = self.seat_of(fingerprint) {
            if self.cells.forget_at(seat.id, seat.head, clock) {
                self.note_idle();
                return true;
            }
        }
        false
    }

    /// Forgets every key.
    pub(crate) fn clear(&self, clock: &impl Clock) {
        for id in self.cells.numbers() {
            self.cells.forget_any(id, clock);
            self.note_idle();
        }
    }

    pub(crate) fn counts(&self, clock: &impl Clock) -> TableCounts {
        let time = time_of(clock.now());
        let (mut cells, mut live_keys) = (0, 0);
        for id in self.cells.numbers() {
            let (in_use, live) = self.cells.is_used_and_live(id, time);
            cells += usize::from(in_use);
            live_keys += usize::from(live);
        }
        TableCounts { live_keys, cells }
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

    /// The cell of a key, if it has one.
    pub(super) fn seat_of(&self, fingerprint: Fingerprint) -> Option<Seat<'_>> {
        loop {
            match self.locate::<false>(self.route(), fingerprint) {
                Located::Current(seat) | Located::Old(seat) => return Some(seat),
                Located::Nowhere => return None,
                Located::Outdated => {}
            }
        }
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
    /// An error says when there may be a place for the key.
    pub(super) fn find_or_insert(
        &self,
        route: Route,
        fingerprint: Fingerprint,
        cost: u32,
        clock: &impl Clock,
    ) -> Result<FindOrInsert<'_>, u64> {
        match self.locate::<true>(route, fingerprint) {
            Located::Current(seat) => return Ok(FindOrInsert::Seat(seat)),
            Located::Outdated => return Ok(FindOrInsert::Retry),
            Located::Old(seat) => {
                return Ok(match self.migrate(route, fingerprint, seat.id, seat.head.incarnation()) {
                    Put::Done | Put::There => FindOrInsert::Seat(seat),
                    Put::Other | Put::Outdated | Put::Full => FindOrInsert::Retry,
                });
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
            return Ok(FindOrInsert::Retry);
        }
        let Some(NewCell { seat: created, claimed, version }) = self.cells.new_cell(fingerprint, cost) else {
            self.unreserve(route);
            return self.seek_place(fingerprint, clock);
        };
        let mut time = None;
        // Before another thread can find the cell idle (INV-CAP).
        self.turns.note_new(route, || version.first_end(claimed, *time.insert(time_of(clock.now()))));
        let (Put::Done | Put::There) = self.insert(route, fingerprint, created.id, created.head.incarnation()) else {
            return Ok(FindOrInsert::Discarded);
        };
        let time = time.unwrap_or_else(|| time_of(clock.now()));
        self.cells.publish_first(created, clock);
        Ok(if claimed == cost { FindOrInsert::Granted(version, time) } else { FindOrInsert::Seat(created) })
    }

    /// Inserts a new cell for which a slot is counted, or frees it.
    #[inline]
    pub(super) fn insert(&self, route: Route, fingerprint: Fingerprint, id: u32, incarnation: u64) -> Put {
        let put = self.current(route).put(fingerprint, id, incarnation, &self.cells);
        if !matches!(put, Put::Done | Put::There) {
            self.cells.discard(id);
            self.unreserve(route);
        }
        put
    }

    /// Makes room for a key that was found nowhere.
    #[cold]
    fn seek_place(&self, fingerprint: Fingerprint, clock: &impl Clock) -> Result<FindOrInsert<'_>, u64> {
        match self.make_room(1, clock) {
            Err(retry_after_ns) if self.seat_of(fingerprint).is_none() => Err(retry_after_ns),
            // There is room, or another thread has taken the last place for this very key since it
            // was found nowhere.
            _ => Ok(FindOrInsert::Retry),
        }
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The outcome of find or insert.
pub(super) enum FindOrInsert<'a> {
    Seat(Seat<'a>),
    /// The first permits have been granted under this version, at this time or later.
    Granted(&'a Version, u64),
    /// Another thread was faster, and the new cell was freed again.
    Discarded,
    Retry,
}
