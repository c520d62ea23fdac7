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
//! It expects the anchor of an earlier era, or the moment at which one was over. These only ever rise in one cell, also from
//! one of its keys to the next, because a new key's anchor is no earlier than the horizon (see the essay on cells); so
//! neither returns.
//!
//! # Why the clock is read last
//! What has come back by a reading is set off against all that was ever charged. If somebody was charged between the reading and the
//! look at the head, for permits that came back meanwhile, then too little would seem to be left. A log has the newest stamp to tell it so;
//! an account has no such thing. So the clock is read after the head has been seen, and a head that has moved on takes another reading.
//!
//! # Orderings
//! As for a log: a claim acquires and releases the head; the anchor is released by who publishes it and acquired by who reads it,
//! so who sees the anchor of a later era also sees that the head has moved.

use super::plan::Metered;
use super::words::{Head, Slot, State, time_of};
use super::{Ask, Attempt, Cells, HEAD, RING, RingRef, Seat};
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
/// { era: 51 - used, how: 2, used: as many as the rule needs }
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
    fn used(self, head: Head) -> u64 {
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

    /// The slot of a cell that was never used, as if published in the era before that of `head`.
    pub(super) fn unused(self, head: Head, mark: u64) -> Slot {
        Slot::ancient(mark, self.era(head))
    }
}

/// What a cell says about its key's account.
#[derive(Clone, Copy)]
enum Seen {
    Running(Account),
    /// Over since this moment: the next request opens another.
    Over(u64),
    /// The anchor of the era has not been published.
    Unpublished,
}

impl Metered {
    #[inline]
    fn seen(&self, head: Head, slot: Slot) -> Seen {
        if !slot.is_of_lap(self.layout.era(head)) {
            Seen::Unpublished
        } else if slot.joined() {
            Seen::Over(slot.time())
        } else {
            Seen::Running(Account { anchor: slot.time(), used: self.layout.used(head) })
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
    /// opens. Does nothing if the head is no longer `head`.
    pub(super) fn settle(&self, words: &[AtomicU64], head: Head, slot: Slot, time: u64) {
        let era = self.layout.era(head);
        if slot.is_of_lap(era) {
            return;
        }
        let anchor = match self.layout.how(head) {
            How::Opens => Slot::new(self.rule.anchor_at(time.max(slot.time())), false, era),
            How::Advances => Slot::new(self.rule.advanced(slot.time()), false, era),
            How::Closes => {
                let account = Account { anchor: slot.time(), used: self.layout.used(head) };
                Slot::new(self.rule.all_free_at(account), true, era)
            }
        };
        // What was read is of this head only if the head still stands.
        if words[HEAD].load(Ordering::Relaxed) == head.0 {
            // Failing is as good: then somebody else has published it.
            let _ = words[RING].compare_exchange(slot.0, anchor.0, Ordering::Release, Ordering::Relaxed);
        }
    }

    /// Claims the next era and publishes its anchor. `None` when the head has moved.
    fn begin(&self, words: &[AtomicU64], head: Head, slot: Slot, how: How, used: u64, time: u64) -> Option<()> {
        let next = self.layout.next(head, how as u64, used);
        claim(words, head, next)?;
        self.settle(words, next, slot, time);
        Some(())
    }
}

#[inline]
fn claim(words: &[AtomicU64], head: Head, next: Head) -> Option<()> {
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
        let delay = Admission::delayed(metered.rule.delay_ns(account, time));
        let told = |decision, account| Attempt::Decided(Status { decision, ..metered.status(account, time) });
        if ask == Ask::Peek || matches!(step, Step::Deny { .. }) {
            let decision = match step {
                Step::Deny { wait_ns } => denied(wait_ns),
                _ => Decision::Admitted(delay),
            };
            let stands = words[HEAD].load(Ordering::Relaxed) == head.0;
            return if stands { told(decision, account) } else { lost() };
        }
        let is_running = !slot.joined();
        let claimed = match step {
            Step::Charge { used } => {
                let charged = metered.layout.charged(head, used);
                claim(words, head, charged).map(|()| Account { used, ..account })
            }
            Step::Advance { used } => {
                let anchor = metered.rule.advanced(account.anchor);
                metered.begin(words, head, slot, How::Advances, used, time).map(|()| Account { anchor, used })
            }
            Step::Open { .. } if is_running => {
                // Then again, with what is over closed.
                let _ = metered.begin(words, head, slot, How::Closes, account.used, time);
                None
            }
            Step::Open { used } => {
                let anchor = metered.rule.anchor_at(time.max(slot.time()));
                metered.begin(words, head, slot, How::Opens, used, time).map(|()| Account { anchor, used })
            }
            Step::Deny { .. } => None,
        };
        claimed.map_or_else(lost, |account| told(Decision::Admitted(delay), account))
    }
}
