//! A limiter with a penalty and lists, the same one in shadow mode, and the oracle: the same
//! operations on one clock.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use tollgate::{Decision, Denial, DenialReason, Limiter, ListError, Quota, Status};

use tollgate_kit::clocks::CountedClock;

use crate::naive::{self, Answer, Numbers, Oracle, Rule, Why};
use crate::penalties;

#[derive(Debug, Clone, Copy)]
enum Op {
    Acquire {
        key: u32,
        cost: usize,
    },
    Status {
        key: u32,
        cost: usize,
    },
    Peek {
        key: u32,
        cost: usize,
    },
    Allow(u32),
    Deny(u32),
    Unlist(u32),
    Forget(u32),
    Clear,
    /// By this many times a window of the quota, of the penalty's denials, its first or longest block, or
    /// the quiet time, and so much more or less.
    Advance {
        which: usize,
        times: u64,
        more: i64,
    },
    /// To when the key's next request is said to succeed, and so much more or less.
    AdvanceToRetry {
        key: u32,
        cost: usize,
        more: i64,
    },
}

fn ops() -> impl Strategy<Value = Op> {
    let key = || 0_u32..4;
    let cost = || prop_oneof![6 => Just(1_usize), 1 => Just(0), 2 => 0_usize..4];
    prop_oneof![
        24 => (key(), cost()).prop_map(|(key, cost)| Op::Acquire { key, cost }),
        8 => (key(), cost()).prop_map(|(key, cost)| Op::Status { key, cost }),
        4 => (key(), cost()).prop_map(|(key, cost)| Op::Peek { key, cost }),
        1 => key().prop_map(Op::Allow),
        1 => key().prop_map(Op::Deny),
        2 => key().prop_map(Op::Unlist),
        1 => key().prop_map(Op::Forget),
        4 => (0_usize..5, 0_u64..3, -1_i64..=1).prop_map(|(which, times, more)| Op::Advance { which, times, more }),
        4 => (key(), cost(), -1_i64..=1).prop_map(|(key, cost, more)| Op::AdvanceToRetry { key, cost, more }),
    ]
}

fn nasty_ops() -> impl Strategy<Value = Op> {
    prop_oneof![60 => ops(), 1 => Just(Op::Clear)]
}

struct Three {
    clock: CountedClock,
    now: u64,
    strict: Limiter<u32, CountedClock>,
    shadow: Limiter<u32, CountedClock>,
    oracle: Oracle,
    lengths: [u64; 5],
    /// Admitted, and denied.
    decisions: (u64, u64),
    /// Requests of a cost above the limit, which the shadow overruled.
    too_large: u64,
}

impl Three {
    fn new(rules: &[Rule], penalty: naive::Penalty, list_cap: usize, start: u64) -> Self {
        let clock = CountedClock::new();
        clock.set(start);
        let limiter = |shadow: bool| {
            let quota = |rule: &Rule| Quota::new(number(rule.limit), Duration::from_nanos(rule.window));
            let builder = Limiter::<u32>::builder(quota(&rules[0]))
                .penalty(penalties::of_library(penalty))
                .list_cap(list_cap)
                .shadow(shadow)
                .count_decisions(true)
                .clock(clock.clone());
            rules[1..].iter().fold(builder, |builder, rule| builder.and(quota(rule))).build().expect("good")
        };
        let (strict, shadow) = (limiter(false), limiter(true));
        let oracle = Oracle::new(rules, penalty, list_cap);
        let (_, longest, quiet_for) = penalty.growth.unwrap_or_default();
        let lengths = [rules[0].window, penalty.within, penalty.blocked_for, longest, quiet_for];
        Self { clock, now: start, strict, shadow, oracle, lengths, decisions: (0, 0), too_large: 0 }
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Acquire { key, cost } => self.acquire(key, cost, false),
            Op::Status { key, cost } => self.acquire(key, cost, true),
            Op::Peek { key, cost } => {
                let [strict, shadow] = [&self.strict, &self.shadow].map(|it| it.peek_n(key, number(cost)));
                if self.oracle.has_answer(key, cost) {
                    let right = self.oracle.peek(key, self.now, cost);
                    self.compare(right, strict.expect("fits"), shadow.expect("fits"));
                }
            }
            Op::Allow(key) => {
                let right = self.oracle.list(key, true);
                let said = [&self.strict, &self.shadow].map(|it| it.allow(key));
                assert_eq!(said.map(listed), [right; 2], "allow {key}");
            }
            Op::Deny(key) => {
                let right = self.oracle.list(key, false);
                let said = [&self.strict, &self.shadow].map(|it| it.deny(key));
                assert_eq!(said.map(listed), [right; 2], "deny {key}");
            }
            Op::Unlist(key) => {
                let right = self.oracle.unlist(key);
                assert_eq!([&self.strict, &self.shadow].map(|it| it.unlist(key)), [right; 2], "unlist {key}");
            }
            Op::Forget(key) => {
                self.oracle.forget(key);
                let _ = [&self.strict, &self.shadow].map(|it| it.forget(key));
            }
            Op::Clear => {
                self.oracle.clear();
                self.strict.clear();
                self.shadow.clear();
            }
            Op::Advance { which, times, more } => {
                self.advance((self.lengths[which] * times).saturating_add_signed(more));
            }
            Op::AdvanceToRetry { key, cost, more } if cost <= self.oracle.limit() => {
                if let (Answer::Denied(_, Some(wait)), _) = self.oracle.peek(key, self.now, cost) {
                    self.advance(wait.saturating_add_signed(more));
                }
            }
            Op::AdvanceToRetry { .. } => {}
        }
        for limiter in [&self.strict, &self.shadow] {
            let counts = limiter.counts();
            let decisions = counts.decisions.expect("asked for");
            assert_eq!((decisions.admitted, decisions.denied), self.decisions);
            assert_eq!((counts.penalties, counts.penalties_refused), (self.oracle.penalties, 0));
            assert_eq!(counts.listed, self.oracle.allowed.len() + self.oracle.barred.len());
        }
        assert_eq!(
            (self.strict.counts().overruled, self.shadow.counts().overruled),
            (0, self.decisions.1 + self.too_large)
        );
    }

    fn advance(&mut self, by: u64) {
        self.now += by;
        self.clock.set(self.now);
    }

    fn acquire(&mut self, key: u32, cost: usize, with_numbers: bool) {
        let cost_asked = number(cost);
        if !self.oracle.has_answer(key, cost) {
            assert!(self.strict.try_acquire_n(key, cost_asked).is_err());
            let shadow = self.shadow.try_acquire_n(key, cost_asked).expect("a shadow has an answer");
            assert_eq!(told(shadow), Answer::Denied(Why::Quota, None));
            self.too_large += 1;
            return;
        }
        let right = self.oracle.acquire(key, self.now, cost);
        if cost > 0 {
            let denied = u64::from(matches!(right.0, Answer::Denied(..)));
            self.decisions = (self.decisions.0 + 1 - denied, self.decisions.1 + denied);
        }
        if with_numbers {
            let [strict, shadow] =
                [&self.strict, &self.shadow].map(|it| it.try_acquire_n_status(key, cost_asked).expect("fits"));
            self.compare(right, strict, shadow);
        } else {
            let [strict, shadow] =
                [&self.strict, &self.shadow].map(|it| it.try_acquire_n(key, cost_asked).expect("fits"));
            self.compare_decisions(right.0, strict, shadow);
        }
    }

    fn compare(&self, (answer, numbers): (Answer, Numbers), strict: Status, shadow: Status) {
        self.compare_decisions(answer, strict.decision(), shadow.decision());
        let wait = |wait: Duration| (wait != Duration::MAX).then(|| nanos(wait));
        for status in [strict, shadow] {
            let said = status.quotas().map(|quota| {
                let remaining = usize::try_from(quota.remaining()).expect("few");
                (remaining, wait(quota.next_after()), wait(quota.reset_after()))
            });
            let said: Vec<_> = said.collect();
            assert_eq!(said, numbers, "(remaining, next, reset) after {answer:?} at {}", self.now);
        }
    }

    fn compare_decisions(&self, right: Answer, strict: Decision, shadow: Decision) {
        assert_eq!(told(strict), right, "at {} by the strict one", self.now);
        assert_eq!(strict.is_denied(), matches!(right, Answer::Denied(..)));
        assert!(shadow.is_admitted(), "a shadow denies nobody");
        assert_eq!(told(shadow), right, "at {} by the shadow", self.now);
    }
}

/// What a decision says; of a shadow, what it would have said.
fn told(decision: Decision) -> Answer {
    let denied = |denial: Denial| {
        let why = match denial.reason() {
            DenialReason::Quota => Why::Quota,
            DenialReason::Penalty => Why::Penalty(denial.block().expect("a number")),
            DenialReason::DenyList => Why::DenyList,
            other => panic!("{other:?}"),
        };
        let wait = denial.retry_after();
        Answer::Denied(why, (wait != Duration::MAX).then(|| nanos(wait)))
    };
    match decision {
        Decision::Denied(denial) => denied(denial),
        Decision::Admitted(admission) => match (admission.is_counted(), admission.overruled()) {
            (true, None) => Answer::Charged,
            (false, None) => Answer::Uncharged,
            (false, Some(denial)) => denied(denial),
            (true, Some(_)) => panic!("charged, and overruled"),
        },
    }
}

fn listed(said: Result<bool, ListError>) -> Option<bool> {
    match said {
        Ok(new) => Some(new),
        Err(ListError::Full { .. }) => None,
        Err(other) => panic!("{other}"),
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("few")
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("few")
}

fn penalties() -> impl Strategy<Value = naive::Penalty> {
    penalties::penalties(1..5, || prop_oneof![Just(1_u64), Just(10), Just(35), Just(1000), 1_u64..200])
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let rule = (1_usize..4, prop_oneof![Just(1_u64), Just(10), Just(100), 1_u64..300]);
    prop::collection::vec(rule.prop_map(|(limit, window)| Rule { limit, window }), 1..=2)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_same_answers_to_the_nanosecond(
        rules in rules(),
        penalty in penalties(),
        list_cap in 1_usize..6,
        start in prop_oneof![Just(0_u64), Just(1), 0..1_u64 << 58],
        ops in prop::collection::vec(nasty_ops(), 1..200),
    ) {
        let mut three = Three::new(&rules, penalty, list_cap, start);
        for op in ops {
            three.apply(op);
        }
    }
}
