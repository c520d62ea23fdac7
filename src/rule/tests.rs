//! Every rule against the oracle: random quotas, times and costs, with the edges that a denial or a
//! boundary points at.

mod drift;
mod traffic;

use proptest::prelude::*;

use super::any::nanos;
use super::oracle::{Meter, Naive};
use super::{Account, Effect, Rule};
use crate::quota::{Kind, Quota};
use traffic::{Cost, Gap, LATE_ORIGIN, lengths, quota, requests};

const END_OF_TIME: u64 = 1 << 62;

/// The quota as the oracle knows it.
fn meter(quota: Quota) -> Meter {
    let (limit, phase) = (quota.limit(), quota.phase().map(|phase| phase.as_nanos()));
    match quota.kind() {
        Kind::Log | Kind::QuantisedLog { .. } => unreachable!("the log has an oracle of its own"),
        Kind::TokenBucket { refill, per } => {
            Meter::TokenBucket { capacity: limit, refill, per: nanos(per), start: quota.start().unwrap_or(limit) }
        }
        Kind::LeakyBucket { leak, per } => Meter::LeakyBucket { capacity: limit, leak, per: nanos(per) },
        Kind::LeakyQueue { leak, per, max_delay } => {
            Meter::LeakyQueue { leak, per: nanos(per), max_delay: nanos(max_delay) }
        }
        Kind::FixedWindow => Meter::FixedWindow { limit, window: quota.window_ns(), phase },
        Kind::SlidingCounter { window } => {
            Meter::SlidingCounter { limit, window: nanos(window), phase: phase.unwrap_or(0) }
        }
    }
}

/// One key, driven as a cell would drive it, beside the oracle.
struct Run {
    quota: Quota,
    origin: u64,
    rule: Rule,
    naive: Naive,
    account: Option<Account>,
}

impl Run {
    fn new(quota: Quota, origin: u64) -> Self {
        let rule = Rule::of(quota, origin).expect("not a log");
        Self { quota, origin, rule, naive: Naive::new(meter(quota), origin, origin), account: None }
    }

    /// The account; of a key that was not seen yet, as it is before its first request.
    fn account_at(&self, now: u64) -> Account {
        let unseen = || Account { anchor: self.rule.anchor_at(now), used: self.rule.opening(0).used };
        self.account.unwrap_or_else(unseen)
    }

    /// The key is seen for the first time, which is when its bucket begins to be refilled.
    fn first_seen(&mut self, now: u64) {
        self.naive = Naive::new(meter(self.quota), self.origin, now);
    }

    /// Decides, checks all that can be asked, and charges. `published` is when an account that
    /// opens gets its anchor. Gives back the time at which the request counts, or how long it has
    /// to wait.
    fn request(&mut self, now: u64, published: u64, cost: u32) -> Result<u64, u64> {
        if self.account.is_none() {
            self.first_seen(now);
        }
        let before = self.account_at(now);
        self.check_numbers(before, now);
        let admitted = self.naive.admits(now, cost);
        assert_eq!(admitted, cost <= self.rule.remaining(before, now), "admitted exactly if as much remains");
        let Some(account) = self.account else { return self.open(now, published, cost) };
        let effect = self.rule.effect(account, now, cost);
        assert_eq!(!matches!(effect, Effect::Deny { .. }), admitted, "{effect:?}");
        if admitted {
            assert_eq!(i128::from(self.rule.delay_ns(account, now)), self.naive.delay(now), "the delay in the queue");
        }
        let (account, counts_at) = match effect {
            Effect::Charge { used } => {
                assert!(used > account.used, "a head never returns");
                (Account { used, ..account }, now)
            }
            Effect::Advance { used } => (Account { anchor: self.rule.advanced(account.anchor), used }, now),
            Effect::Open { used } => {
                self.check_late_opening(account, now, published, cost);
                (Account { anchor: self.rule.anchor_at(published), used }, published)
            }
            Effect::Deny { wait_ns } => {
                self.check_wait(account, now, cost, wait_ns);
                return Err(wait_ns);
            }
        };
        self.charge(account, counts_at, cost);
        Ok(counts_at)
    }

    fn open(&mut self, now: u64, published: u64, cost: u32) -> Result<u64, u64> {
        let opening = self.rule.opening(cost);
        assert_eq!(opening.wait_ns.is_none(), self.naive.admits(now, cost));
        let account = Account { anchor: self.rule.anchor_at(published), used: opening.used };
        match opening.wait_ns {
            None => {
                // The key counts as seen from then on.
                self.first_seen(published);
                self.charge(account, published, cost);
                Ok(published)
            }
            Some(wait) => {
                let account = Account { anchor: self.rule.anchor_at(now), ..account };
                self.account = Some(account);
                self.check_wait(account, now, cost, wait);
                Err(wait)
            }
        }
    }

    fn charge(&mut self, account: Account, time: u64, cost: u32) {
        assert!(account.used < 1 << 32, "{account:?} fits");
        assert!(account.anchor <= time, "{account:?} begins no later than {time}");
        self.naive.grant(time, cost);
        self.account = Some(account);
        self.check_numbers(account, time);
    }

    /// Passes after exactly that long, and not a nanosecond sooner.
    fn check_wait(&self, account: Account, now: u64, cost: u32, wait: u64) {
        assert!(wait > 0);
        for (time, passes) in [(now + wait, true), (now + wait - 1, false)] {
            assert_eq!(self.naive.admits(time, cost), passes, "by the oracle, {wait} after {now}");
            let denied = matches!(self.rule.effect(account, time, cost), Effect::Deny { .. });
            assert_eq!(!denied, passes, "by the rule, {wait} after {now}");
        }
    }

    /// An account that is over at one time is over at every later one, and where it opens later it
    /// is as if the request had come later: at no time does that leave more permits.
    fn check_late_opening(&self, account: Account, now: u64, published: u64, cost: u32) {
        let effect = self.rule.effect(account, now, cost);
        assert_eq!(self.rule.effect(account, published, cost), effect);
        assert!(
            now >= self.rule.over_at(account) || self.quota.start().is_some_and(|start| start < self.quota.limit())
        );
        let Effect::Open { used } = effect else { panic!("{effect:?}") };
        let [early, late] = [now, published].map(|time| Account { anchor: self.rule.anchor_at(time), used });
        for length in lengths(self.quota) {
            let time = published.saturating_add(length);
            assert!(self.rule.remaining(late, time) <= self.rule.remaining(early, time), "{late:?} at {time}");
            assert!(self.rule.reset_after(late, time) >= self.rule.reset_after(early, time), "{late:?} at {time}");
        }
    }

    fn check_numbers(&self, account: Account, now: u64) {
        let (rule, naive) = (&self.rule, &self.naive);
        assert_eq!(rule.remaining(account, now), naive.most(now), "what remains of {account:?} at {now}");
        let reset = rule.reset_after(account, now);
        assert!(naive.is_free(u128::from(now + reset)), "all free {reset} after {now}");
        assert!(reset == 0 || !naive.is_free(u128::from(now + reset - 1)), "and not sooner");
        assert!(u128::from(reset) <= self.quota.window().as_nanos(), "never longer than the quota says");
        let remaining = naive.most(now);
        let next = rule.next_after(account, now, remaining, self.quota.limit());
        if remaining == self.quota.limit() {
            assert_eq!(next, 0, "all of it is left of {account:?} at {now}");
        } else {
            assert!(next > 0 && naive.most(now + next) > remaining, "more {next} after {now} of {account:?}");
            assert_eq!(naive.most(now + next - 1), remaining, "and not sooner");
        }
        let over_at = rule.over_at(account);
        if self.quota.start().is_some_and(|start| start < self.quota.limit()) {
            assert_eq!(over_at, u64::MAX);
        } else {
            assert_eq!(over_at.max(now), now + reset);
            if account.used > 0 {
                let opens = |time| matches!(rule.effect(account, time, 1), Effect::Open { .. });
                assert!(opens(over_at) && !opens(over_at - 1), "{account:?} is over at {over_at}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn rules_answer_as_the_oracle_does(
        quota in quota(),
        origin in prop_oneof![Just(0), Just(LATE_ORIGIN), 0..1_u64 << 61],
        after in prop_oneof![Just(0), 0..1000_u64, 0..1_u64 << 60],
        requests in requests(),
    ) {
        let mut now = origin + after;
        let mut run = Run::new(quota, origin);
        let lengths = lengths(quota);
        let length_of = |length: usize, thousandths: u64| {
            u64::try_from(u128::from(lengths[length]) * u128::from(thousandths) / 1000).expect("short enough")
        };
        let mut advised = 0;
        for request in requests {
            now = match request.gap {
                Gap::Of { length, thousandths, jitter } => {
                    (now + length_of(length, thousandths)).saturating_add_signed(jitter).max(now)
                }
                Gap::AsAdvised { jitter } => (now + advised).saturating_add_signed(jitter).max(now),
            };
            let published = now + request.late.map_or(0, |(length, thousandths)| length_of(length, thousandths));
            if published > END_OF_TIME {
                break;
            }
            if let (true, Some(account)) = (request.one_stride_ago, run.account) {
                let ago = match run.rule {
                    Rule::Bucket(bucket) => bucket.one_stride_ago(account),
                    Rule::Queue(queue) => queue.one_stride_ago(account),
                    _ => None,
                };
                run.account = Some(ago.unwrap_or(account));
            }
            let remaining = run.rule.remaining(run.account_at(now), now);
            let cost = match request.cost {
                Cost::Exactly(cost) => cost,
                Cost::Limit => quota.limit(),
                Cost::PartOfLimit(part) => u32::try_from(u64::from(quota.limit()) * u64::from(part) / 1000).expect("a part"),
                Cost::Remaining => remaining,
                Cost::PastRemaining => remaining + 1,
            };
            advised = 0;
            match run.request(now, published, cost.clamp(1, quota.limit())) {
                Ok(counts_at) => now = counts_at,
                Err(wait) => advised = wait,
            }
        }
    }

    #[test]
    fn nonsense_is_answered_without_a_panic(
        quota in quota(), origin: u64, anchor: u64, used: u32, now: u64, cost: u32,
    ) {
        let rule = Rule::of(quota, origin).expect("not a log");
        let account = Account { anchor, used: used.into() };
        let _ = (rule.effect(account, now, cost), rule.advanced(anchor), rule.opening(cost), rule.anchor_at(now));
        let _ = (rule.over_at(account), rule.remaining(account, now), rule.delay_ns(account, now));
        prop_assert!(rule.reset_after(account, now) <= rule.over_at(account));
        prop_assert!(rule.anchor_at(now) <= now);
    }
}

#[test]
fn the_log_has_no_account() {
    assert_eq!(Rule::of(Quota::per_minute(5), 0), None);
}
