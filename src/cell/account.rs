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
//! says what had been used. So an account that is over is *closed* first, in an era of its own: the head keeps what was used, and
//! that moment, which follows from it, is published in place of the anchor. Then the next era opens, no earlier than that.
//!
//! # Why a late publication can't hurt
//! It expects what the second word held in the era before its own: when an account opened or to where it advanced, since when
//! one was over, or the mark of a cell that was never used. None of these returns in a cell:
//!
//! 1. In one key's life they rise. An account advances to, or is over at, a later time than it opened, because something was
//!    used of it; the next opens no earlier than that. Being over has a bit of its own.
//! 2. Before a cell is given away the late era has been published, and the horizon is raised to it or past it. The next key's
//!    account opens no earlier (see the essay on cells), and so later than what is expected.
//! 3. For that the word holds the time at which an account *opened*, though its anchor be earlier where windows stand still. It is
//!    rounded down when it is read: rounded before, it could be the very time at which the last key's account opened.
//! 4. A reference to a ring, of a next key with a log, has the bit that being over has. But a time is at least 2^60, and would be
//!    a reference to a block past any that there is.
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
//! The loom tests in `cell/account_loom_tests.rs` exercise them.

use super::plan::Metered;
use super::words::{Head, Slot, State, time_of};
use super::{Ask, Attempt, Cells, Charged, HEAD, RING, RingRef, Seat};
use crate::clock::Clock;
use crate::decision::{Admission, Decision, Denial, DenialReason, Status};
use crate::rule::{Account, Rule, Step};
use crate::sync::{AtomicU64, Ordering};

/// How an era came about, and so what its anchor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// The account opens: at the time of the claim, or later.
    Opens = 0,
    /// It goes on under an anchor that follows from the last.
    Advances = 1,
    /// It was over, and this says since when.
    Closes = 2,
}

/// What the lower bits of a head say in a cell with an account. No more bits than `used` needs; the rest tell eras apart.
///
/// ```text
/// { era: 50 - used, how: 2, used: as many as the rule needs }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    used_bits: u32,
}

impl Layout {
    pub(super) fn of(rule: &Rule) -> Self {
        Self { used_bits: rule.used_below().next_power_of_two().ilog2() }
    }

    #[inline]
    pub(super) fn used(self, head: Head) -> u64 {
        head.below_life() & ((1 << self.used_bits) - 1)
    }

    #[inline]
    fn how(self, head: Head) -> How {
        match (head.below_life() >> self.used_bits) & 3 {
            0 => How::Opens,
            1 => How::Advances,
            _ => How::Closes,
        }
    }

    #[inline]
    fn era(self, head: Head) -> u64 {
        head.below_life() >> (self.used_bits + 2)
    }

    /// The head of the next era.
    pub(super) fn next(self, head: Head, how: u64, used: u64) -> Head {
        head.with_below_life((((self.era(head) + 1) << 2 | how) << self.used_bits) | used)
    }

    /// The head of the same era after more has been used.
    #[inline]
    fn charged(self, head: Head, used: u64) -> Head {
        head.with_below_life((head.below_life() >> self.used_bits << self.used_bits) | used)
    }

    /// The head after something has been given back: two eras on, which keeps the parity and so the anchor.
    pub(super) fn given_back(self, head: Head, used: u64) -> Head {
        let how = self.how(head) as u64;
        head.with_below_life((((self.era(head) + 2) << 2 | how) << self.used_bits) | used)
    }

    /// How many eras later the other head is, of the same life.
    pub(super) fn eras_between(self, earlier: Head, later: Head) -> u64 {
        self.era(later).wrapping_sub(self.era(earlier)) & ((1 << (50 - self.used_bits)) - 1)
    }

    /// Whether the era came about by an advance.
    pub(super) fn advances(self, head: Head) -> bool {
        self.how(head) == How::Advances
    }

    /// The head and the slot of a cell whose first account is about to open.
    pub(super) fn opening(self, free: Head, used: u64, mark: u64) -> (Head, Slot) {
        let head = self.next(free, How::Opens as u64, used);
        (head, Slot::ancient(mark, self.era(head)))
    }

    /// The head and the slot of a cell with an account that has been over since before time began.
    pub(super) fn closed(self, free: Head, mark: u64) -> (Head, Slot) {
        let head = self.next(free, How::Closes as u64, 0);
        (head, Slot::ancient(mark, self.era(head) + 1).joined_on())
    }
}

/// What a cell says about its key's account.
#[derive(Clone, Copy)]
pub(super) enum Seen {
    Running(Account),
    /// Over since this moment: the next request opens another.
    Over(u64),
    /// The anchor of the era has not been published.
    Unpublished,
}

impl Metered {
    /// The account of a head and of the slot that was published in its era or, of an era that has yet to be published, the one
    /// before. The slot says when it opened; where windows stand still, the anchor is the start of the window that this lies in.
    #[inline]
    fn account(&self, head: Head, slot: Slot) -> Account {
        Account { anchor: self.rule.anchor_at(slot.time()), used: self.layout.used(head) }
    }

    #[inline]
    pub(super) fn seen(&self, head: Head, slot: Slot) -> Seen {
        if !slot.is_of_lap(self.layout.era(head)) {
            Seen::Unpublished
        } else if slot.joined() {
            Seen::Over(slot.time())
        } else {
            Seen::Running(self.account(head, slot))
        }
    }

    /// When the account is as that of a key never seen; `None` while its anchor is not published.
    pub(super) fn over_at(&self, head: Head, slot: Slot) -> Option<u64> {
        match self.seen(head, slot) {
            Seen::Running(account) => Some(self.rule.over_at(account)),
            // Over is as good as new, unless the rule says that nothing ever is.
            Seen::Over(since) if self.rule.is_ever_over() => Some(since),
            Seen::Over(_) => Some(u64::MAX),
            Seen::Unpublished => None,
        }
    }

    /// Publishes the anchor of the era that was claimed last; proposes `time`, or as little later as it takes, where an account
    /// opens. Does nothing if the head is no longer `head`. Gives what it published itself.
    pub(super) fn settle(&self, words: &[AtomicU64], head: Head, slot: Slot, time: u64) -> Option<Slot> {
        let era = self.layout.era(head);
        if slot.is_of_lap(era) {
            return None;
        }
        let anchor = match self.layout.how(head) {
            How::Opens => Slot::new(time.max(slot.time()), false, era),
            How::Advances => Slot::new(self.rule.advanced(self.account(head, slot).anchor), false, era),
            // Later than it opened, even if all of it was given back: a time must not return.
            How::Closes => {
                let over = self.rule.all_free_at(self.account(head, slot)).max(slot.time() + 1);
                Slot::new(over, true, era)
            }
        };
        // What was read is of this head only if the head still stands.
        if words[HEAD].load(Ordering::Relaxed) != head.0 {
            return None;
        }
        // Failing is as good: then somebody else has published it.
        let swap = words[RING].compare_exchange(slot.0, anchor.0, Ordering::Release, Ordering::Relaxed);
        swap.is_ok().then_some(anchor)
    }

    /// Claims the next era and publishes its anchor. `None` when the head has moved.
    fn begin(&self, words: &[AtomicU64], head: Head, slot: Slot, how: How, used: u64, time: u64) -> Option<Charged> {
        let next = self.layout.next(head, how as u64, used);
        claim(words, head, next)?;
        let published = self.settle(words, next, slot, time);
        Some(self.charged(words, next, published))
    }

    /// What was charged by opening an account or going on with it, and what of that was published, if that was not by somebody else.
    pub(super) fn charged(&self, words: &[AtomicU64], next: Head, published: Option<Slot>) -> Charged {
        let published = published.or_else(|| {
            // What is there is of this era if the head still is.
            let published = Slot(words[RING].load(Ordering::Acquire));
            let now = Head(words[HEAD].load(Ordering::Acquire));
            let is_of_it = now.life() == next.life() && self.layout.era(now) == self.layout.era(next);
            (now.state() == State::Open && is_of_it && published.is_of_lap(self.layout.era(next))).then_some(published)
        });
        Charged { head: next, mark: published.map_or(0, Slot::time) }
    }
}

/// What a request comes to at an account, short of claiming it.
pub(super) enum Ready {
    /// It fits. This is the head that follows; and the mark to give it back by, where that is known before.
    Claim(Head, Admission, u64),
    /// It does not, or something had to be published or closed first.
    Again,
}

#[inline]
pub(super) fn claim(words: &[AtomicU64], head: Head, next: Head) -> Option<()> {
    words[HEAD].compare_exchange(head.0, next.0, Ordering::AcqRel, Ordering::Relaxed).ok().map(drop)
}

fn denied(wait_ns: u64) -> Decision {
    Decision::Denied(Denial::new(wait_ns, DenialReason::Quota, 0))
}

impl Cells {
    /// Decides if the running account says enough.
    #[inline]
    pub(super) fn account_at_once(
        &self,
        metered: &Metered,
        seat: Seat<'_>,
        cost: u32,
        reading: u64,
    ) -> Option<Decision> {
        let Seat { head, words, .. } = seat;
        let slot = Slot(words[RING].load(Ordering::Acquire));
        let Seen::Running(account) = metered.seen(head, slot) else { return None };
        if head.state() != State::Open {
            return None;
        }
        let time = time_of(reading);
        match metered.rule.step(account, time, cost) {
            Step::Charge { used } => {
                claim(words, head, metered.layout.charged(head, used))?;
                Some(Decision::Admitted(Admission::delayed(metered.rule.delay_ns(account, time))))
            }
            Step::Deny { wait_ns } => {
                let stands = words[HEAD].load(Ordering::Relaxed) == head.0;
                stands.then(|| denied(wait_ns))
            }
            Step::Advance { .. } | Step::Open { .. } => None,
        }
    }

    /// Works out what a request of at least one permit comes to, and closes an account that is over so that the next can open.
    pub(super) fn account_ready(
        &self,
        metered: &Metered,
        words: &[AtomicU64],
        head: Head,
        reference: RingRef,
        cost: u32,
        time: u64,
    ) -> Ready {
        let slot = Slot(reference.0);
        let next = |how: How, used: u64| metered.layout.next(head, how as u64, used);
        let (account, step) = match metered.seen(head, slot) {
            Seen::Running(account) => (account, metered.rule.step(account, time, cost)),
            // Nothing has been used, whenever that was.
            Seen::Over(since) => (Account { anchor: since, used: 0 }, Step::Open { used: cost.into() }),
            Seen::Unpublished => {
                self.settle(words, head, reference, time);
                return Ready::Again;
            }
        };
        let (next, mark) = match step {
            Step::Deny { .. } => return Ready::Again,
            Step::Open { .. } if !slot.joined() => {
                let closed = next(How::Closes, account.used);
                if claim(words, head, closed).is_some() {
                    self.settle(words, closed, reference, time);
                }
                return Ready::Again;
            }
            Step::Charge { used } => (metered.layout.charged(head, used), slot.time()),
            Step::Advance { used } => (next(How::Advances, used), metered.rule.advanced(account.anchor)),
            Step::Open { used } => (next(How::Opens, used), 0),
        };
        Ready::Claim(next, Admission::delayed(metered.rule.delay_ns(account, time)), mark)
    }

    /// One attempt at a decision.
    pub(super) fn account_attempt(
        &self,
        metered: &Metered,
        ask: Ask,
        words: &[AtomicU64],
        head: Head,
        cost: u32,
        clock: &impl Clock,
    ) -> Attempt {
        let lost = || Attempt::Lost(Head(words[HEAD].load(Ordering::Acquire)));
        if head.state() == State::Held {
            self.help(head);
            return lost();
        }
        let slot = Slot(words[RING].load(Ordering::Acquire));
        // Read after the head, and anew at each attempt.
        let time = time_of(clock.now());
        let (account, step) = match metered.seen(head, slot) {
            Seen::Running(account) if cost == 0 => (account, Step::Charge { used: account.used }),
            Seen::Running(account) => (account, metered.rule.step(account, time, cost)),
            // Nothing has been used, whenever that was.
            Seen::Over(since) => (Account { anchor: since, used: 0 }, Step::Open { used: cost.into() }),
            Seen::Unpublished => {
                self.settle(words, head, RingRef(slot.0), time);
                return lost();
            }
        };
        let (step, delay) = match ask {
            Ask::Reserve { within } if !slot.joined() => metered.rule.reserve(account, time, cost, within),
            _ => (step, metered.rule.delay_ns(account, time)),
        };
        let delay = Admission::delayed(delay);
        let told = |decision, account, charged| {
            Attempt::Decided(Status { decision, ..metered.status(account, time) }, charged)
        };
        if ask == Ask::Peek || matches!(step, Step::Deny { .. }) {
            let decision = match step {
                Step::Deny { wait_ns } => denied(wait_ns),
                _ => Decision::Admitted(delay),
            };
            let stands = words[HEAD].load(Ordering::Relaxed) == head.0;
            return if stands { told(decision, account, Charged::nothing(head)) } else { lost() };
        }
        let is_running = !slot.joined();
        let claimed = match step {
            Step::Charge { used } => {
                let charged = metered.layout.charged(head, used);
                let mark = slot.time();
                claim(words, head, charged).map(|()| (Account { used, ..account }, Charged { head: charged, mark }))
            }
            Step::Advance { used } => {
                let anchor = metered.rule.advanced(account.anchor);
                let begun = metered.begin(words, head, slot, How::Advances, used, time);
                begun.map(|charged| (Account { anchor, used }, Charged { mark: anchor, ..charged }))
            }
            Step::Open { .. } if is_running => {
                // Then again, with what is over closed.
                let _ = metered.begin(words, head, slot, How::Closes, account.used, time);
                None
            }
            Step::Open { used } => {
                let anchor = metered.rule.anchor_at(time.max(slot.time()));
                let begun = metered.begin(words, head, slot, How::Opens, used, time);
                begun.map(|charged| (Account { anchor, used }, charged))
            }
            Step::Deny { .. } => None,
        };
        claimed.map_or_else(lost, |(account, charged)| told(Decision::Admitted(delay), account, charged))
    }
}

/// What an account is, written down.
#[cfg(feature = "serde")]
pub(super) enum Kept {
    /// No different from that of a key never seen.
    Nothing,
    Running {
        opened: u64,
        used: u64,
    },
    Unpublished,
}

#[cfg(feature = "serde")]
impl Metered {
    /// What of an account still matters at `now`. One that is over and does is as if nothing had been used since.
    pub(super) fn kept(&self, head: Head, slot: Slot, now: u64) -> Kept {
        match self.over_at(head, slot) {
            None => Kept::Unpublished,
            Some(over) if over <= now => Kept::Nothing,
            Some(_) => {
                let used = if slot.joined() { 0 } else { self.layout.used(head) };
                Kept::Running { opened: slot.time(), used }
            }
        }
    }

    /// The head and the slot of a cell with an account that opened then.
    pub(super) fn reopened(&self, free: Head, opened: u64, used: u64) -> (Head, Slot) {
        let how = if used == 0 { How::Closes } else { How::Opens };
        let head = self.layout.next(free, how as u64, used);
        (head, Slot::new(opened, used == 0, self.layout.era(head)))
    }
}
