//! Random requests to one key, some by clocks that lag, beside the rule of the same quota.

use proptest::prelude::*;

use super::super::any::AnyAccount;
use super::super::{Account, Verdict};
use super::oracle::Meter;
use super::traffic::{END_OF_TIME, START_OF_TIME, account, lengths, meter, origin, quota, requests};
use crate::rule::{self, Effect, Rule};

/// An account of a rule, driven as a cell drives it.
struct Ruled {
    rule: Rule,
    account: Option<rule::Account>,
}

impl Ruled {
    /// The delay, or the wait.
    fn request(&mut self, now: u64, cost: u32) -> Result<u64, u64> {
        let opens = |used| Some(rule::Account { anchor: self.rule.anchor_at(now), used });
        let Some(before) = self.account else {
            let opening = self.rule.opening(cost);
            self.account = opens(opening.used);
            return opening.wait_ns.map_or(Ok(0), Err);
        };
        self.account = match self.rule.effect(before, now, cost) {
            Effect::Deny { wait_ns } => return Err(wait_ns),
            Effect::Charge { used } => Some(rule::Account { used, ..before }),
            Effect::Advance { used } => Some(rule::Account { anchor: self.rule.advanced(before.anchor), used }),
            Effect::Open { used } => opens(used),
        };
        Ok(self.rule.delay_ns(before, now))
    }

    fn remaining(&self, now: u64) -> u32 {
        let unseen = || rule::Account { anchor: self.rule.anchor_at(now), used: self.rule.opening(0).used };
        self.rule.remaining(self.account.unwrap_or_else(unseen), now)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn accounts_decide_as_their_rules_do(meter in meter(), origin in origin(), requests in requests()) {
        let Some(quota) = quota(meter) else { return Ok(()) };
        let account: AnyAccount = account(meter, origin);
        let mut ruled = Ruled { rule: Rule::of(quota, origin).expect("not a log"), account: None };
        let is_bucket = matches!(meter, Meter::TokenBucket { .. } | Meter::LeakyBucket { .. });
        let (mut state, mut time, mut advised) = (0, origin, 0);
        for request in requests {
            time = request.gap.after(time, lengths(meter), advised);
            if time > END_OF_TIME {
                break;
            }
            // By a clock that lags, a bucket is emptier than the rule says.
            let lag = request.lag.filter(|_| !is_bucket).map_or(0, |(length, thousandths)| {
                u128::from(lengths(meter)[length]) * u128::from(thousandths) / 1000
            });
            let now = time.saturating_sub(u64::try_from(lag).expect("short")).max(START_OF_TIME);
            let remaining = account.left(state, now).remaining;
            prop_assert_eq!(remaining, ruled.remaining(now));
            let cost = request.cost.permits(meter.limit(), remaining);
            let answer = match account.decide(state, now, cost) {
                Verdict::Admit { state: charged, delay_ns } => {
                    state = charged;
                    Ok(delay_ns)
                }
                Verdict::Deny { wait_ns, state: started } => {
                    state = started.unwrap_or(state);
                    Err(wait_ns)
                }
            };
            prop_assert_eq!(answer, ruled.request(now, cost), "{} permits at {}", cost, now);
            advised = answer.err().unwrap_or(0);
        }
    }
}
