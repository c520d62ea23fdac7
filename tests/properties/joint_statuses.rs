//! A status of several dimensions, against a limiter of its own for each of their quotas.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{Decision, JointLimiter, Limiter, Quota, QuotaStatus, Status};

use tollgate_kit::clocks::CountedClock;

#[derive(Debug, Clone)]
struct Op {
    /// The key of each dimension, if it is asked.
    keys: [Option<u8>; 3],
    cost: u32,
    is_peek: bool,
    /// Nanoseconds until the next request.
    advance: u64,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let keys = prop::array::uniform3(prop::option::weighted(0.8, 0_u8..3));
    let op = (keys, 0_u32..4, prop::bool::weighted(0.3), prop_oneof![Just(0_u64), 0_u64..25]);
    let op = op.prop_map(|(keys, cost, is_peek, advance)| Op { keys, cost, is_peek, advance });
    prop::collection::vec(op.prop_filter("nothing is asked", |op| op.keys.iter().any(Option::is_some)), 1..60)
}

fn log(limit: u32, window: u64) -> Quota {
    Quota::new(limit, Duration::from_nanos(window))
}

fn families() -> Vec<[Vec<Quota>; 3]> {
    let ns = Duration::from_nanos;
    // More quotas than a status holds without an allocation.
    let eight = |least: u32| (0..8).map(|nth| log(least + nth, 10 + 20 * u64::from(nth))).collect::<Vec<_>>();
    vec![
        [vec![log(5, 30)], vec![log(4, 50)], vec![log(9, 70)]],
        [vec![log(3, 10), log(8, 60)], vec![log(6, 20)], vec![log(4, 5), log(7, 40), log(9, 80)]],
        [vec![Quota::token_bucket(6, 2, ns(7))], vec![log(5, 20)], vec![Quota::fixed_window(7, ns(25))]],
        [
            vec![Quota::sliding_counter(5, ns(20))],
            vec![Quota::leaky_bucket(5, 3, ns(10))],
            vec![log(3, 10), log(5, 30)],
        ],
        [vec![Quota::leaky_queue(3, ns(10), ns(25))], vec![log(4, 30)], vec![Quota::leaky_queue(2, ns(7), ns(40))]],
        [eight(3), eight(4), eight(5)],
    ]
}

/// A limiter for one quota of one dimension.
struct Single {
    dimension: usize,
    quota: usize,
    limiter: Limiter<u8, CountedClock>,
}

fn singles(family: &[Vec<Quota>; 3], clock: &CountedClock) -> Vec<Single> {
    let each = family.iter().enumerate().flat_map(|(dimension, quotas)| {
        quotas.iter().enumerate().map(move |(quota, &given)| {
            let limiter = Limiter::builder(given).clock(clock.clone()).build().expect("valid");
            Single { dimension, quota, limiter }
        })
    });
    each.collect()
}

/// The numbers of a quota: its dimension and place, its limit, and the permits that remain and when
/// there are more.
type Numbers = (usize, usize, u32, u32, Duration, Duration);

fn numbers(dimension: usize, quota: usize, status: QuotaStatus) -> Numbers {
    (dimension, quota, status.limit(), status.remaining(), status.next_after(), status.reset_after())
}

fn agree(op: &Op, singles: &[Single], status: &Status) -> Result<(), TestCaseError> {
    let asked = || singles.iter().filter_map(|single| Some((single, op.keys[single.dimension]?)));
    let in_the_way: Vec<_> = asked()
        .filter_map(|(single, key)| {
            let wait = single.limiter.peek_n(key, op.cost).expect("within the limit").retry_after()?;
            Some((single.dimension, single.quota, wait))
        })
        .collect();
    prop_assert_eq!(status.is_admitted(), in_the_way.is_empty());
    let longest = in_the_way.iter().map(|&(.., wait)| wait).max();
    prop_assert_eq!(status.retry_after(), longest);
    if let Decision::Denied(denial) = status.decision() {
        let told = (denial.dimension(), denial.quota(), denial.retry_after());
        prop_assert!(in_the_way.contains(&told), "{:?} is none of {:?}", told, in_the_way);
    }
    let violated: Vec<_> = status.quotas().filter(|item| item.is_violated()).collect();
    let violated: Vec<_> = violated.iter().map(|item| (item.dimension(), item.quota())).collect();
    let expected: Vec<_> = in_the_way.iter().map(|&(dimension, quota, _)| (dimension, quota)).collect();
    prop_assert_eq!(violated, expected);
    if status.is_admitted() && !op.is_peek {
        for (single, key) in asked() {
            prop_assert!(single.limiter.try_acquire_n(key, op.cost).expect("within the limit").is_admitted());
        }
    }
    let items: Vec<_> = status.quotas().map(|item| numbers(item.dimension(), item.quota(), item)).collect();
    let expected: Vec<_> = asked()
        .map(|(single, key)| {
            let status = single.limiter.peek_n(key, 0).expect("costs nothing").tightest().expect("a quota");
            numbers(single.dimension, single.quota, status)
        })
        .collect();
    prop_assert_eq!(&items, &expected);
    // The fewest remain; of as many, the longest wait; of as long a wait, the first.
    let mut tightest = expected[0];
    for &item in &expected[1..] {
        if item.3 < tightest.3 || item.3 == tightest.3 && item.4 > tightest.4 {
            tightest = item;
        }
    }
    let told = status.tightest().map(|item| numbers(item.dimension(), item.quota(), item));
    prop_assert_eq!(told, Some(tightest));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_joint_status_agrees_with_a_limiter_for_each_quota(family in prop::sample::select(families()), ops in ops()) {
        let clock = CountedClock::new();
        let mut builder = JointLimiter::<[u8]>::builder().clock(clock.clone());
        for (name, quotas) in ["user", "address", "path"].into_iter().zip(&family) {
            builder = builder.dimension(name, quotas.clone());
        }
        let limiter = builder.build().expect("valid");
        let singles = singles(&family, &clock);
        for op in &ops {
            let status = match op.is_peek {
                true => limiter.peek_n(op.keys, op.cost),
                false => limiter.try_acquire_n_status(op.keys, op.cost),
            };
            agree(op, &singles, &status.expect("within every limit"))?;
            clock.advance(Duration::from_nanos(op.advance));
        }
    }
}
