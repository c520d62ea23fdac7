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

use super::plan::{Metered, Plan};
use super::revisions::{ForKey, Revision};
use super::words::{Head, Slot, State, time_of};
use super::{Ask, Attempt, Cells, Charged, HEAD, RING, RingRef, Seat};
use crate::clock::Clock;
use crate::decision::{Admission, Decision, Denial, DenialReason, Status};
use crate::rule::{Account, Rule, Since, Step};
use crate::sync::{AtomicU64, Ordering};

/// How an era came about, and so what its anchor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// The account opens: at the time of the claim, or later.
    Opens = 0,
    /// It goes on under an anchor that follows from the last.
    Advances = 1,
    /// It was over, and this says since when.
    Closes = 2,
    /// It goes on under another quota, from the moment at which that began.
    Changes = 3,
}

/// What the lower bits of a head say in a cell with an account. Few bits more than `used` needs; the rest tell eras apart.
///
/// ```text
/// { era: 44 - used, revision: 6, how: 2, used: 20 or as many as the first rule needs }
/// ```
///
/// `revision` is what the number of the quota's revision is modulo 64 by which the account is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    used_bits: u32,
}

impl Layout {
    /// A few hundred thousand permits fit anyhow: a quota may come to be larger.
    const LEAST_USED_BITS: u32 = 20;
    const REVISION_BITS: u32 = 6;
    const HOW_BITS: u32 = 2;

    pub(super) fn of(rule: &Rule) -> Self {
        Self { used_bits: rule.used_below().next_power_of_two().ilog2().max(Self::LEAST_USED_BITS) }
    }

    pub(super) fn has_room_for(self, rule: &Rule) -> bool {
        rule.used_below() <= 1 << self.used_bits
    }

    fn era_at(self) -> u32 {
        self.used_bits + Self::HOW_BITS + Self::REVISION_BITS
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
            2 => How::Closes,
            _ => How::Changes,
        }
    }

    #[inline]
    fn era(self, head: Head) -> u64 {
        head.below_life() >> self.era_at()
    }

    /// The revision that the account is written by, as far as the head tells.
    #[inline]
    fn revision(self, head: Head) -> u64 {
        (head.below_life() >> (self.used_bits + Self::HOW_BITS)) & Self::revision_of(u64::MAX)
    }

    /// What a head tells of the number of a revision.
    #[inline]
    fn revision_of(number: u64) -> u64 {
        number & ((1 << Self::REVISION_BITS) - 1)
    }

    fn with(self, head: Head, era: u64, revision: u64, how: How, used: u64) -> Head {
        let upper = ((era << Self::REVISION_BITS | revision) << Self::HOW_BITS) | how as u64;
        head.with_below_life((upper << self.used_bits) | used)
    }

    /// The head of the next era, by the same revision.
    pub(super) fn next(self, head: Head, how: How, used: u64) -> Head {
        self.with(head, self.era(head) + 1, self.revision(head), how, used)
    }

    /// The head of the next era.
    fn next_by(self, head: Head, revision: u64, how: How, used: u64) -> Head {
        self.with(head, self.era(head) + 1, Self::revision_of(revision), how, used)
    }

    /// The head of the same era after more has been used.
    #[inline]
    fn charged(self, head: Head, used: u64) -> Head {
        head.with_below_life((head.below_life() >> self.used_bits << self.used_bits) | used)
    }

    /// The head with another `used` or by another revision, under the same anchor: two eras on, which keeps the parity.
    fn two_eras_on(self, head: Head, revision: u64, used: u64) -> Head {
        self.with(head, self.era(head) + 2, Self::revision_of(revision), self.how(head), used)
    }

    /// How many eras later the other head is, of the same life.
    fn eras_between(self, earlier: Head, later: Head) -> u64 {
        self.era(later).wrapping_sub(self.era(earlier)) & ((1 << (52 - self.era_at())) - 1)
    }

    /// Whether the era came about by an advance.
    fn advances(self, head: Head) -> bool {
        self.how(head) == How::Advances
    }

    /// The head and the slot of a cell whose first account is about to open.
    fn opening(self, free: Head, revision: u64, used: u64, mark: u64) -> (Head, Slot) {
        let head = self.next_by(free, revision, How::Opens, used);
        (head, Slot::ancient(mark, self.era(head)))
    }

    /// The head and the slot of a cell with an account that has been over since before time began.
    fn closed(self, free: Head, mark: u64) -> (Head, Slot) {
        let head = self.next(free, How::Closes, 0);
        (head, Slot::ancient(mark, self.era(head) + 1).joined_on())
    }
}

/// What a cell says about its key's account.
#[derive(Clone, Copy)]
pub(super) enum Seen {
    Running(Running),
    /// Over since this moment: the next request opens another.
    Over(u64),
    /// The anchor of the era has not been published.
    Unpublished,
}

/// An account as it stands by the current revision of its quota.
#[derive(Clone, Copy)]
pub(super) struct Running {
    pub(super) account: Account,
    /// It is written by that revision.
    is_current: bool,
    /// It is not, and it would have another anchor.
    is_moved: bool,
}

/// How the account of a key is kept: by the current revision of its quota, and by those before it.
#[derive(Clone, Copy)]
pub(super) struct Books<'a> {
    revisions: ForKey<'a>,
    pub(super) current: &'a Metered,
}

impl<'a> Books<'a> {
    #[inline]
    pub(super) fn new(revisions: ForKey<'a>, current: &'a Metered) -> Self {
        Self { revisions, current }
    }

    #[inline]
    fn number(&self) -> u64 {
        self.revisions.current.number
    }

    #[inline]
    pub(super) fn rule(&self) -> &Rule {
        &self.current.rule
    }

    #[inline]
    fn layout(&self) -> Layout {
        self.current.layout
    }

    #[inline]
    pub(super) fn seen(&self, head: Head, slot: Slot) -> Seen {
        let layout = self.layout();
        if !slot.is_of_lap(layout.era(head)) {
            Seen::Unpublished
        } else if slot.joined() {
            Seen::Over(slot.time())
        } else if layout.revision(head) == Layout::revision_of(self.number()) {
            Seen::Running(Running { account: account(self.current, head, slot), is_current: true, is_moved: false })
        } else {
            self.seen_by_another(head, slot)
        }
    }

    /// The account of a head and of a slot that say by which revision it is written, and how it stands by the current one.
    #[cold]
    fn seen_by_another(&self, head: Head, slot: Slot) -> Seen {
        let (used, opened) = (self.layout().used(head), slot.time());
        let goes_on = |rule: &Rule| Account { anchor: rule.anchor_at(opened), used };
        let written = self.written_by(head, slot);
        let Some(mut rule) = rule_of(written) else { return Seen::Over(opened) };
        let (mut account, mut is_moved) = (goes_on(rule), false);
        // From the current one back, there are few, if any, that the account has not seen.
        let mut since = Vec::new();
        let mut revision = self.revisions.current;
        while revision.number != written.number {
            since.push(revision);
            revision = self.revisions.before(revision);
        }
        for next in since.into_iter().rev() {
            let Some(next_rule) = rule_of(next) else { return Seen::Over(opened) };
            let at = changes_at(next, slot);
            let over = rule.ends_at(account);
            if over <= at {
                return Seen::Over(over.max(opened + 1));
            }
            account = match next_rule.carried(rule, account, at) {
                Some(carried) => {
                    is_moved = true;
                    carried
                }
                // Windows go on.
                None => goes_on(next_rule),
            };
            rule = next_rule;
        }
        Seen::Running(Running { account, is_current: false, is_moved })
    }

    /// The revision that an account is written by: the last with those bits. One that is moved when its quota changes opened after
    /// that; of a window there may be a later one, if it was left alone through sixty-four changes.
    fn written_by(&self, head: Head, slot: Slot) -> &'a Revision {
        let bits = self.layout().revision(head);
        let mut revision = self.revisions.current;
        let is_later = |revision: &Revision| self.rule().is_moved() && revision.since > slot.time();
        while revision.number > 0 && (Layout::revision_of(revision.number) != bits || is_later(revision)) {
            revision = self.revisions.before(revision);
        }
        revision
    }

    /// The revision that a claim was made by which has not been published: the last with those bits.
    fn claimed_by(&self, head: Head) -> &'a Revision {
        let bits = self.layout().revision(head);
        let mut revision = self.revisions.current;
        while revision.number > 0 && Layout::revision_of(revision.number) != bits {
            revision = self.revisions.before(revision);
        }
        revision
    }

    /// When the account is as that of a key never seen; `None` while its anchor is not published.
    pub(super) fn over_at(&self, head: Head, slot: Slot) -> Option<u64> {
        match self.seen(head, slot) {
            Seen::Running(running) => Some(self.rule().over_at(running.account)),
            // Over is as good as new, unless the rule says that nothing ever is.
            Seen::Over(since) if self.rule().is_ever_over() => Some(since),
            Seen::Over(_) => Some(u64::MAX),
            Seen::Unpublished => None,
        }
    }

    /// The head after a step of a running account that is written by the current revision, if it goes on; and what the slot holds then.
    fn next(&self, head: Head, slot: Slot, running: &Running, step: Step) -> Option<(Head, u64)> {
        let layout = self.layout();
        match step {
            Step::Charge { used } => Some((layout.charged(head, used), slot.time())),
            Step::Advance { used } => {
                let next = layout.next_by(head, self.number(), How::Advances, used);
                Some((next, self.rule().advanced(running.account.anchor)))
            }
            Step::Open { .. } | Step::Deny { .. } => None,
        }
    }

    /// Writes a running account anew, by the current revision.
    #[cold]
    fn renew(&self, words: &[AtomicU64], head: Head, slot: Slot, running: &Running, time: u64) {
        let layout = self.layout();
        if running.is_moved {
            let next = layout.next_by(head, self.number(), How::Changes, running.account.used);
            let _ = self.begin(words, head, next, slot, time);
        } else {
            // Failing is as good: then the head has moved.
            let _ = claim(words, head, layout.two_eras_on(head, self.number(), running.account.used));
        }
    }

    /// Publishes the anchor of the era that was claimed last; proposes `time`, or as little later as it takes, where an account
    /// opens. Does nothing if the head is no longer `head`. Gives what it published itself.
    pub(super) fn settle(&self, words: &[AtomicU64], head: Head, slot: Slot, time: u64) -> Option<Slot> {
        let layout = self.layout();
        let era = layout.era(head);
        if slot.is_of_lap(era) {
            return None;
        }
        let by = self.claimed_by(head);
        let anchor = match layout.how(head) {
            How::Opens => Slot::new(time.max(slot.time()), false, era),
            How::Advances => {
                let rule = rule_of(by)?;
                Slot::new(rule.advanced(rule.anchor_at(slot.time())), false, era)
            }
            How::Changes => Slot::new(changes_at(by, slot), false, era),
            // Later than it opened, even if all of it was given back: a time must not return.
            How::Closes => {
                let over = match self.seen_by_another(head, slot) {
                    Seen::Running(running) => self.rule().all_free_at(running.account),
                    Seen::Over(since) => since,
                    Seen::Unpublished => 0,
                };
                Slot::new(over.max(slot.time() + 1), true, era)
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
    fn begin(&self, words: &[AtomicU64], head: Head, next: Head, slot: Slot, time: u64) -> Option<Charged> {
        claim(words, head, next)?;
        let published = self.settle(words, next, slot, time);
        Some(self.charged(words, next, published))
    }

    /// What was charged by opening an account or going on with it, and what of that was published, if that was not by somebody else.
    pub(super) fn charged(&self, words: &[AtomicU64], next: Head, published: Option<Slot>) -> Charged {
        let era = self.layout().era(next);
        let published = published.or_else(|| {
            // What is there is of this era if the head still is.
            let published = Slot(words[RING].load(Ordering::Acquire));
            let now = Head(words[HEAD].load(Ordering::Acquire));
            let is_of_it = now.life() == next.life() && self.layout().era(now) == era;
            (now.state() == State::Open && is_of_it && published.is_of_lap(era)).then_some(published)
        });
        Charged { head: next, mark: published.map_or(0, Slot::time) }
    }

    /// The head of a running account that is given something back.
    pub(super) fn given_back(&self, head: Head, used: u64) -> Head {
        self.layout().two_eras_on(head, self.layout().revision(head), used)
    }

    /// What has become, since it was charged, of the account that runs; `None` if it is another, or is kept by another quota.
    pub(super) fn since(&self, head: Head, slot: Slot, running: &Running, charged: Charged) -> Option<Since> {
        let layout = self.layout();
        let advanced = slot.time() != charged.mark;
        if running.is_moved || advanced && !self.has_advanced_from(head, slot, charged) {
            return None;
        }
        // Each time that something is given back takes the account two eras on.
        let only_charged = layout.eras_between(charged.head, head) == u64::from(advanced);
        Some(Since { used: layout.used(charged.head), advanced, only_charged })
    }

    /// By the same revision: by another one, two accounts can have opened in what is one window.
    fn has_advanced_from(&self, head: Head, slot: Slot, charged: Charged) -> bool {
        let Charged { head: before, mark } = charged;
        self.layout().advances(head)
            && self.layout().revision(before) == self.layout().revision(head)
            && rule_of(self.written_by(head, slot))
                .is_some_and(|rule| slot.time() == rule.advanced(rule.anchor_at(mark)))
    }

    /// The head and the slot of a new key's cell. Its account opens with its first request; with a cost of zero it is one that is
    /// over, unless a key never seen has used something from the start.
    pub(super) fn first(&self, opened: Head, cost: usize, mark: u64) -> (Head, Slot) {
        let cost = u32::try_from(cost).unwrap_or(u32::MAX);
        match self.rule().opening(cost).used {
            0 => self.layout().closed(opened, mark),
            used => self.layout().opening(opened, self.number(), used, mark),
        }
    }
}

fn rule_of(revision: &Revision) -> Option<&Rule> {
    match &revision.plan {
        Plan::Account(metered) => Some(&metered.rule),
        Plan::Log(_) => None,
    }
}

/// The anchor of an account that opened before and goes on under that revision. Later than it opened, as all that is published.
fn changes_at(revision: &Revision, slot: Slot) -> u64 {
    revision.since.max(slot.time() + 1)
}

/// The account of a head and of the slot that was published in its era, by the revision that it is written by. The slot says when
/// it opened; where windows stand still, the anchor is the start of the window that this lies in.
#[inline]
fn account(metered: &Metered, head: Head, slot: Slot) -> Account {
    Account { anchor: metered.rule.anchor_at(slot.time()), used: metered.layout.used(head) }
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
        books: Books<'_>,
        seat: Seat<'_>,
        cost: u32,
        reading: u64,
    ) -> Option<Decision> {
        let Seat { head, words, .. } = seat;
        let slot = Slot(words[RING].load(Ordering::Acquire));
        let Seen::Running(Running { account, is_current: true, .. }) = books.seen(head, slot) else { return None };
        if head.state() != State::Open || cost > books.current.limit() {
            return None;
        }
        let time = time_of(reading);
        match books.rule().step(account, time, cost) {
            Step::Charge { used } => {
                claim(words, head, books.layout().charged(head, used))?;
                Some(Decision::Admitted(Admission::delayed(books.rule().delay_ns(account, time))))
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
        books: Books<'_>,
        words: &[AtomicU64],
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
                books.renew(words, head, slot, &running, time);
                Ready::Again
            }
            Seen::Running(running) => match books.rule().step(running.account, time, cost) {
                Step::Open { .. } => {
                    self.account_closes(books, words, head, slot, time);
                    Ready::Again
                }
                step => match books.next(head, slot, &running, step) {
                    Some((next, mark)) => fits(next, running.account, mark),
                    None => Ready::Again,
                },
            },
            Seen::Over(since) if slot.joined() => {
                // Nothing has been used, whenever that was.
                let next = books.layout().next_by(head, books.number(), How::Opens, cost.into());
                fits(next, Account { anchor: since, used: 0 }, 0)
            }
            Seen::Over(_) => {
                self.account_closes(books, words, head, slot, time);
                Ready::Again
            }
            Seen::Unpublished => {
                self.settle(words, head, reference, time);
                Ready::Again
            }
        }
    }

    /// Closes an account that is over, so that the next can open; by the revision that it was written by, which says since when.
    fn account_closes(&self, books: Books<'_>, words: &[AtomicU64], head: Head, slot: Slot, time: u64) {
        let closed = books.layout().next(head, How::Closes, books.layout().used(head));
        let _ = books.begin(words, head, closed, slot, time);
    }

    /// One attempt at a decision.
    pub(super) fn account_attempt(
        &self,
        books: Books<'_>,
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
        let rule = books.rule();
        let (running, account) = match books.seen(head, slot) {
            // Once for each change; a denial writes nothing else.
            Seen::Running(running) if !running.is_current && ask != Ask::Peek => {
                books.renew(words, head, slot, &running, time);
                return lost();
            }
            Seen::Running(running) => (Some(running), running.account),
            // Nothing has been used, whenever that was.
            Seen::Over(since) => (None, Account { anchor: since, used: 0 }),
            Seen::Unpublished => {
                self.settle(words, head, RingRef(slot.0), time);
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
        let delay = Admission::delayed(delay);
        let told = |decision, account, charged| {
            Attempt::Decided(Status { decision, ..books.current.status(account, time) }, charged)
        };
        if ask == Ask::Peek || matches!(step, Step::Deny { .. }) {
            let decision = match step {
                Step::Deny { wait_ns } => denied(wait_ns),
                _ => Decision::Admitted(delay),
            };
            let stands = words[HEAD].load(Ordering::Relaxed) == head.0;
            return if stands { told(decision, account, Charged::nothing(head)) } else { lost() };
        }
        let claimed = match (running.and_then(|running| books.next(head, slot, &running, step)), step) {
            (Some((next, anchor)), Step::Advance { used }) => {
                let begun = books.begin(words, head, next, slot, time);
                begun.map(|charged| (Account { anchor, used }, Charged { mark: anchor, ..charged }))
            }
            (Some((next, mark)), Step::Charge { used }) => {
                claim(words, head, next).map(|()| (Account { used, ..account }, Charged { head: next, mark }))
            }
            (_, Step::Open { used }) if slot.joined() => {
                let anchor = rule.anchor_at(time.max(slot.time()));
                let next = books.layout().next_by(head, books.number(), How::Opens, used);
                let begun = books.begin(words, head, next, slot, time);
                begun.map(|charged| (Account { anchor, used }, charged))
            }
            _ => {
                // Then again, with what is over closed.
                self.account_closes(books, words, head, slot, time);
                None
            }
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
impl Books<'_> {
    /// What of an account still matters at `now`. One that is over and does is as if nothing had been used since.
    pub(super) fn kept(&self, head: Head, slot: Slot, now: u64) -> Kept {
        match (self.over_at(head, slot), self.seen(head, slot)) {
            (None, _) | (_, Seen::Unpublished) => Kept::Unpublished,
            (Some(over), _) if over <= now => Kept::Nothing,
            (_, Seen::Over(since)) => Kept::Running { opened: since, used: 0 },
            (_, Seen::Running(Running { account, is_moved: true, .. })) => {
                Kept::Running { opened: account.anchor, used: account.used }
            }
            (_, Seen::Running(running)) => Kept::Running { opened: slot.time(), used: running.account.used },
        }
    }

    /// The head and the slot of a cell with an account that opened then.
    pub(super) fn reopened(&self, free: Head, opened: u64, used: u64) -> (Head, Slot) {
        let how = if used == 0 { How::Closes } else { How::Opens };
        let head = self.layout().next_by(free, self.number(), how, used);
        (head, Slot::new(opened, used == 0, self.layout().era(head)))
    }
}
