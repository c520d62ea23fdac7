//! Cells whose permits are an account, by one of the algorithms beside the log: two words in place of a ring.
//!
//! The head counts what has been used in an *era*; the second word is the slot of a ring of one and holds the era's anchor.
//! A request that the running account admits changes the head alone. One that begins a new era claims it on the head and
//! then publishes the anchor, as a log's claim publishes its stamp; **whoever finds an era without an anchor publishes that
//! first** (`settle`). The rules are made for this: see [`Step`].
//!
//! # Why a helper's clock can't hurt
//! The anchor of an account that advances is the same whoever works it out. One that opens has an anchor no earlier than the
//! moment at which the account before it was over; but a helper whose clock lags can't know that moment once the head no longer
//! says what had been used. So the head goes on saying it until that moment has been taken into account, in one of two ways:
//!
//! - One permit *replaces* an account that is over. The head of the new era keeps what the last account had used; that this one has
//!   used one permit goes without saying. Whoever publishes the era finds the last account's anchor in the second word, and so when it
//!   was over, and proposes no earlier time. What follows, a charge or another era, can only be claimed once the anchor is
//!   published, and says again what has been used of it. By the way in which it is claimed nobody but who claims it has to work the
//!   moment out: the rule has answered that the account is over at its time.
//! - For several permits there is no room in the head. So the account is *closed* first, in an era of its own: the head keeps what was
//!   used, and that moment is published in place of the anchor. Then the next era opens, no earlier than that.
//!
//! A request that finds the running account over does either at once, by the reading that it has. That was taken after the head
//! was seen, the claim says that this head still stands, and of an account that is closed nothing can be charged: so nobody was
//! charged in between by a later reading. Who loses a claim goes the long way round (`account_attempt`), which closes.
//!
//! An account opens no earlier than its quota began, either. So of the quotas that a head may mean, one that began later than the
//! account opened is not it (`Books::written_by`).
//!
//! # Why a late publication can't hurt
//! It expects what the second word held in the era before its own: when an account opened or to where it advanced, since when
//! one was over, or the mark of a cell that was never used. None of these returns in a cell:
//!
//! 1. In one key's life they rise. An account advances to, or is over at, a later time than it opened, because something was
//!    used of it; the next opens no earlier than that. Being over has a bit of its own. Where everything was given back, an
//!    account is over as soon as it opened, and the next time is later by one. So at a reading that is not later it is not replaced:
//!    it goes on (`Books::goes_on`). One whose quota changes at the time at which it opened keeps its anchor, and nothing is published.
//! 2. Before a cell is given away the late era has been published, and the horizon is raised to it or past it. The next key's
//!    account opens no earlier (see the essay on cells), and so later than what is expected.
//! 3. For that the word holds the time at which an account *opened*, though its anchor be earlier where windows stand still. It is
//!    rounded down when it is read: rounded before, it could be the very time at which the last key's account opened.
//! 4. A reference to a ring, of a next key with a log, has the bit that being over has. But a time is at least 2^60, and would refer
//!    to page 64 of a pool or a later one. Those are only there once tens of thousands of rings of one size are in use, and then the very
//!    page, place, size and tag would have to be those of that nanosecond: see "Numbers that run out" in `DESIGN.md`.
//!
//! # Why a denial is explained
//! Nothing in an account says when it was charged last, so a reading from before the head was read may be from before that
//! charge: the request would be denied for what was used later, at a moment by which enough had flowed back. So **the clock is
//! read after the head**. If the head has moved on meanwhile, then by charges that leave less; or the account was over, and
//! there was no denial. To an admission it makes no difference: what fits by an earlier reading fits at the last charge.
//!
//! # Why the clock is read last
//! What has come back by a reading is set off against all that was ever charged. If somebody was charged between the reading and the
//! look at the head, for permits that came back meanwhile, then too little would seem to be left. A log has the newest stamp to tell it so;
//! an account has no such thing. So the clock is read after the head has been seen, and a head that has moved on takes another reading.
//!
//! # Orderings
//! As for a log: a claim acquires and releases the head; the anchor is released by who publishes it and acquired by who reads it,
//! so who sees the anchor of a later era also sees that the head has moved.
//!
//! The loom tests in `cell/account_loom_tests.rs` and `cell/account_over_loom_tests.rs` exercise them.

use super::books::{Books, Running, Seen};
use super::layout::How;
use super::memory::Cell;
use super::words::{Head, Slot, State, time_of};
use super::{Ask, Attempt, Cells, Charged, RingRef};
use crate::clock::Clock;
use crate::decision::{Admission, AtOnce, Decision, Denial, DenialReason, Status};
use crate::rule::{Account, Step};
use crate::sync::Ordering;

/// What a request comes to at an account, short of claiming it.
pub(super) enum Ready {
    /// It fits. This is the head that follows; and the mark to give it back by, where that is known before.
    Claim(Head, Admission, u64),
    /// It does not, or something had to be published or closed first.
    Again,
}

fn denied(wait_ns: u64) -> Decision {
    Decision::Denied(Denial::new(wait_ns, DenialReason::Quota, 0))
}

impl Cells {
    /// Decides on an open cell, if the running account says enough.
    #[inline(always)]
    pub(super) fn account_at_once(
        &self,
        books: Books<'_>,
        cell: &Cell,
        head: Head,
        cost: u32,
        reading: u64,
    ) -> Option<AtOnce> {
        let slot = cell.slot();
        let Seen::Running(Running { account, is_current: true, .. }) = books.seen(head, slot) else { return None };
        if cost > books.current.limit() {
            return None;
        }
        let time = time_of(reading);
        match books.rule().step(account, time, cost) {
            Step::Charge { used } => {
                cell.claim(head, books.layout().charged(head, used))?;
                Some(AtOnce::admitted(books.rule().delay_ns(account, time)))
            }
            Step::Deny { wait_ns } => {
                let stands = cell.stands(head);
                stands.then(|| AtOnce::denied(wait_ns, 0))
            }
            Step::Open { used } => {
                books.opens_again(cell, head, slot, account, used, time)?;
                Some(AtOnce::admitted(0))
            }
            Step::Advance { .. } => None,
        }
    }

    /// Works out what a request of at least one permit comes to, and closes an account that is over so that the next can open.
    pub(super) fn account_ready(
        &self,
        books: Books<'_>,
        cell: &Cell,
        head: Head,
        reference: RingRef,
        cost: u32,
        time: u64,
    ) -> Ready {
        let slot = Slot(reference.0);
        let fits =
            |next, account, mark| Ready::Claim(next, Admission::delayed(books.rule().delay_ns(account, time)), mark);
        match books.seen(head, slot) {
            Seen::Running(running) if !running.is_current => {
                books.renew(cell, head, slot, &running, time);
                Ready::Again
            }
            Seen::Running(running) => {
                let step = books.rule().step(running.account, time, cost);
                match Books::goes_on(slot, running.account, time, step) {
                    Step::Open { .. } => {
                        self.account_closes(books, cell, head, slot, time);
                        Ready::Again
                    }
                    step => match books.next(head, slot, &running, step) {
                        Some((next, mark)) => fits(next, running.account, mark),
                        None => Ready::Again,
                    },
                }
            }
            Seen::Over(since) if slot.joined() => {
                // Nothing has been used, whenever that was.
                let next = books.layout().next_by(head, books.number(), How::Opens, cost.into());
                fits(next, Account { anchor: since, used: 0 }, 0)
            }
            Seen::Over(_) => {
                self.account_closes(books, cell, head, slot, time);
                Ready::Again
            }
            Seen::Unpublished => {
                self.settle(cell, head, reference, time);
                Ready::Again
            }
        }
    }

    /// Closes an account that is over, so that the next can open; by the revision that it was written by, which says since when.
    fn account_closes(&self, books: Books<'_>, cell: &Cell, head: Head, slot: Slot, time: u64) {
        let closed = books.layout().next(head, How::Closes, books.layout().used(head));
        let _ = books.begin(cell, head, closed, slot, time);
    }

    /// One attempt at a decision.
    pub(super) fn account_attempt(
        &self,
        books: Books<'_>,
        ask: Ask,
        cell: &Cell,
        head: Head,
        cost: u32,
        clock: &impl Clock,
    ) -> Attempt {
        let lost = || Attempt::Lost(cell.head());
        if head.state() == State::Held {
            self.help(head);
            return lost();
        }
        let slot = cell.slot();
        // Read after the head, and anew at each attempt.
        let time = time_of(clock.now());
        let rule = books.rule();
        let (running, account) = match books.seen(head, slot) {
            // Once for each change; a denial writes nothing else.
            Seen::Running(running) if !running.is_current && ask != Ask::Peek => {
                books.renew(cell, head, slot, &running, time);
                return lost();
            }
            Seen::Running(running) => (Some(running), running.account),
            // Nothing has been used, whenever that was.
            Seen::Over(since) => (None, Account { anchor: since, used: 0 }),
            Seen::Unpublished => {
                self.settle(cell, head, RingRef(slot.0), time);
                return lost();
            }
        };
        let step = match running {
            _ if cost > books.current.limit() => Step::Deny { wait_ns: u64::MAX },
            Some(_) if cost == 0 => Step::Charge { used: account.used },
            Some(_) => rule.step(account, time, cost),
            None => Step::Open { used: cost.into() },
        };
        let (step, delay) = match ask {
            Ask::Reserve { within } if running.is_some() && cost <= books.current.limit() => {
                rule.reserve(account, time, cost, within)
            }
            _ => (step, rule.delay_ns(account, time)),
        };
        let step = if running.is_some() { Books::goes_on(slot, account, time, step) } else { step };
        let delay = Admission::delayed(delay);
        let told = |decision, account, charged| {
            Attempt::Decided(Status { decision, ..books.current.status(account, time) }, charged)
        };
        if ask == Ask::Peek || matches!(step, Step::Deny { .. }) {
            let decision = match step {
                Step::Deny { wait_ns } => denied(wait_ns),
                _ => Decision::Admitted(delay),
            };
            let stands = cell.stands(head);
            return if stands { told(decision, account, Charged::nothing(head)) } else { lost() };
        }
        let claimed = match (running.and_then(|running| books.next(head, slot, &running, step)), step) {
            (Some((next, anchor)), Step::Advance { used }) => {
                let begun = books.begin(cell, head, next, slot, time);
                begun.map(|charged| (Account { anchor, used }, Charged { mark: anchor, ..charged }))
            }
            (Some((next, mark)), Step::Charge { used }) => {
                cell.claim(head, next).map(|()| (Account { used, ..account }, Charged { head: next, mark }))
            }
            (_, Step::Open { used }) if slot.joined() => {
                // A key that has been given a cell and no permits: see `settle` of the cells.
                let time = if slot.is_ancient() { time.max(self.horizon.load(Ordering::Acquire)) } else { time };
                let anchor = rule.anchor_at(time.max(slot.time()));
                let next = books.layout().next_by(head, books.number(), How::Opens, used);
                let begun = books.begin(cell, head, next, slot, time);
                begun.map(|charged| (Account { anchor, used }, charged))
            }
            _ => {
                // Then again, with what is over closed.
                self.account_closes(books, cell, head, slot, time);
                None
            }
        };
        claimed.map_or_else(lost, |(account, charged)| told(Decision::Admitted(delay), account, charged))
    }
}
