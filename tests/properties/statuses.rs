//! What a status says of each quota comes true: to the nanosecond, by every algorithm, whatever
//! went before.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{
    AtKeyCap, DenialReason, DirectLimiter, Limiter, Penalty, Quota, QuotaStatus, Receipt, Reservation, Status,
};

use tollgate_kit::clocks::CountedClock;

const KEY: &str = "alice";
const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
enum Op {
    Acquire(u32),
    /// Within so many nanoseconds.
    Reserve(u32, u64),
    Refund,
    /// One of the lists of quotas.
    Change(usize),
    Advance(u64),
    /// To the next permit of the tightest quota.
    AdvanceToNext,
    Forget,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        8 => (0_u32..12).prop_map(Op::Acquire),
        3 => (1_u32..8, prop_oneof![Just(0_u64), 0_u64..200]).prop_map(|(cost, within)| Op::Reserve(cost, within)),
        2 => Just(Op::Refund),
        1 => (0_usize..4).prop_map(Op::Change),
        5 => (0_u64..40).prop_map(Op::Advance),
        2 => Just(Op::AdvanceToNext),
        1 => Just(Op::Forget),
    ];
    prop::collection::vec(op, 1..80)
}

fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

/// Quotas that may take one another's place, of one algorithm.
fn families() -> Vec<Vec<Vec<Quota>>> {
    let log = |limit, window| Quota::new(limit, ns(window));
    let counted = |limit, window| log(limit, window).counting_refused();
    let bucket = |capacity, refill, per| Quota::token_bucket(capacity, refill, ns(per));
    let steps = |limit| vec![Quota::quantised_log(limit, ns(40), ns(8))];
    let queue = |leak, per, delay| vec![Quota::leaky_queue(leak, ns(per), ns(delay))];
    let counter = |limit, window| vec![Quota::sliding_counter(limit, ns(window))];
    vec![
        vec![vec![log(5, 30)], vec![log(3, 30)], vec![log(9, 50)], vec![log(2, 7)]],
        // The second implies the third, and the first the second.
        vec![
            vec![log(3, 10), log(8, 60), log(9, 50)],
            vec![log(4, 90), log(6, 60), log(2, 5)],
            vec![log(8, 60)],
            vec![log(7, 30), log(7, 30), log(1, 3), log(20, 200)],
        ],
        vec![vec![counted(5, 30)], vec![counted(3, 30), log(8, 50)], vec![counted(9, 50)], vec![counted(2, 7)]],
        vec![vec![bucket(6, 2, 7)], vec![bucket(3, 2, 7)], vec![bucket(9, 1, 11)], vec![bucket(1, 1, 5)]],
        vec![vec![bucket(6, 2, 7).starting_with(1)], vec![bucket(6, 3, 7).starting_with(0)]],
        vec![vec![Quota::leaky_bucket(5, 3, ns(10))], vec![Quota::leaky_bucket(2, 1, ns(10))]],
        vec![queue(3, 10, 25), queue(1, 10, 0), queue(2, 7, 40)],
        vec![vec![Quota::fixed_window(4, ns(25))], vec![Quota::fixed_window(7, ns(25))]],
        vec![vec![Quota::fixed_window(4, ns(25)).aligned(ns(9))]],
        vec![counter(5, 20), counter(9, 20), counter(2, 20)],
        vec![steps(5), steps(3), steps(9)],
    ]
}

struct Run {
    clock: CountedClock,
    limiter: Limiter<str, CountedClock>,
    now: u64,
}

impl Run {
    fn new(quotas: &[Quota]) -> Self {
        let clock = CountedClock::new();
        let builder = quotas[1..].iter().fold(Limiter::<str>::builder(quotas[0]), |builder, &quota| builder.and(quota));
        Self { limiter: builder.clock(clock.clone()).build().expect("good quotas"), clock, now: 0 }
    }

    fn advance(&mut self, by: u64) {
        self.now += by;
        self.clock.set(self.now);
    }

    /// What is left of a quota at a later time, by a look.
    fn later(&self, time: u64, place: usize) -> QuotaStatus {
        self.clock.set(time);
        let status = self.limiter.peek_n(KEY, 0).expect("nothing");
        self.clock.set(self.now);
        status.quotas().nth(place).expect("as many quotas")
    }

    /// All that a status says of now, by looks at later times.
    fn check(&self, status: Status, cost: u32) -> Result<(), TestCaseError> {
        let quotas = self.limiter.quotas();
        prop_assert_eq!(status.quotas().len(), quotas.len());
        for (place, (left, quota)) in status.quotas().zip(&*quotas).enumerate() {
            prop_assert_eq!((left.quota(), left.limit()), (place, quota.limit()));
            let looked = self.later(self.now, place);
            prop_assert_eq!(told(left), told(looked), "as a look says");
            let is_violated = status.is_denied() && left.remaining() < cost;
            prop_assert_eq!((left.is_violated(), looked.is_violated()), (is_violated, false));
            let [next, reset] = [left.next_after(), left.reset_after()].map(|wait| self.now + nanos(wait));
            if left.remaining() == left.limit() {
                prop_assert_eq!(next, self.now, "{:?} has nothing to wait for", left);
            } else {
                prop_assert!(next > self.now, "{left:?}");
                prop_assert_eq!(self.later(next - 1, place).remaining(), left.remaining(), "before {:?}", left);
                prop_assert!(self.later(next, place).remaining() > left.remaining(), "after {left:?}");
            }
            let all = self.later(reset, place);
            prop_assert_eq!((all.remaining(), all.reset_after()), (all.limit(), Duration::ZERO), "after {:?}", left);
            if reset > self.now {
                prop_assert!(self.later(reset - 1, place).reset_after() == ns(1), "before the end of {left:?}");
            }
        }
        let tightness = |left: &QuotaStatus| (left.remaining(), core::cmp::Reverse(left.next_after()), left.quota());
        let tightest = status.quotas().min_by_key(tightness);
        prop_assert_eq!(status.tightest(), tightest);
        Ok(())
    }
}

fn told(left: QuotaStatus) -> (u32, u32, Duration, Duration) {
    (left.limit(), left.remaining(), left.next_after(), left.reset_after())
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("short")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn statuses_come_true(family in 0_usize..11, first in 0_usize..4, ops in ops()) {
        let family = &families()[family];
        let mut run = Run::new(&family[first % family.len()]);
        // A bucket that does not start full is filled from its first request on.
        let _ = run.limiter.try_acquire(KEY);
        let mut receipts: Vec<Receipt> = Vec::new();
        for op in ops {
            let most = run.limiter.quotas().iter().map(Quota::limit).min().expect("a quota");
            match op {
                Op::Acquire(cost) => {
                    let status = match cost {
                        1 => run.limiter.try_acquire_status(KEY),
                        _ => run.limiter.try_acquire_n_status(KEY, cost.min(most)).expect("at most the limit"),
                    };
                    run.check(status, cost.min(most))?;
                }
                Op::Reserve(cost, within) => {
                    let reserved = run.limiter.reserve(KEY, cost.min(most), ns(within));
                    receipts.extend(reserved.ok().map(Reservation::commit));
                }
                Op::Refund => {
                    let refunded = receipts.pop().map(|receipt| run.limiter.refund(receipt));
                    prop_assert!(refunded.is_none_or(|refunded| refunded.is_ok()));
                }
                Op::Change(quotas) => {
                    run.limiter.set_quotas(&family[quotas % family.len()]).expect("of the same algorithm");
                }
                Op::Advance(by) => run.advance(by),
                Op::AdvanceToNext => {
                    let next = run.limiter.peek(KEY).next_after();
                    run.advance(nanos(next));
                }
                Op::Forget => {
                    receipts.clear();
                    let _ = (run.limiter.forget(KEY), run.limiter.try_acquire(KEY));
                }
            }
            run.check(run.limiter.peek_n(KEY, 0).expect("nothing"), 0)?;
        }
    }
}

fn numbers(status: Status) -> Vec<(u32, u32, Duration, Duration)> {
    let numbers = |left: QuotaStatus| (left.limit(), left.remaining(), left.next_after(), left.reset_after());
    status.quotas().map(numbers).collect()
}

#[test]
fn each_number_is_of_one_quota() {
    let clock = CountedClock::new();
    let quotas = [Quota::per_second(10), Quota::per_minute(100), Quota::per_minute(200)];
    let limiter = DirectLimiter::with_quotas(&quotas, clock.clone()).unwrap();
    let (minute, tenth) = (60 * SECOND, SECOND / 10);
    assert_eq!(numbers(limiter.try_acquire_status())[..2], [(10, 9, SECOND, SECOND), (100, 99, minute, minute)]);
    clock.advance(tenth);
    let status = limiter.try_acquire_n_status(3).unwrap();
    let second = (10, 6, SECOND - tenth, SECOND);
    assert_eq!(
        numbers(status.clone()),
        [second, (100, 96, minute - tenth, minute), (200, 196, minute - tenth, minute)]
    );
    let told = (status.limit(), status.remaining(), status.next_after(), status.reset_after());
    assert_eq!((status.tightest().map(|quota| quota.quota()), told), (Some(0), second));
    clock.advance(SECOND);
    // All ten are free, and of the hundred four are not.
    assert_eq!(numbers(limiter.peek())[0], (10, 10, Duration::ZERO, Duration::ZERO));
    assert_eq!((limiter.peek().limit(), limiter.peek().reset_after()), (10, Duration::ZERO));
}

#[test]
fn of_two_that_leave_as_many_the_slower_is_tighter_and_then_the_first() {
    let tightest = |quotas: &[Quota]| {
        let limiter = DirectLimiter::with_quotas(quotas, CountedClock::new()).unwrap();
        let _ = limiter.try_acquire();
        limiter.peek().tightest().unwrap().quota()
    };
    let [second, minute] = [Quota::per_second(5), Quota::per_minute(5)];
    assert_eq!(tightest(&[second, minute]), 1);
    assert_eq!(tightest(&[minute, second]), 0);
    assert_eq!(tightest(&[second, minute, minute]), 1);
}

#[test]
fn decisions_without_a_quota_have_true_statuses() {
    let clock = CountedClock::new();
    let two = || Limiter::<str>::builder(Quota::per_minute(5)).and(Quota::per_second(2)).clock(clock.clone());
    let minute = 60 * SECOND;
    let all = [(5, 5, Duration::ZERO, Duration::ZERO), (2, 2, Duration::ZERO, Duration::ZERO)];
    let none_for = |wait| [(5, 0, wait, wait), (2, 0, wait, wait)];

    let listed = two().list_cap(2).build().unwrap();
    listed.allow("monitor").unwrap();
    listed.deny("mallory").unwrap();
    let allowed = listed.try_acquire_status("monitor");
    assert!(allowed.is_admitted());
    assert_eq!(numbers(allowed), all, "nothing is charged");
    assert_eq!(numbers(listed.try_acquire_status("mallory")), none_for(Duration::MAX));

    for (at_cap, right) in [(AtKeyCap::Admit, all), (AtKeyCap::Deny, none_for(minute))] {
        let full = two().key_cap(1).at_key_cap(at_cap).build().unwrap();
        assert!(full.try_acquire("alice").is_admitted());
        for status in [full.peek("bob"), full.try_acquire_status("bob")] {
            let wait = status.retry_after();
            match wait {
                None => assert_eq!(numbers(status), right),
                Some(wait) => assert_eq!(numbers(status), none_for(wait)),
            }
            assert_eq!(wait.is_some(), at_cap == AtKeyCap::Deny);
        }
    }

    let strict = two().penalty(Penalty::new(1, minute, 10 * SECOND)).build().unwrap();
    assert!(strict.try_acquire_n("alice", 2).unwrap().is_admitted());
    let blocked = strict.try_acquire_status("alice");
    assert_eq!(blocked.decision().into_result().unwrap_err().reason(), DenialReason::Penalty);
    // What is left of the first quota is there once the block has ended; of the second it would be
    // there sooner.
    let wait = 10 * SECOND;
    assert_eq!(numbers(blocked), [(5, 0, wait, minute), (2, 0, wait, wait)]);

    let shadow = two().shadow(true).build().unwrap();
    assert!(shadow.try_acquire_n("alice", 2).unwrap().is_admitted());
    let overruled = shadow.try_acquire_status("alice");
    assert!(overruled.is_admitted());
    assert_eq!(numbers(overruled), [(5, 3, minute, minute), (2, 0, SECOND, SECOND)]);
}

#[test]
fn a_key_of_eight_quotas_is_told_of_all() {
    let quotas: Vec<Quota> = (1..=8).map(|nth| Quota::new(nth, nth * SECOND)).collect();
    let limiter = DirectLimiter::with_quotas(&quotas, CountedClock::new()).unwrap();
    let status = limiter.try_acquire_status();
    assert!(status.is_admitted());
    let right = (1..=8_u32).map(|nth| (nth, nth - 1, nth * SECOND, nth * SECOND));
    assert_eq!(numbers(status.clone()), right.collect::<Vec<_>>());
    assert_eq!(numbers(limiter.peek_n(0).unwrap()), numbers(status.clone()));
    let text = format!("{status:?}");
    assert_eq!(text.matches("limit").count(), 8, "{text}");
}
