//! The plan of a quota that is counted by an account.

use super::layout::Layout;
use crate::cell::driver::NewKeys;
#[cfg(feature = "snapshot")]
use crate::cell::export::Export;
use crate::cell::words::TIME_ZERO;
use crate::decision::{Admission, Decision, FastDecision, Left, PerQuota, Status};
use crate::quota::Quota;
use crate::rule::{Account, Rule};

/// A rule and its quota.
pub(crate) struct AccountPlan {
    pub(in crate::cell) rule: Rule,
    pub(in crate::cell) layout: Layout,
    /// The most permits that a request may ask for.
    pub(super) limit: u32,
    /// The longest time that a key matters after its last permit.
    window: u64,
}

impl AccountPlan {
    /// The plan of a validated quota, if an account counts it.
    pub(in crate::cell) fn of(quota: Quota) -> Option<Self> {
        let rule = Rule::of(quota, TIME_ZERO)?;
        Some(Self { rule, layout: Layout::of(&rule), limit: quota.limit(), window: quota.window_ns() })
    }

    /// The permits left of an account.
    pub(super) fn left(&self, account: Account, time: u64) -> Left {
        let (rule, limit) = (&self.rule, self.limit);
        let remaining = rule.remaining(account, time);
        let reset_after_ns = rule.reset_after(account, time);
        Left { limit, remaining, next_after_ns: rule.next_after(account, time, remaining, limit), reset_after_ns }
    }
}

impl NewKeys for AccountPlan {
    fn longest_window(&self) -> u64 {
        self.window
    }

    fn first_end(&self, cost: u32, time: u64) -> u64 {
        let rule = &self.rule;
        rule.over_at(Account { anchor: rule.anchor_at(time), used: rule.opening(cost).used })
    }

    fn first_status(&self, cost: u32, charged: u32, time: u64, lead: u64) -> Status {
        let rule = &self.rule;
        let decision = match rule.opening(cost).wait_ns {
            None => Decision::Admitted(Admission::COUNTED),
            Some(wait) => FastDecision::denied(wait.saturating_add(lead), 0).into(),
        };
        let account = Account { anchor: rule.anchor_at(time + lead), used: rule.opening(charged).used };
        Status { decision, left: PerQuota::one(self.left(account, time)) }
    }

    #[cfg(feature = "snapshot")]
    fn can_have(&self, export: &Export) -> bool {
        match *export {
            Export::Account { used, .. } => used < self.rule.used_ever_below(),
            Export::Aligned { used, .. } => self.rule.grid().is_some() && used < self.rule.used_ever_below(),
            Export::Stamps(_) | Export::Steps(_) => false,
        }
    }
}
