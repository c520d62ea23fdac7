//! What a request for a new key would find: whether there is a place for it, told without a trace.
//!
//! [`Table::room`] repeats on paper what [`Table::make_room`] does: the same chunks, in the same
//! order, as many of them. So without other threads the two agree, also on the wait.

use super::index::{Index, Seen};
use super::turn::{CHUNK, Heuristics, most_chunks};
use super::{Located, Placed, Table};
use crate::cell::{Ask, MAX_CELLS, MAX_TIME, time_of};
use crate::clock::Clock;
use crate::decision::Status;
use crate::fingerprint::Fingerprint;

/// Too few places for the new keys of a request.
pub(super) struct NoRoom {
    /// The places that there are.
    pub(super) places: usize,
    /// A further one may be free after this long.
    pub(super) retry_after_ns: u64,
}

/// The places found so far.
struct Places {
    /// The cells that can be reclaimed, each once; the first few are enough.
    idle: Vec<u32>,
    /// The earliest end of one that can't, as a sweep would note it; none if there is none.
    end: Option<u64>,
}

impl Table {
    /// What [`acquire`](Self::acquire) would answer. Writes nothing.
    pub(crate) fn preview(&self, fingerprint: Fingerprint, cost: u32, clock: &impl Clock) -> Placed {
        loop {
            if let Some(status) = self.look(fingerprint, cost, clock) {
                return Placed::Decided(status);
            }
            match self.room(1, &[], 0, clock) {
                Ok(()) => return Placed::Decided(self.cells.status_of_nothing(fingerprint, cost, clock)),
                // The key may have got a place meanwhile.
                Err(_) if self.has_cell(fingerprint) => {}
                Err(NoRoom { retry_after_ns, .. }) => return Placed::NoRoom { retry_after_ns },
            }
        }
    }

    /// What the key's cell says to a request of `cost` permits; `None` if it has none. Writes
    /// nothing.
    pub(super) fn look(&self, fingerprint: Fingerprint, cost: u32, clock: &impl Clock) -> Option<Status> {
        loop {
            match self.locate::<false>(self.route(), fingerprint) {
                Located::Current(seat) | Located::Old(seat) => {
                    let status = self.cells.decide(Ask::Peek, seat, cost, clock);
                    if status.is_some() {
                        return status;
                    }
                }
                Located::Nowhere => return None,
                Located::Outdated => {}
            }
        }
    }

    /// Whether the key has a cell.
    pub(super) fn has_cell(&self, fingerprint: Fingerprint) -> bool {
        !matches!(self.locate::<false>(self.route(), fingerprint), Located::Nowhere)
    }

    /// The key's cell, if it can be reclaimed.
    pub(super) fn idle_cell(&self, fingerprint: Fingerprint, clock: &impl Clock) -> Option<u32> {
        let time = time_of(clock.now());
        let (Located::Current(seat) | Located::Old(seat)) = self.locate::<false>(self.route(), fingerprint) else {
            return None;
        };
        self.cells.idle_from(seat.id, time).is_some_and(|(_, end)| end <= time).then_some(seat.id)
    }

    /// Whether [`make_room`](Self::make_room) would find `wanted` places beside these cells, which
    /// are the request's own, after `opened` more had been taken by accounts that are never over.
    pub(super) fn room(&self, wanted: usize, own: &[u32], opened: usize, clock: &impl Clock) -> Result<(), NoRoom> {
        let wanted = wanted + opened;
        let free = self.cells.room_up_to(wanted);
        if free >= wanted {
            return Ok(());
        }
        let (route, time) = (self.route(), time_of(clock.now()));
        let mut chunks = most_chunks(route);
        let opened_end = (opened > 0).then(|| Heuristics::rounded(MAX_TIME));
        let mut places = Places { idle: Vec::new(), end: opened_end };
        let found = |places: &Places| free + places.idle.iter().filter(|id| !own.contains(id)).count() >= wanted;
        let no_room = |places: &Places, until: u64| {
            let places = (free + places.idle.len()).saturating_sub(opened);
            // Of cells that are never idle by themselves no end says when there may be a place.
            let until = if until < Heuristics::rounded(MAX_TIME) { until } else { 0 };
            Err(NoRoom { places, retry_after_ns: until.saturating_sub(time).max(1) })
        };
        // What is left of the turn that goes on, and what it knows so far.
        let mut until = self.turns.all_live_until(route.generation());
        if route.is_turning() {
            for chunk in self.chunks_swept(route)..(1 << route.old_size()) / CHUNK {
                if chunks == 0 {
                    return no_room(&places, 0);
                }
                chunks -= 1;
                self.look_through(self.old(route), chunk, time, &mut places);
                if found(&places) {
                    return Ok(());
                }
            }
            until = until.into_iter().chain(places.end).min();
        }
        let mut is_forgotten = self.turns.is_forgotten_noted();
        // Then turn after turn of all that is live.
        while is_forgotten || until.is_none_or(|until| until <= time) {
            places.end = opened_end;
            for chunk in 0..(1 << route.size()) / CHUNK {
                if chunks == 0 {
                    return no_room(&places, 0);
                }
                chunks -= 1;
                self.look_through(self.current(route), chunk, time, &mut places);
                if found(&places) {
                    return Ok(());
                }
            }
            is_forgotten = false;
            until = places.end;
        }
        no_room(&places, until.unwrap_or(0))
    }

    /// Looks at the cells of a chunk.
    fn look_through(&self, index: Index<'_>, chunk: u32, time: u64, places: &mut Places) {
        for at in chunk * CHUNK..(chunk + 1) * CHUNK {
            let Seen::Entry(entry) = index.read(at as usize).1 else { continue };
            match self.cells.idle_from(entry.id(), time) {
                Some((life, end)) if life == entry.life() && end > time => {
                    let end = Heuristics::rounded(end.min(MAX_TIME));
                    places.end = Some(places.end.map_or(end, |earliest| earliest.min(end)));
                }
                Some((life, _))
                    if life == entry.life()
                        && places.idle.len() <= 2 * MAX_CELLS
                        && !places.idle.contains(&entry.id()) =>
                {
                    places.idle.push(entry.id());
                }
                _ => {}
            }
        }
    }
}
