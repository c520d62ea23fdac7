//! What a cell says about its key's account, and how that is written: by the current revision of the quota, and by those before it.
//!
//! The essay is in `counter.rs`, and that on revisions in `revisions.rs`.

use super::layout::{How, Layout};
use super::metered::Metered;
use crate::cell::algorithm::Charged;
use crate::cell::memory::{At, Cell};
use crate::cell::plan::Plan;
use crate::cell::revisions::{ForKey, Revision};
use crate::cell::words::{Head, Slot, State};
use crate::rule::{Account, Rule, Since, Step};
use crate::sync::Ordering;

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
    pub(super) is_current: bool,
    /// It is not, and it would have another anchor.
    is_moved: bool,
}

/// How the account of a key is kept: by the current revision of its quota, and by those before it.
#[derive(Clone, Copy)]
pub(in crate::cell) struct Books<'a> {
    revisions: ForKey<'a>,
    pub(super) current: &'a Metered,
}

impl<'a> Books<'a> {
    #[inline]
    pub(in crate::cell) fn new(revisions: ForKey<'a>, current: &'a Metered) -> Self {
        Self { revisions, current }
    }

    #[inline]
    pub(super) fn number(&self) -> u64 {
        self.revisions.current.number
    }

    #[inline]
    pub(super) fn rule(&self) -> &Rule {
        &self.current.rule
    }

    #[inline]
    pub(super) fn layout(&self) -> Layout {
        self.current.layout
    }

    #[inline]
    pub(super) fn seen(&self, head: Head, slot: Slot) -> Seen {
        let layout = self.layout();
        if !slot.is_of_lap(layout.era(head)) {
            Seen::Unpublished
        } else if slot.joined() {
            Seen::Over(slot.time())
        } else if layout.revision(head) == Layout::revision_of(self.number()) && !self.is_older_than_current(slot) {
            Seen::Running(Running { account: account(self.current, head, slot), is_current: true, is_moved: false })
        } else {
            self.seen_by_another(head, slot)
        }
    }

    /// Whether the slot is from before the current revision, so that the head must mean an earlier one of the same number modulo 64. Of
    /// windows, which stand still, that can't be told.
    #[inline]
    fn is_older_than_current(&self, slot: Slot) -> bool {
        slot.time() < self.revisions.current.since && self.rule().is_moved()
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
            // One of which nothing is used goes on if its quota changes at the time at which it opened.
            if over <= at && at > opened {
                return Seen::Over(over.max(opened + 1));
            }
            account = match next_rule.carried(rule, account, at) {
                Some(carried) => {
                    is_moved = at > opened;
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

    /// When the account is as that of a key never seen; `None` while its anchor is not published. Not before it opened, although its
    /// window may have begun before: what a late publication expects is earlier than when it opened.
    pub(super) fn over_at(&self, head: Head, slot: Slot) -> Option<u64> {
        self.is_as_new_at(self.seen(head, slot)).map(|over| over.max(slot.time()))
    }

    fn is_as_new_at(&self, seen: Seen) -> Option<u64> {
        match seen {
            Seen::Running(running) => Some(self.rule().over_at(running.account)),
            // Over is as good as new, unless the rule says that nothing ever is.
            Seen::Over(since) if self.rule().is_ever_over() => Some(since),
            Seen::Over(_) => Some(u64::MAX),
            Seen::Unpublished => None,
        }
    }

    /// What becomes of a request whose step is to open an account in place of the running one. If nothing is used of that, and it
    /// opened no earlier than now, it goes on: a time that is published does not return, so the next would open later.
    pub(super) fn goes_on(slot: Slot, account: Account, time: u64, step: Step) -> Step {
        match step {
            Step::Open { used } if account.used == 0 && time <= slot.time() => Step::Charge { used },
            step => step,
        }
    }

    /// The head after a step of a running account that is written by the current revision, if it goes on; and what the slot holds then.
    pub(super) fn next(&self, head: Head, slot: Slot, running: &Running, step: Step) -> Option<(Head, u64)> {
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
    pub(super) fn renew(&self, at: At<'_>, slot: Slot, running: &Running, time: u64) {
        let (layout, head) = (self.layout(), at.head);
        if running.is_moved {
            let next = layout.next_by(head, self.number(), How::Changes, running.account.used);
            let _ = self.begin(at, next, slot, time);
        } else {
            // Failing is as good: then the head has moved.
            let _ = at.claim(layout.two_eras_on(head, self.number(), running.account.used));
        }
    }

    /// Publishes the anchor of the era that was claimed last; proposes `time`, or as little later as it takes, where an account
    /// opens. Does nothing if the head is no longer `head`. Gives what it published itself.
    pub(super) fn settle(&self, at: At<'_>, slot: Slot, time: u64) -> Option<Slot> {
        let (layout, head) = (self.layout(), at.head);
        let era = layout.era(head);
        if slot.is_of_lap(era) {
            return None;
        }
        let by = self.claimed_by(head);
        let anchor = match layout.how(head) {
            // Not before its quota began: see `written_by`.
            How::Opens => Slot::new(time.max(slot.time()).max(by.since), false, era),
            How::Replaces => {
                let rule = rule_of(by)?;
                let last = Account { anchor: rule.anchor_at(slot.time()), used: layout.used_before(head) };
                // Not before its quota began: the account that it replaces did not.
                let over = over_since(slot, rule.all_free_at(last), era);
                Slot::new(time.max(over.time()), false, era)
            }
            How::Advances => {
                let rule = rule_of(by)?;
                Slot::new(rule.advanced(rule.anchor_at(slot.time())), false, era)
            }
            How::Changes => Slot::new(changes_at(by, slot), false, era),
            How::Closes => {
                let over = match self.seen_by_another(head, slot) {
                    Seen::Running(running) => self.rule().all_free_at(running.account),
                    Seen::Over(since) => since,
                    Seen::Unpublished => 0,
                };
                over_since(slot, over, era)
            }
        };
        // What was read is of this head only if the head still stands.
        if !at.stands() {
            return None;
        }
        // Failing is as good: then somebody else has published it.
        publish(at.cell, slot, anchor)
    }

    /// Claims the next era and publishes its anchor. `None` when the head has moved.
    pub(super) fn begin(&self, at: At<'_>, next: Head, slot: Slot, time: u64) -> Option<Charged> {
        at.claim(next)?;
        let published = self.settle(at.with(next), slot, time);
        Some(self.charged(at.cell, next, published))
    }

    /// Opens the next account in place of one that is over at `time`: one permit replaces that, several close it first.
    /// `None` if somebody else is at it, or the time is one at which that can't be: then all of it has to be looked at again.
    ///
    /// The account is written by the current revision, and the time was read after the head was seen. The first claim says that the
    /// head still stands, and there is nothing to be charged to between the two; so nobody was charged by a later reading.
    #[inline(never)]
    pub(super) fn opens_again(&self, at: At<'_>, slot: Slot, account: Account, used: u64, time: u64) -> Option<()> {
        let (layout, At { cell, head }) = (self.layout(), at);
        // What is published has to be later than what it takes the place of.
        if time <= slot.time() {
            return None;
        }
        let (head, slot, next) = if used == 1 {
            (head, slot, layout.replaced(head))
        } else {
            let closed = layout.next(head, How::Closes, account.used);
            cell.claim(head, closed)?;
            let over = over_since(slot, self.rule().all_free_at(account), layout.era(closed));
            // What somebody else has published may be later: the quota may have changed.
            let over = publish(cell, slot, over)?;
            (closed, over, layout.next_by(closed, self.number(), How::Opens, used))
        };
        cell.claim(head, next)?;
        // Failing is as good.
        let _ = publish(cell, slot, Slot::new(time, false, layout.era(next)));
        Some(())
    }

    /// What was charged by opening an account or going on with it, and what of that was published, if that was not by somebody else.
    pub(super) fn charged(&self, cell: &Cell, next: Head, published: Option<Slot>) -> Charged {
        let era = self.layout().era(next);
        let published = published.or_else(|| {
            // What is there is of this era if the head still is.
            let published = cell.slot();
            let now = cell.head();
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
        // Where a change moves accounts, one that opened by another quota may have kept its anchor.
        let same_quota = running.is_current && layout.revision(charged.head) == layout.revision(head);
        if self.rule().is_moved() && !same_quota || advanced && !self.has_advanced_from(head, slot, charged) {
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
    pub(super) fn first(&self, opened: Head, cost: u32, mark: u64) -> (Head, Slot) {
        match self.rule().opening(cost).used {
            0 => self.layout().closed(opened, mark),
            used => self.layout().opening(opened, self.number(), used, mark),
        }
    }
}

fn rule_of(revision: &Revision) -> Option<&Rule> {
    match &revision.plan {
        Plan::Counter(metered) => Some(&metered.rule),
        Plan::Log(_) | Plan::Quantised(_) => None,
    }
}

/// The anchor of an account that opened before and goes on under that revision. If it is the time at which it opened, nothing is
/// published: see `renew`.
fn changes_at(revision: &Revision, slot: Slot) -> u64 {
    revision.since.max(slot.time())
}

/// The account of a head and of the slot that was published in its era, by the revision that it is written by. The slot says when
/// it opened; where windows stand still, the anchor is the start of the window that this lies in.
#[inline]
fn account(metered: &Metered, head: Head, slot: Slot) -> Account {
    Account { anchor: metered.rule.anchor_at(slot.time()), used: metered.layout.used(head) }
}

/// Since when an account was over, as it is published. Later than it opened, even if all of it was given back: a time must not return.
fn over_since(opened: Slot, over: u64, era: u64) -> Slot {
    Slot::new(over.max(opened.time() + 1), true, era)
}

/// Publishes an era, unless somebody else has.
#[inline]
fn publish(cell: &Cell, slot: Slot, anchor: Slot) -> Option<Slot> {
    cell.ring.compare_exchange(slot.0, anchor.0, Ordering::Release, Ordering::Relaxed).ok().map(|_| anchor)
}

#[cfg(feature = "serde")]
impl Books<'_> {
    /// What of an account still matters at `now`: when it opened, and what has been used. One that is over and does matter is as if nothing had
    /// been used since. `None` if it has to be published first.
    pub(super) fn kept(&self, head: Head, slot: Slot, now: u64) -> Option<Option<(u64, u64)>> {
        let seen = self.seen(head, slot);
        let over = self.is_as_new_at(seen)?;
        Some((over > now).then_some(match seen {
            Seen::Running(Running { account, is_moved: true, .. }) => (account.anchor, account.used),
            Seen::Running(running) => (slot.time(), running.account.used),
            Seen::Over(since) => (since, 0),
            Seen::Unpublished => return None,
        }))
    }

    /// The head and the slot of a cell with an account that opened then.
    pub(super) fn reopened(&self, free: Head, opened: u64, used: u64) -> (Head, Slot) {
        let how = if used == 0 { How::Closes } else { How::Opens };
        let head = self.layout().next_by(free, self.number(), how, used);
        (head, Slot::new(opened, used == 0, self.layout().era(head)))
    }
}
