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

use super::cell::{Found, Key, Word};
use super::code::{Numbers, with_algorithm};
use super::plan::Plan;
use super::request::{Algorithm, Seen};
use super::shard::{Change, Context, Full, Seat, back_off};
use super::table::{Refundable, Table};
use crate::caps::MAX_DIMENSIONS;
use crate::clock::Clock;

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
    /// Writes the `change` by which a charge is one of `actual` permits, unless there is nothing to
    /// change. Returns the permits that are charged to the key then; `None` if another thread has changed
    /// its word.
    #[inline(always)]
    fn settle(self, charge: &Refundable, actual: u32, change: &mut Option<Change<'a>>) -> Result<Option<u32>, Full> {
        let (&Refundable { key, cost, charged }, mut taken) = (charge, None);
        if actual == cost {
            return Ok(Some(cost));
        }
        let seat = match self.seat_in_root(key) {
            Some(seat) => seat,
            // It has no permits to give back, and needs no place for that.
            None if actual < cost && self.is_vacant(key) => return Ok(Some(cost)),
            // A key that moves also gets help with the rebuild.
            None => self.seat(key, &mut taken)?,
        };
        let (plan, seen) = (&seat.version(key).plan, seat.seen());
        let seen = seat.vacant_until.map_or(seen, |not_before| plan.first(seen, not_before));
        let (new, permits, life) = match actual.checked_sub(cost) {
            Some(more) => (plan.owe(seen, more), actual, None),
            None if seat.vacant_until.is_some() || seen.cell.hint.life() != charged.life => return Ok(Some(cost)),
            None => match plan.refund(seen, cost, actual, charged.mark) {
                Some((_, 0)) => return Ok(Some(cost)),
                Some((new, refunded)) => (new, cost - refunded, Some(charged.life)),
                None => return Ok(None),
            },
        };
        *change = Some(seat.change(key, new, life, taken));
        Ok(Some(permits))
    }

    /// The short way: charges more to a key with permits, by one attempt. Returns whether it did.
    fn owe(self, key: Key, more: u32) -> bool {
        let root = self.shard.root();
        let Some((cell, word)) = root.open(key) else { return false };
        let seen = Seen { cell: root.cell_ref(cell), word, now: self.now() };
        let is_swapped = cell.word.swap(word, root.version(key).plan.owe(seen, more));
        self.keep_up(&root);
        is_swapped
    }

    /// The cell of a key, with its word: if it is in the root, and its word is open.
    #[inline(always)]
    fn seat_in_root(self, key: Key) -> Option<Seat<'a>> {
        let root = self.shard.root();
        let Found::Cell(index, cell) = root.find(key) else { return None };
        let word = cell.word.load();
        word.is_open().then(|| Seat { arena: root, index, word, vacant_until: None, now: self.now() })
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
        let (mut lost, mut leaves_out) = (0, false);
        loop {
            match self.try_settle(charges, actual, leaves_out, clock) {
                Ok(Some(fewest)) => return (!charges.is_empty()).then_some(fewest),
                Ok(None) => back_off(&mut lost),
                Err(Full) => leaves_out = self.make_room(1, clock).is_err(),
            }
        }
    }

    /// One attempt. `None` if another thread has changed a word or a life: the next one sees which. If a
    /// key finds no place, it is an error, or the key is left out.
    fn try_settle(
        &self,
        charges: &[Refundable],
        actual: u32,
        leaves_out: bool,
        clock: &dyn Clock,
    ) -> Result<Option<u32>, Full> {
        let mut changes = [const { None }; MAX_DIMENSIONS];
        let (changes, mut fewest) = (&mut changes[..charges.len()], u32::MAX);
        for (change, charge) in changes.iter_mut().zip(charges) {
            fewest = fewest.min(match self.with(charge.key, clock).settle(charge, actual, change) {
                Ok(Some(permits)) => permits,
                Ok(None) => return Ok(None),
                Err(Full) if leaves_out => charge.cost,
                Err(Full) => return Err(Full),
            });
        }
        let is_swapped = self.commit(changes);
        for change in changes.iter().flatten() {
            // It may have taken a ring.
            self.with(change.key, clock).keep_up(&change.arena);
        }
        Ok(is_swapped.then_some(fewest))
    }
}
