//! Reserving, giving back and settling, against a naive account of each algorithm: the same
//! requests at the same times must get the same answers, to the nanosecond; and so must they while
//! quotas change. The clock moves on with each operation, or it stands still but for the operations
//! that move it.

use std::time::Duration;

use tollgate_kit::oracle::meter::Meter;
use tollgate_kit::reservations::account::Account;
use tollgate_kit::reservations::{Naive, Number};

use proptest::prelude::*;
use tollgate::{Limiter, Quota, Receipt};

use tollgate_kit::clocks::CountedClock;

const KEY: &str = "alice";

fn nanos(count: u64) -> Duration {
    Duration::from_nanos(count)
}

#[derive(Debug, Clone)]
enum Op {
    Acquire(u32),
    /// And keep it, or cancel it at once.
    Reserve {
        cost: u32,
        within: u64,
        keep: bool,
    },
    /// One of the receipts that are there.
    Refund(prop::sample::Index),
    /// One of them costs so many permits.
    Settle(prop::sample::Index, u32),
    Forget,
    Pass(u64),
    /// So many requests, each as soon as it is admitted.
    Stream {
        cost: u32,
        count: usize,
    },
    /// The quotas of all keys become others of those that there are.
    Change(usize),
    /// Those of this key do, and no longer follow the others.
    ChangeOwn(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let within = || prop_oneof![Just(0_u64), 0..20_u64, 0..200_u64, Just(u64::MAX)];
    let op = prop_oneof![
        4 => (1..5_u32).prop_map(Op::Acquire),
        6 => (0..5_u32, within(), prop::bool::weighted(0.8)).prop_map(|(cost, within, keep)| Op::Reserve { cost, within, keep }),
        5 => any::<prop::sample::Index>().prop_map(Op::Refund),
        4 => (any::<prop::sample::Index>(), prop_oneof![0..5_u32, 0..40_u32]).prop_map(|(index, actual)| Op::Settle(index, actual)),
        1 => Just(Op::Forget),
        4 => prop_oneof![0..4_u64, 0..40_u64, 0..300_u64].prop_map(Op::Pass),
        1 => (0..3_usize).prop_map(Op::Change),
        1 => (0..3_usize).prop_map(Op::ChangeOwn),
    ];
    prop::collection::vec(op, 1..60)
}

/// A receipt, the number by which the naive account knows the charge, its permits, and how many
/// permits had been asked for by then.
struct Held {
    receipt: Receipt,
    number: Number,
    cost: u32,
    asked: u32,
}

/// A bucket and a queue know a receipt through so many further permits at least.
const KNOWN_THROUGH: u32 = 1 << 18;

/// Quotas and a naive account of a key under them.
struct Way {
    quotas: Vec<Quota>,
    fresh: Box<dyn Fn() -> Account>,
}

/// What a request is told, and what the naive account says to it.
type Answers = [Result<Duration, Duration>; 2];

fn acquire(limiter: &Limiter<str, CountedClock>, key: &mut Account, now: u64, cost: u32) -> Answers {
    let decision = limiter.try_acquire_n(KEY, cost).expect("no more than the limit");
    let told = match decision.into_result() {
        Ok(admission) => Ok(admission.delay()),
        Err(denial) => Err(denial.retry_after()),
    };
    [told, key.request(now, cost, None).map(|(delay, _)| nanos(delay)).map_err(nanos)]
}

/// With each operation the clock moves on by a tick.
fn agree(ways: &[Way], tick: u64, ops: &[Op]) -> Result<(), TestCaseError> {
    let (clock, mut way, mut has_own) = (CountedClock::new(), &ways[0], false);
    let mut builder = Limiter::<str>::builder(way.quotas[0]).clock(clock.clone()).keys_with_quotas(2);
    for &quota in &way.quotas[1..] {
        builder = builder.and(quota);
    }
    let limiter = builder.build().expect("quotas that are allowed");
    let most = |way: &Way| way.quotas.iter().map(Quota::limit).min().expect("a quota");
    let (mut account, mut held, mut now, mut asked) = (Some((way.fresh)()), Vec::<Held>::new(), 0_u64, 0_u32);
    for (step, op) in ops.iter().enumerate() {
        clock.advance(nanos(tick));
        now += tick;
        let limit = most(way);
        let key = account.as_mut().expect("it is put back");
        match *op {
            Op::Acquire(cost) => {
                let cost = cost.min(limit);
                asked += cost;
                let [told, expected] = acquire(&limiter, key, now, cost);
                prop_assert_eq!(told, expected, "step {} at {}: {:?}", step, now, op);
            }
            Op::Stream { cost, count } => {
                let cost = cost.min(limit);
                for request in 0..count {
                    let [told, expected] = acquire(&limiter, key, now, cost);
                    prop_assert_eq!(told, expected, "request {} of step {} at {}: {:?}", request, step, now, op);
                    match told {
                        Ok(_) => asked += cost,
                        Err(wait) => {
                            clock.advance(wait);
                            now += u64::try_from(wait.as_nanos()).expect("soon");
                        }
                    }
                }
                held.retain(|held| asked - held.asked < KNOWN_THROUGH);
            }
            Op::Reserve { cost, within, keep } => {
                let cost = cost.min(limit);
                asked += cost;
                let peeked = limiter.peek_reserve(KEY, cost, nanos(within)).expect("within the limit").decision();
                let peeked = peeked.into_result().map(|it| it.delay()).map_err(|it| it.retry_after());
                // Of no permits, there is none to be found.
                let none = (0, Number::MAX);
                let expected = if cost == 0 { Ok(none) } else { key.request(now, cost, Some(within)) };
                let answer = expected.map(|(delay, _)| nanos(delay)).map_err(nanos);
                prop_assert_eq!(peeked, answer, "a peek in step {} at {}: {:?}", step, now, op);
                match (limiter.reserve(KEY, cost, nanos(within)), expected) {
                    (Ok(reservation), Ok((delay, number))) => {
                        prop_assert_eq!(reservation.delay(), nanos(delay), "step {} at {}: {:?}", step, now, op);
                        if keep {
                            held.push(Held { receipt: reservation.commit(), number, cost, asked });
                        } else {
                            prop_assert_eq!(
                                reservation.cancel(),
                                key.refund(now, number, 0),
                                "step {} at {}: {:?}",
                                step,
                                now,
                                op
                            );
                        }
                    }
                    (told, expected) => {
                        let told = told.map(|reservation| drop(reservation.commit()));
                        let wait = told.err().and_then(|error| error.denial()).map(|denial| denial.retry_after());
                        prop_assert_eq!(wait, expected.err().map(nanos), "step {} at {}: {:?}", step, now, op);
                    }
                }
            }
            Op::Refund(index) if !held.is_empty() => {
                let Held { receipt, number, .. } = held.swap_remove(index.index(held.len()));
                let back = limiter.refund(receipt).expect("of this limiter");
                prop_assert_eq!(back, key.refund(now, number, 0), "step {} at {}: {:?} of {}", step, now, op, number);
            }
            Op::Settle(index, actual) if !held.is_empty() => {
                let Held { receipt, number, cost, .. } = held.swap_remove(index.index(held.len()));
                asked += actual;
                let charged = limiter.settle(receipt, actual).expect("of this limiter");
                prop_assert_eq!(
                    charged,
                    key.settle(now, number, cost, actual),
                    "step {} at {}: {:?} of {}",
                    step,
                    now,
                    op,
                    number
                );
            }
            Op::Refund(_) | Op::Settle(..) => {}
            Op::Forget => {
                limiter.forget(KEY);
                account = Some((way.fresh)());
                for gone in held.drain(..) {
                    prop_assert_eq!(limiter.refund(gone.receipt).expect("of this limiter"), 0);
                }
            }
            Op::Change(which) => {
                let all = &ways[which % ways.len()];
                limiter.set_quotas(&all.quotas).expect("they can be used");
                // The same quotas again are no change.
                if !has_own && way.quotas != all.quotas {
                    way = all;
                    account = account.map(|account| account.changed(now, (way.fresh)()));
                }
            }
            Op::ChangeOwn(which) => {
                let own = &ways[which % ways.len()];
                limiter.set_quotas_of(KEY, &own.quotas).expect("they can be used");
                if !has_own || way.quotas != own.quotas {
                    (has_own, way) = (true, own);
                    account = account.map(|account| account.changed(now, (way.fresh)()));
                }
            }
            Op::Pass(by) => {
                clock.advance(nanos(by));
                now += by;
            }
        }
        prop_assert_eq!(
            limiter.peek_n(KEY, 0).expect("a look").remaining(),
            account.as_ref().expect("it is put back").remaining(now),
            "step {} at {}: {:?}",
            step,
            now,
            op
        );
    }
    Ok(())
}

fn cases() -> ProptestConfig {
    ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() }
}

/// One to three ways for a quota to be.
fn ways<P: std::fmt::Debug>(one: impl Strategy<Value = P>) -> impl Strategy<Value = Vec<P>> {
    prop::collection::vec(one, 1..4)
}

fn logs(quotas: &[Vec<(u32, u64)>], counts_refused: bool) -> Vec<Way> {
    let way = |quotas: &Vec<(u32, u64)>| {
        let quota = |&(limit, window)| {
            let quota = Quota::new(limit, nanos(window));
            if counts_refused { quota.counting_refused() } else { quota }
        };
        let (given, quotas) = (quotas.iter().map(quota).collect(), quotas.clone());
        let fresh = move || Account::of_logs(quotas.clone(), counts_refused);
        Way { quotas: given, fresh: Box::new(fresh) }
    };
    quotas.iter().map(way).collect()
}

/// Without changes to an earlier way: if an aligned window is changed and changed back, a receipt of
/// before may refund a later permit of the same window.
fn no_way_back(mut ops: Vec<Op>, ways: usize) -> Vec<Op> {
    let mut latest = 0;
    ops.retain(|op| match *op {
        Op::Change(which) | Op::ChangeOwn(which) => {
            let is_forward = which % ways >= latest;
            latest = latest.max(which % ways);
            is_forward
        }
        _ => true,
    });
    ops
}

/// No cost turns out to be less than the receipt's.
fn without_refunds(ops: Vec<Op>) -> Vec<Op> {
    let without = |op| match op {
        Op::Refund(_) => None,
        Op::Settle(index, actual) => Some(Op::Settle(index, actual + 5)),
        op => Some(op),
    };
    ops.into_iter().filter_map(without).collect()
}

fn meters(meters: impl IntoIterator<Item = Meter>) -> Vec<Way> {
    let way = |meter: Meter| Way { quotas: vec![meter.quota()], fresh: Box::new(move || Account::of(meter, 0)) };
    meters.into_iter().map(way).collect()
}

fn buckets(quotas: Vec<(u32, u32, u64)>, starts_with: u32) -> Vec<Way> {
    let bucket =
        |(capacity, refill, per)| Meter::TokenBucket { capacity, refill, per, start: starts_with.min(capacity) };
    meters(quotas.into_iter().map(bucket))
}

/// Some of them ask for as much as a bucket holds, many times over.
fn ops_and_streams() -> impl Strategy<Value = Vec<Op>> {
    let stream = prop_oneof![
        (1..5_u32, 0..3000_usize).prop_map(|(cost, count)| Op::Stream { cost, count }),
        (1..u32::MAX, 0..30_usize).prop_map(|(cost, count)| Op::Stream { cost, count }),
    ];
    (ops(), prop::collection::vec(stream, 1..4)).prop_flat_map(|(mut ops, streams)| {
        ops.extend(streams);
        Just(ops).prop_shuffle()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..cases() })]

    /// Thousands of permits between a charge and its refund, and hundreds of thousands.
    #[test]
    fn a_bucket_for_long(
        quota in (prop_oneof![1..12_u32, 1..50_000_u32], 1..4_u32, 1..30_u64),
        tick in 0..2_u64,
        ops in ops_and_streams(),
    ) {
        agree(&buckets(vec![quota], u32::MAX), tick, &ops)?;
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_log(quotas in ways((1..12_u32, 1..60_u64).prop_map(|one| vec![one])), tick in 0..2_u64, ops in ops()) {
        agree(&logs(&quotas, false), tick, &ops)?;
    }

    #[test]
    fn several_logs(quotas in ways(prop::collection::vec((1..12_u32, 1..90_u64), 1..4)), tick in 0..2_u64, ops in ops()) {
        agree(&logs(&quotas, false), tick, &ops)?;
    }

    /// All have a quota with the largest limit: of what a larger one than any before would count, not
    /// all is remembered.
    #[test]
    fn logs_that_count_refused_requests(
        first in (1..12_u32, 1..90_u64),
        others in prop::collection::vec(prop::collection::vec((1..12_u32, 1..90_u64), 1..4), 0..3),
        tick in 0..2_u64,
        ops in ops(),
    ) {
        let (most, _) = first;
        let no_more = |mut quotas: Vec<(u32, u64)>| {
            quotas.iter_mut().for_each(|(limit, _)| *limit = most.min(*limit));
            quotas[0].0 = most;
            quotas
        };
        let quotas: Vec<_> = core::iter::once(vec![first]).chain(others.into_iter().map(no_more)).collect();
        // Permits and refused requests of one stamp are not told apart: `refused_against_oracle` has refunds.
        agree(&logs(&quotas, true), tick, &without_refunds(ops))?;
    }

    #[test]
    fn a_bucket(
        quotas in ways((1..12_u32, 1..4_u32, 1..30_u64)), starts_with in 0..12_u32, tick in 0..2_u64, ops in ops(),
    ) {
        agree(&buckets(quotas, starts_with), tick, &ops)?;
    }

    #[test]
    fn a_queue(quotas in ways((1..4_u32, 1..30_u64, 0..100_u64)), tick in 0..2_u64, ops in ops()) {
        let queue = |(leak, per, max_delay)| Meter::LeakyQueue { leak, per, max_delay };
        agree(&meters(quotas.into_iter().map(queue)), tick, &ops)?;
    }

    #[test]
    fn a_window(quotas in ways((1..12_u32, 1..60_u64)), phase in prop::option::of(0..100_u64), tick in 0..2_u64, ops in ops()) {
        let phase = phase.map(u128::from);
        let window = |(limit, window)| Meter::FixedWindow { limit, window, phase };
        let ops = no_way_back(ops, quotas.len());
        agree(&meters(quotas.into_iter().map(window)), tick, &ops)?;
    }

    #[test]
    fn a_window_of_another_phase(
        ways in ways((1..12_u32, 0..100_u64)), window in 1..60_u64, tick in 0..2_u64, ops in ops(),
    ) {
        let ops = no_way_back(ops, ways.len());
        let window = |(limit, phase): (u32, u64)| Meter::FixedWindow { limit, window, phase: Some(phase.into()) };
        agree(&meters(ways.into_iter().map(window)), tick, &ops)?;
    }

    #[test]
    fn a_quantised_log(limits in ways(1..12_u32), resolution in 1..9_u64, steps in 1..9_u64, tick in 0..2_u64, ops in ops()) {
        let log = |limit| Meter::QuantisedLog { limit, window: resolution * steps, resolution };
        agree(&meters(limits.into_iter().map(log)), tick, &ops)?;
    }

    #[test]
    fn a_counter(quotas in ways((1..12_u32, 1..60_u64)), tick in 0..2_u64, ops in ops()) {
        let counter = |(limit, window)| Meter::SlidingCounter { limit, window, phase: 0 };
        // Counts that a change moves to other windows are not refunded.
        let changes = ops.iter().any(|op| matches!(op, Op::Change(_) | Op::ChangeOwn(_)));
        let ops = if changes { without_refunds(ops) } else { ops };
        agree(&meters(quotas.into_iter().map(counter)), tick, &ops)?;
    }
}
