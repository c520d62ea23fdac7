//! Settling: what a request costs is known once it is answered.
//!
//! The charge of a request becomes one of its actual cost. If that is less, the rest is refunded: a
//! refund is a settlement of no permits. If it is more, the rest is charged, whether it fits or
//! not, and the next requests wait for it. Each key has one swap, and several keys one joint claim,
//! so no request comes between.
//!
//! # Lives
//!
//! Permits are refunded to the life of the key that was charged. A key may be forgotten, and asked
//! again at the same reading, so that its word is the one that was seen. A swap would not notice
//! the other life, so a refund is a claim that names the life, also of one key. What is charged
//! counts from now on, in whatever life the key is: it takes no more than a swap, and the key gets
//! a place if it has none.

use super::arena::Arena;
use super::cell::{Found, Key, Word};
use super::claims::Part;
use super::code::{Numbers, with_algorithm};
use super::places::Taken;
use super::plan::Plan;
use super::request::{Algorithm, Seen};
use super::root::Guard;
use super::shard::{Context, Full, Seat, Shared, back_off, part};
use super::table::{Refundable, Table};
use crate::caps::MAX_DIMENSIONS;
use crate::clock::Clock;

/// A word with a settled charge, which is so as soon as it is swapped.
struct Settled<'a> {
    key: Key,
    arena: Guard<'a, Arena>,
    index: usize,
    old: Word,
    new: Word,
    /// The life of a refund.
    life: Option<u64>,
    /// The permits that are charged then.
    permits: u32,
    /// The place of a key that gets its first permits.
    taken: Option<Taken<'a>>,
}

impl Settled<'_> {
    fn part(&self, shared: &Shared) -> Part<'_> {
        let shard = self.key.shard(shared.shards.len().ilog2());
        Part { life: self.life, ..part(shard, &self.arena, self.index, self.old, self.new) }
    }
}

/// Why a word has no settled charge.
enum Unsettled {
    /// There is nothing to change, or nothing of the charge can be refunded.
    Nothing,
    /// Another thread has changed the word.
    Lost,
    /// There is no place for the key.
    Full,
}

/// Not by `dyn Algorithm`: a program that settles nothing has no code for it.
impl Plan {
    #[inline(never)]
    fn refund(&self, seen: Seen<'_>, cost: u32, kept: u32, mark: u128) -> Option<(Word, u32)> {
        with_algorithm!(&self.numbers, algorithm => Algorithm::refund(algorithm, seen, cost, kept, mark))
    }

    #[inline(never)]
    fn owe(&self, seen: Seen<'_>, cost: u32) -> Word {
        with_algorithm!(&self.numbers, algorithm => Algorithm::owe(algorithm, seen, cost))
    }
}

impl<'a> Context<'a> {
    /// The word of a key in which a charge of it is one of `actual` permits.
    #[inline(always)]
    fn settled(self, charge: &Refundable, actual: u32) -> Result<Settled<'a>, Unsettled> {
        let &Refundable { key, cost, charged } = charge;
        let mut taken = None;
        if actual == cost {
            return Err(Unsettled::Nothing);
        }
        let seat = match self.open_seat(key) {
            Some(seat) => seat,
            // It has no permits to give back, and needs no place for that.
            None if actual < cost && self.is_vacant(key) => return Err(Unsettled::Nothing),
            None => self.seat(key, &mut taken).map_err(|Full| Unsettled::Full)?,
        };
        let (plan, mut life) = (&seat.version(key).plan, None);
        let (new, permits) = match (actual.checked_sub(cost), seat.vacant_until) {
            (Some(more), None) => (plan.owe(seat.seen(), more), actual),
            (Some(more), Some(not_before)) => (plan.owe(plan.first(seat.seen(), not_before), more), actual),
            (None, Some(_)) => return Err(Unsettled::Nothing),
            (None, None) => {
                if seat.cell().hint.life() != charged.life {
                    return Err(Unsettled::Nothing);
                }
                life = Some(charged.life);
                match plan.refund(seat.seen(), cost, actual, charged.mark) {
                    Some((_, 0)) => return Err(Unsettled::Nothing),
                    Some((new, refunded)) => (new, cost - refunded),
                    None => return Err(Unsettled::Lost),
                }
            }
        };
        let taken = taken.filter(|_| seat.vacant_until.is_some());
        let Seat { arena, index, word: old, .. } = seat;
        Ok(Settled { key, arena, index, old, new, life, permits, taken })
    }

    /// The short way: charges more to a key with permits, by one attempt. Returns whether it did.
    fn owe(self, key: Key, more: u32) -> bool {
        let root = self.shard.root();
        let Some(cell) = root.known(key) else { return false };
        let word = cell.word.load();
        if !word.is_open() {
            return false;
        }
        let seen = Seen { cell: root.cell_ref(cell), word, now: self.now() };
        let is_swapped = cell.word.swap(word, root.plans.of(key).plan.owe(seen, more));
        self.keep_up(&root);
        is_swapped
    }

    /// The cell of a key, with its word: if it is in the root, and its word is open.
    #[inline(always)]
    fn open_seat(self, key: Key) -> Option<Seat<'a>> {
        let root = self.shard.root();
        let Found::Cell(index, cell) = root.find(key) else { return None };
        let word = cell.word.load();
        word.is_open().then(|| Seat { arena: root, index, word, vacant_until: None, now: self.now() })
    }
}

impl Shared {
    /// Settles the charges, of a key each: all or none. Returns the fewest permits that are charged
    /// to one of the keys then. If a key finds no place, it is an error, or the key is left out.
    pub(super) fn settle(
        &self,
        charges: &[Refundable],
        actual: u32,
        leaves_out: bool,
        clock: &dyn Clock,
    ) -> Result<Option<u32>, Full> {
        let bits = self.shards.len().ilog2();
        let with = |key: Key| Context { shard: &self.shards[key.shard(bits)], shared: self, clock };
        let mut lost = 0;
        'attempt: loop {
            let mut all: [Option<Settled<'_>>; MAX_DIMENSIONS] = [const { None }; MAX_DIMENSIONS];
            let mut fewest = None;
            for (place, charge) in all.iter_mut().zip(charges) {
                let permits = match with(charge.key).settled(charge, actual) {
                    Ok(settled) => place.insert(settled).permits,
                    Err(Unsettled::Nothing) => charge.cost,
                    Err(Unsettled::Full) if leaves_out => charge.cost,
                    Err(Unsettled::Full) => return Err(Full),
                    Err(Unsettled::Lost) => {
                        back_off(&mut lost);
                        continue 'attempt;
                    }
                };
                fewest = Some(fewest.map_or(permits, |fewest: u32| fewest.min(permits)));
            }
            let is_swapped = self.swap(&all);
            for settled in all.iter_mut().flatten() {
                if is_swapped {
                    settled.taken.take().into_iter().for_each(Taken::keep);
                }
                // It may have taken a ring.
                with(settled.key).keep_up(&settled.arena);
            }
            if is_swapped {
                return Ok(fewest);
            }
            // A word or a life has changed. The next round sees which.
            back_off(&mut lost);
        }
    }

    /// Swaps all words, or none. Returns whether it did.
    fn swap(&self, all: &[Option<Settled<'_>>]) -> bool {
        let mut settled = all.iter().flatten();
        let Some(first) = settled.next() else { return true };
        if first.life.is_none() && settled.next().is_none() {
            return first.old == first.new || first.arena.cell(first.index).word.swap(first.old, first.new);
        }
        let (mut parts, mut count) = ([first.part(self); MAX_DIMENSIONS], 0);
        for (part, settled) in parts.iter_mut().zip(all.iter().flatten()) {
            *part = settled.part(self);
            count += 1;
        }
        self.claims.claim(self, &mut parts[..count])
    }
}

impl Table {
    /// Settles the charges of a request, of a key each: it costs `actual` permits. All keys change
    /// at once. Returns the fewest permits that are charged to one of them then, if there are any.
    ///
    /// A key whose permits have expired may find no place at the key cap. It is charged nothing
    /// then.
    pub(crate) fn settle(&self, charges: &[Refundable], actual: u32, clock: &dyn Clock) -> Option<u32> {
        if let [Refundable { key, cost, .. }] = *charges {
            if actual > cost && self.with(key, clock).owe(key, actual - cost) {
                return Some(actual);
            }
        }
        let mut leaves_out = false;
        loop {
            match self.shared.settle(charges, actual, leaves_out, clock) {
                Ok(fewest) => return fewest,
                Err(Full) => leaves_out = self.make_room(1, clock).is_err(),
            }
        }
    }
}
