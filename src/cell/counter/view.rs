//! Reads and writes the account in a cell, by the current version of its quota and those before it.
//!
//! `counter.rs` explains accounts, `versions.rs` versions.

use super::layout::{EraKind, Layout};
use super::plan::AccountPlan;
use crate::cell::driver::{Charge, Driver};
use crate::cell::memory::{At, Cell};
use crate::cell::plan::Plan;
use crate::cell::store::Store;
use crate::cell::versions::{ForKey, Version};
use crate::cell::words::{Head, RingRef, Slot, State, time_of};
use crate::clock::Clock;
use crate::rule::{Account, Effect, Rule, Since};
use crate::sync::Ordering;

/// The account of a cell whose era is published.
#[derive(Clone, Copy)]
pub(super) enum AccountState {
    Running(Running),
    /// Over since this time; the next request opens another.
    Over(u64),
}

/// An account under the current version of its quota.
#[derive(Clone, Copy)]
pub(super) struct Running {
    pub(super) account: Account,
    /// The head names that version.
    pub(super) is_current: bool,
    /// It does not, and the account has another anchor under that version.
    pub(super) is_moved: bool,
}

/// The account of one key: a bucket, a queue, a window or a counter.
#[derive(Clone, Copy)]
pub(in crate::cell) struct Counter<'a> {
    pub(in crate::cell) store: &'a Store,
    pub(in crate::cell) kept_by: KeptBy<'a>,
}

/// The quotas that an account is kept by: all that the fast path needs.
#[derive(Clone, Copy)]
pub(in crate::cell) struct KeptBy<'a> {
    pub(in crate::cell) versions: ForKey<'a>,
    pub(in crate::cell) plan: &'a AccountPlan,
}

impl<'a> core::ops::Deref for Counter<'a> {
    type Target = KeptBy<'a>;

    fn deref(&self) -> &KeptBy<'a> {
        &self.kept_by
    }
}

/// An account as of one head.
pub(super) struct View {
    pub(super) slot: Slot,
    /// The clock reading.
    pub(super) time: u64,
    pub(super) state: AccountState,
}

impl<'a> Counter<'a> {
    /// The account of a cell. `None` if the cell had to be helped, or has changed.
    pub(super) fn view(self, at: At<'a>, clock: &impl Clock) -> Option<View> {
        if at.head.state() == State::Held {
            self.store.help_joint(at.head);
            return None;
        }
        let slot = at.cell.slot();
        // Read after the anchor was seen (INV-CLOCK-LAST), at each attempt.
        let time = time_of(clock.now());
        // By an earlier quota, the reading might find an account over that goes on under the
        // present one (INV-VERSION).
        if !self.is_current(at.cell) {
            return None;
        }
        let Some(state) = self.state(at.head, slot) else {
            self.help(at, RingRef(slot.0), time);
            return None;
        };
        Some(View { slot, time, state })
    }

    /// The next head of a closed account, the time at which another opens, and that one.
    pub(super) fn opening(&self, head: Head, slot: Slot, used: u64, time: u64) -> (Head, u64, Account) {
        let next = self.plan.layout.next(head, self.number(), EraKind::Opens, used);
        // A key with a cell and no permits: see `Driver::help`.
        let time = if slot.is_sentinel() { time.max(self.store.timestamp_floor()) } else { time };
        (next, time, Account { anchor: self.plan.rule.anchor_at(time.max(slot.time())), used })
    }
}

impl<'a> KeptBy<'a> {
    /// The number of the current version.
    #[inline]
    pub(super) fn number(&self) -> u64 {
        self.versions.current.number
    }

    /// The account as of a head; `None` if its era is unpublished.
    #[inline(always)]
    pub(super) fn state(&self, head: Head, slot: Slot) -> Option<AccountState> {
        let layout = self.plan.layout;
        if !slot.is_of_lap(layout.era(head)) {
            return None;
        }
        Some(if slot.is_over() {
            AccountState::Over(slot.time())
        } else if layout.version(head) == Layout::version_of(self.number()) && !self.is_older_than_current(slot) {
            // Where windows are aligned, the anchor is the start of the window.
            let account = Account { anchor: self.plan.rule.anchor_at(slot.time()), used: layout.used(head) };
            AccountState::Running(Running { account, is_current: true, is_moved: false })
        } else {
            self.state_under_another(head, slot)
        })
    }

    /// Whether the slot is from before the current version began: then the head means an earlier
    /// version with the same number modulo 64. Windows do not tell.
    #[inline]
    fn is_older_than_current(&self, slot: Slot) -> bool {
        slot.time() < self.versions.current.since && self.plan.rule.is_moved()
    }

    /// The account under the current version, if it is written under an earlier one.
    #[cold]
    fn state_under_another(&self, head: Head, slot: Slot) -> AccountState {
        let (used, opened) = (self.plan.layout.used(head), slot.time());
        let goes_on = |rule: &Rule| Account { anchor: rule.anchor_at(opened), used };
        let written = self.written_by(head, slot);
        let Some(mut rule) = rule_of(written) else { return AccountState::Over(opened) };
        let (mut account, mut is_moved) = (goes_on(rule), false);
        // The versions after that, newest first.
        let mut since = Vec::new();
        let mut version = self.versions.current;
        while version.number != written.number {
            since.push(version);
            version = self.versions.before(version);
        }
        for next in since.into_iter().rev() {
            let Some(next_rule) = rule_of(next) else { return AccountState::Over(opened) };
            let at = changes_at(next, slot);
            let over = rule.ends_at(account);
            // An account of which nothing is used goes on if its quota changes when it opened.
            if over <= at && at > opened {
                return AccountState::Over(over.max(opened + 1));
            }
            account = match next_rule.converted(rule, account, at) {
                Some(converted) => {
                    is_moved = at > opened;
                    converted
                }
                None if is_moved => Account { anchor: next_rule.anchor_at(at), ..account },
                // Windows go on.
                None => goes_on(next_rule),
            };
            rule = next_rule;
        }
        AccountState::Running(Running { account, is_current: false, is_moved })
    }

    /// The version that an account is written under: the latest with those bits. A bucket or queue
    /// that a change moved opened after it. Of a window it may be too late by 64 changes.
    fn written_by(&self, head: Head, slot: Slot) -> &'a Version {
        self.latest_with(head, |version| !self.plan.rule.is_moved() || version.since <= slot.time())
    }

    /// The latest version with the bits of a head that may be meant.
    fn latest_with(&self, head: Head, may_be: impl Fn(&Version) -> bool) -> &'a Version {
        let bits = self.plan.layout.version(head);
        let mut version = self.versions.current;
        while version.number > 0 && (Layout::version_of(version.number) != bits || !may_be(version)) {
            version = self.versions.before(version);
        }
        version
    }

    /// The time at which the account is no different from a new one; `None` while it is
    /// unpublished. Not before it opened, though its window may have begun earlier: a late
    /// publication expects less than that (INV-LATE).
    pub(super) fn over_at(&self, head: Head, slot: Slot) -> Option<u64> {
        Some(self.is_as_new_at(self.state(head, slot)?).max(slot.time()))
    }

    /// The time from which a key is no different from a new one.
    pub(super) fn is_as_new_at(&self, state: AccountState) -> u64 {
        match state {
            AccountState::Running(running) => self.plan.rule.over_at(running.account),
            // An account that is over is like a new one, unless the rule has no such state.
            AccountState::Over(since) if self.plan.rule.is_ever_over() => since,
            AccountState::Over(_) => u64::MAX,
        }
    }

    /// The effect of a request that would open an account in place of this one. If nothing is used
    /// of this one, and it opened no earlier than `time`, it goes on instead: published times must
    /// rise (INV-RISE).
    pub(super) fn goes_on(slot: Slot, account: Account, time: u64, effect: Effect) -> Effect {
        match effect {
            Effect::Open { used } if account.used == 0 && time <= slot.time() => Effect::Charge { used },
            effect => effect,
        }
    }

    /// The next head, the time in the slot and the account, after an effect that continues a
    /// running account of the current version.
    pub(super) fn next(
        &self,
        head: Head,
        slot: Slot,
        running: &Running,
        effect: Effect,
    ) -> Option<(Head, u64, Account)> {
        let layout = self.plan.layout;
        match effect {
            Effect::Charge { used } => {
                Some((layout.charged(head, used), slot.time(), Account { used, ..running.account }))
            }
            Effect::Advance { used } => {
                let anchor = self.plan.rule.advanced(running.account.anchor);
                Some((layout.next(head, self.number(), EraKind::Advances, used), anchor, Account { anchor, used }))
            }
            Effect::Open { .. } | Effect::Deny { .. } => None,
        }
    }

    /// Closes an account that is over, so that the next can open. The version that it was written
    /// under says since when.
    pub(super) fn close(&self, at: At<'_>, slot: Slot, time: u64) {
        let layout = self.plan.layout;
        let closed = layout.next(at.head, layout.version(at.head), EraKind::Closes, layout.used(at.head));
        let _ = self.begin(at, closed, slot, time);
    }

    /// Writes a running account anew, under the current version.
    #[cold]
    pub(super) fn renew(&self, at: At<'_>, slot: Slot, running: &Running, time: u64) {
        let (layout, head) = (self.plan.layout, at.head);
        if running.is_moved {
            let next = layout.next(head, self.number(), EraKind::Changes, running.account.used);
            let _ = self.begin(at, next, slot, time);
        } else {
            // If this fails, the head has moved.
            let _ = at.claim(layout.two_eras_on(head, self.number(), running.account.used));
        }
    }

    /// Helps: publishes the anchor of the era that was claimed last. Proposes `time`, or the
    /// earliest later time, if an account opens (INV-ANCHOR). Does nothing if the head is no longer
    /// `head`. Returns what it published itself.
    pub(super) fn publish_era(&self, at: At<'_>, slot: Slot, time: u64) -> Option<Slot> {
        let (layout, head) = (self.plan.layout, at.head);
        let era = layout.era(head);
        if slot.is_of_lap(era) {
            return None;
        }
        // The version of an unpublished claim.
        let by = self.latest_with(head, |_| true);
        let anchor = match layout.kind(head) {
            // Not before its version began: see `written_by`.
            EraKind::Opens => Slot::running(time.max(slot.time()).max(by.since), era),
            EraKind::Replaces => {
                let rule = rule_of(by)?;
                let last = Account { anchor: rule.anchor_at(slot.time()), used: layout.used_before(head) };
                // The account that it replaces began after its version did.
                let over = over_since(slot, rule.all_free_at(last), era);
                Slot::running(time.max(over.time()), era)
            }
            EraKind::Advances => {
                let rule = rule_of(by)?;
                Slot::running(rule.advanced(rule.anchor_at(slot.time())), era)
            }
            EraKind::Changes => Slot::running(changes_at(by, slot), era),
            EraKind::Closes => {
                let over = match self.state_under_another(head, slot) {
                    AccountState::Running(running) => self.plan.rule.all_free_at(running.account),
                    AccountState::Over(since) => since,
                };
                over_since(slot, over, era)
            }
        };
        // Otherwise the slot may belong to another head (INV-VALIDATE).
        if !at.validate() {
            return None;
        }
        // If this fails, another thread has published it.
        publish(at.cell, slot, anchor)
    }

    /// Claims the next era and publishes its anchor. `None` if the head has moved.
    pub(super) fn begin(&self, at: At<'_>, next: Head, slot: Slot, time: u64) -> Option<Charge> {
        at.claim(next)?;
        let published = self.publish_era(at.with(next), slot, time);
        Some(self.charge_in_era(at.cell, next, published))
    }

    /// Opens the next account in place of one that is over at `time`: one permit replaces it,
    /// several close it first. `None` if another thread is at it, or `time` is too early; then the
    /// slow path decides.
    ///
    /// The account is written under the current version, and the time was read after the head. The
    /// first claim shows that the head is unchanged, and nothing can be charged between the two
    /// claims. So no thread was charged by a later reading (INV-CLOCK-LAST).
    #[inline(never)]
    pub(super) fn opens_again(&self, at: At<'_>, slot: Slot, account: Account, used: u64, time: u64) -> Option<()> {
        let (layout, At { cell, head }) = (self.plan.layout, at);
        // Published times rise (INV-RISE).
        if time <= slot.time() {
            return None;
        }
        let (head, slot, next) = if used == 1 {
            (head, slot, layout.replaced(head))
        } else {
            let closed = layout.next(head, layout.version(head), EraKind::Closes, account.used);
            at.claim(closed)?;
            let over = over_since(slot, self.plan.rule.all_free_at(account), layout.era(closed));
            // Another thread may have published a later time: the quota may have changed.
            let over = publish(cell, slot, over)?;
            (closed, over, layout.next(closed, self.number(), EraKind::Opens, used))
        };
        At { cell, head }.claim(next)?;
        // If this fails, another thread has published it.
        let _ = publish(cell, slot, Slot::running(time, layout.era(next)));
        Some(())
    }

    /// The charge of a claim that began an era. `published` is the anchor, if this thread published
    /// it.
    pub(super) fn charge_in_era(&self, cell: &Cell, next: Head, published: Option<Slot>) -> Charge {
        let era = self.plan.layout.era(next);
        let published = published.or_else(|| {
            // It belongs to this era if the head still does.
            let published = cell.slot();
            let now = cell.head();
            let is_of_it = now.incarnation() == next.incarnation() && self.plan.layout.era(now) == era;
            (now.state() == State::Open && is_of_it && published.is_of_lap(era)).then_some(published)
        });
        Charge { head: next, mark: published.map_or(0, Slot::time) }
    }

    /// The changes of the running account since a charge; `None` if it is another account, or kept
    /// under another quota.
    pub(super) fn since(&self, head: Head, slot: Slot, running: &Running, charge: Charge) -> Option<Since> {
        let layout = self.plan.layout;
        // What is used is written under the version of the head.
        if running.is_moved || running.account.used != layout.used(head) {
            return None;
        }
        let advanced = slot.time() != charge.mark;
        // A change may leave the anchor of a bucket or queue where it was.
        let same_quota = running.is_current && layout.version(charge.head) == layout.version(head);
        if self.plan.rule.is_moved() && !same_quota || advanced && !self.has_advanced_from(head, slot, charge) {
            return None;
        }
        // Each refund takes the account two eras on.
        let only_charged = layout.eras_between(charge.head, head) == u64::from(advanced);
        Some(Since { used: layout.used(charge.head), advanced, only_charged })
    }

    /// Under the same version. Under two versions, two accounts can have opened in what is one
    /// window.
    fn has_advanced_from(&self, head: Head, slot: Slot, charge: Charge) -> bool {
        let Charge { head: before, mark } = charge;
        self.plan.layout.kind(head) == EraKind::Advances
            && self.plan.layout.version(before) == self.plan.layout.version(head)
            && rule_of(self.written_by(head, slot))
                .is_some_and(|rule| slot.time() == rule.advanced(rule.anchor_at(mark)))
    }
}

fn rule_of(version: &Version) -> Option<&Rule> {
    match &version.plan {
        Plan::Counter(plan) => Some(&plan.rule),
        Plan::Log(_) | Plan::Quantised(_) => None,
    }
}

/// The anchor of an older account under that version. If it is the time at which the account
/// opened, nothing is published: see `renew`.
fn changes_at(version: &Version, slot: Slot) -> u64 {
    version.since.max(slot.time())
}

/// The slot that says since when an account is over. Later than it opened, even if everything was
/// refunded (INV-RISE).
fn over_since(opened: Slot, over: u64, era: u64) -> Slot {
    Slot::over(over.max(opened.time() + 1), era)
}

/// Publishes an era, unless another thread has.
#[inline]
fn publish(cell: &Cell, slot: Slot, anchor: Slot) -> Option<Slot> {
    cell.ring.compare_exchange(slot.0, anchor.0, Ordering::Release, Ordering::Relaxed).ok().map(|_| anchor)
}
