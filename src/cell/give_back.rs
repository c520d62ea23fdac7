//! Permits that are given back, and are at once there for others.
//!
//! # A log
//! The ring is replaced by one without the stamps that are given back (as growth does, see the essay on cells). Which they are
//! may not be known to the nanosecond: a claim that stalls is published by somebody else, whose clock may show less. So the claimant
//! reads what was published or, if that is gone by then, notes a *mark* that it is no earlier than. What is taken out are **the oldest
//! stamps that are no earlier than the mark**. They are no later than its own, so what is left is live for at least as long as it would
//! be; and there are enough of them for every claim that has not been given back, because each has its own among them. A mark that was too
//! late would have neither: of two permits the one that expires later would be taken out, or none.
//!
//! That holds as long as the claim's own stamp is in the ring. A stamp leaves a ring only once it has expired: a claim is made in
//! its place, or a new ring leaves it out. A clock that is behind the clock that did so must not take another stamp for it.
//!
//! - The newest stamp of a claim in place says how late it was, unless the ring was replaced since, or stamps lie ahead of it.
//! - A replacement raises the *horizon* to the time by which it leaves stamps out, before the ring changes (see
//!   [`offer`](Cells::offer)). That time is no earlier than any stamp claimed in the old ring.
//!
//! So permits come back only if the mark is live by the clock, by the newest stamp and by the horizon. On a clock that never goes
//! back the horizon is never later than the reading, and this denies nothing. A clock that is set back may find that nothing comes
//! back until it has caught up: the permits then leave their window as if they had been used.
//!
//! # An account
//! What has been used becomes less, which no claim does, so the head must be told from what it was before: an account that is given
//! something back goes two eras on. The parity stays, so the anchor that was published stays the anchor, and nothing has to be
//! published. The time at which an account opened never returns in a key's life (see the essay on accounts), so it says whether the
//! account that was charged is still the one that runs; and so does the one to which an account advanced, once. After a second advance
//! an account that opened in between could be at the same time, so nothing is given back.

use super::books::{Books, Seen};
use super::log::View;
use super::memory::Cell;
use super::plan::Limits;
use super::words::{Head, State, time_of};
use super::{Cells, Charged, Rules, Seat};
use crate::clock::Clock;
use crate::sync::Ordering;

impl Charged {
    pub(super) fn nothing(head: Head) -> Self {
        Self { head, mark: 0 }
    }
}

impl Cells {
    /// Gives back up to `cost` permits that were charged to a cell, and says how many. What no longer counts can't be given back.
    /// `None` when the cell may no longer decide for the key.
    pub(crate) fn give_back(&self, seat: Seat<'_>, charged: Charged, cost: u32, clock: &impl Clock) -> Option<u32> {
        let Seat { mut head, cell, .. } = seat;
        if head.life() != charged.head.life() || charged.mark == 0 {
            return Some(0);
        }
        loop {
            let given = match self.rules_at(seat) {
                Rules::Log(limits) => self.give_back_stamps(limits, cell, head, charged.mark, cost, clock),
                Rules::Account(books) => self.give_back_used(books, cell, head, charged, cost, clock),
                Rules::Steps(stepped) => self.give_back_steps(stepped, cell, head, charged.mark, cost, clock),
            };
            if given.is_some() {
                return given;
            }
            let now = cell.head();
            if !head.goes_on_at(now) {
                return None;
            }
            head = now;
        }
    }

    /// The earliest stamp that a claim of `needed` slots at this head can get, whichever thread publishes it: see
    /// [`settle`](Self::settle). Read before the claim.
    pub(super) fn earliest_stamp(
        &self,
        limits: &Limits,
        cell: &Cell,
        head: Head,
        view: &View<'_>,
        needed: usize,
    ) -> u64 {
        let loosest = self.revisions_of(cell).loosest();
        let loosest = loosest.as_ref().unwrap_or(limits);
        let last = view.ring.load(head.pos() + needed - 1).time();
        let earliest = loosest.earliest(view.ring, head.pos(), needed).max(loosest.end_of(last));
        // The claimant may publish its first slots itself, at its own time.
        view.floor.max(earliest).max(view.horizon.min(view.time))
    }

    /// What has to be known of permits that were claimed in a log's ring at that head, and got a stamp no earlier than `floor`.
    ///
    /// Whoever has published them may have done so by a clock that lags behind the claimant's, so the stamp is read. If others have
    /// replaced the ring by now, or come round in it, the floor has to do.
    pub(super) fn charged_in_ring(&self, cell: &Cell, head: Head, floor: u64) -> Charged {
        // Acquired: if the head has moved on, somebody else may have published them.
        self.head_once_let_go(cell);
        let reference = cell.reference();
        let ring = self.ring(cell, reference);
        let stamp = ring.load(head.pos()).time();
        // While a cell grows its head stands still, but the ring may be given away.
        let is_there = ring.is_held_since(head, self.head_once_let_go(cell))
            && reference.epoch() == head.epoch()
            && cell.refers_to(reference);
        Charged { head, mark: if is_there { stamp } else { floor } }
    }

    /// One attempt to take stamps out of a log; `None` if it came to nothing.
    fn give_back_stamps(
        &self,
        limits: &Limits,
        cell: &Cell,
        head: Head,
        mark: u64,
        cost: u32,
        clock: &impl Clock,
    ) -> Option<u32> {
        let view = self.log_view(limits, cell, head, clock)?;
        let (ring, now) = (view.ring, view.live_at(head));
        let live = ring.live_at(head, limits.live_from(now));
        let stamp = |nth: usize| ring.load(head.pos() + ring.len() - live + nth).time();
        let count = cost as usize;
        let first = (0..live).find(|&nth| stamp(nth) >= mark).unwrap_or(live);
        // Read after the ring. What was left out of it had expired by then, whatever this clock shows.
        let latest = now.max(self.horizon.load(Ordering::Acquire));
        if mark < limits.live_from(latest) || live - first < count {
            return view.stands(cell, head).then_some(0);
        }
        let growing = head.with_state(head.state().growing());
        cell.begin_resize(head, growing)?;
        self.replace_by(limits, cell, growing, &view, live, first..first + count).then_some(cost)
    }

    /// Offers a ring with the `live` newest stamps but those without which it is, counted from the oldest. Says whether it was taken.
    fn replace_by(
        &self,
        limits: &Limits,
        cell: &Cell,
        growing: Head,
        view: &View<'_>,
        live: usize,
        without: core::ops::Range<usize>,
    ) -> bool {
        let (ring, now) = (view.ring, view.live_at(growing));
        let next = growing.on_new_ring();
        let left = live - without.len();
        let (offer, new) = self.new_ring(next.epoch(), left.max(2), next.lap());
        let Some(later) = self.horizon_for(view, now) else {
            self.drop_unused_ring(offer);
            return false;
        };
        let stamp = |nth: usize| ring.load(growing.pos() + ring.len() - live + nth).time();
        let kept = (0..without.start).chain(without.end..live).map(|nth| limits.put_off(stamp(nth), now, later));
        new.write_last(left, kept, next.lap());
        self.offer(cell, growing, view.reference, now, offer)
    }

    /// The time that stamps of a new ring are put off to, which is made by a clock that showed `now`. `None` if the horizon has moved
    /// beyond it since the clock was read: then the reading may be long out of date. Read after the ring has been taken: see
    /// `larger_ring`.
    pub(super) fn horizon_for(&self, view: &View<'_>, now: u64) -> Option<u64> {
        let horizon = self.horizon.load(Ordering::Acquire);
        (horizon <= now.max(view.horizon)).then(|| now.max(horizon))
    }

    /// Ends what somebody else has begun: replaces a growing ring by one with the same stamps.
    #[cold]
    pub(super) fn end_growth(&self, limits: &Limits, cell: &Cell, growing: Head, view: &View<'_>) {
        let live = view.ring.live_at(growing, limits.live_from(view.live_at(growing)));
        self.replace_by(limits, cell, growing, view, live, 0..0);
    }

    /// One attempt to make less of what an account has used; `None` if it came to nothing.
    fn give_back_used(
        &self,
        books: Books<'_>,
        cell: &Cell,
        head: Head,
        charged: Charged,
        cost: u32,
        clock: &impl Clock,
    ) -> Option<u32> {
        if head.state() == State::Held {
            self.help(head);
            return None;
        }
        let slot = cell.slot();
        // Read after the head.
        let now = time_of(clock.now());
        let running = match books.seen(head, slot) {
            Seen::Running(running) => running,
            Seen::Over(_) => return (cell.stands(head)).then_some(0),
            Seen::Unpublished => {
                books.settle(cell, head, slot, now);
                return None;
            }
        };
        let given = books
            .since(head, slot, &running, charged)
            .and_then(|since| books.rule().give_back(running.account, now, cost, since))
            .filter(|given| given.permits > 0);
        match given {
            None => (cell.stands(head)).then_some(0),
            Some(given) => cell.claim(head, books.given_back(head, given.used)).map(|()| given.permits),
        }
    }
}

#[cfg(test)]
impl Cells {
    /// Begins to replace the ring of a cell, and stops.
    pub(crate) fn replace_and_stall(&self, seat: Seat<'_>) {
        let growing = seat.head.with_state(seat.head.state().growing());
        assert!(seat.cell.begin_resize(seat.head, growing).is_some());
    }
}
