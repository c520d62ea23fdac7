//! A limiter without keys does what a limiter for many keys does for one of them, in every mode.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{DirectLimiter, Limiter, Penalty, Quota};

use tollgate_kit::clocks::CountedClock;

use crate::penalties::{of_library, penalties};

#[derive(Debug, Clone, Copy)]
enum Op {
    Acquire { cost: u32 },
    Status { cost: u32 },
    Peek { cost: u32 },
    Reserve { cost: u32, within: u64, keep: bool },
    SetLimit(u32),
    Forget,
    Advance(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let cost = || prop_oneof![6 => Just(1_u32), 2 => 0_u32..5];
    prop_oneof![
        12 => cost().prop_map(|cost| Op::Acquire { cost }),
        6 => cost().prop_map(|cost| Op::Status { cost }),
        4 => cost().prop_map(|cost| Op::Peek { cost }),
        4 => (cost(), 0_u64..30, any::<bool>()).prop_map(|(cost, within, keep)| Op::Reserve { cost, within, keep }),
        1 => (1_u32..5).prop_map(Op::SetLimit),
        1 => Just(Op::Forget),
        6 => (0_u64..40).prop_map(Op::Advance),
    ]
}

#[derive(Debug, Clone)]
struct Case {
    quotas: Vec<Quota>,
    penalty: Option<Penalty>,
    shadow: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let nanos = Duration::from_nanos;
    let log = || (1_u32..4, 1_u64..100).prop_map(move |(limit, window)| Quota::new(limit, nanos(window)));
    let bucket =
        (1_u32..4, 1_u32..3, 1_u64..50).prop_map(move |(most, flow, per)| Quota::token_bucket(most, flow, nanos(per)));
    let quotas = prop_oneof![prop::collection::vec(log(), 1..=2), bucket.prop_map(|bucket| vec![bucket])];
    let penalty = penalties(1..4, || 1_u64..100).prop_map(of_library);
    (quotas, prop::option::of(penalty), any::<bool>()).prop_map(|(quotas, penalty, shadow)| Case {
        quotas,
        penalty,
        shadow,
    })
}

struct Two {
    clock: CountedClock,
    direct: DirectLimiter<CountedClock>,
    keyed: Limiter<u32, CountedClock>,
}

impl Two {
    fn new(case: &Case) -> Self {
        let clock = CountedClock::new();
        let Case { quotas, penalty, shadow } = case;
        let mut direct = DirectLimiter::builder(quotas[0]).clock(clock.clone()).shadow(*shadow).count_decisions(true);
        let mut keyed = Limiter::builder(quotas[0]).clock(clock.clone()).shadow(*shadow).count_decisions(true);
        for &quota in &quotas[1..] {
            (direct, keyed) = (direct.and(quota), keyed.and(quota));
        }
        if let Some(it) = penalty {
            (direct, keyed) = (direct.penalty(*it), keyed.penalty(*it));
        }
        Self { clock, direct: direct.build().expect("good"), keyed: keyed.build().expect("good") }
    }

    fn apply(&self, op: Op) {
        let Self { clock, direct, keyed } = self;
        match op {
            Op::Acquire { cost: 1 } => assert_eq!(direct.try_acquire(), keyed.try_acquire(7)),
            Op::Acquire { cost } => assert_eq!(direct.try_acquire_n(cost), keyed.try_acquire_n(7, cost)),
            Op::Status { cost } => assert_eq!(direct.try_acquire_n_status(cost), keyed.try_acquire_n_status(7, cost)),
            Op::Peek { cost: 1 } => assert_eq!(direct.peek(), keyed.peek(7)),
            Op::Peek { cost } => assert_eq!(direct.peek_n(cost), keyed.peek_n(7, cost)),
            Op::Reserve { cost, within, keep } => {
                let within = Duration::from_nanos(within);
                match (direct.reserve(cost, within), keyed.reserve(7, cost, within)) {
                    (Ok(one), Ok(other)) if keep => assert_eq!(one.commit().cost(), other.commit().cost()),
                    (Ok(one), Ok(other)) => {
                        assert_eq!(one.delay(), other.delay());
                        assert_eq!(one.cancel(), other.cancel());
                    }
                    (Err(one), Err(other)) => assert_eq!(one, other),
                    (one, other) => panic!("{one:?}, but {other:?}"),
                }
            }
            Op::SetLimit(limit) => {
                let quotas: Vec<Quota> =
                    direct.quotas().iter().map(|quota| Quota::new(limit, quota.window())).collect();
                assert_eq!(direct.set_quotas(&quotas).is_ok(), keyed.set_quotas(&quotas).is_ok());
                assert_eq!(direct.quotas(), keyed.quotas());
            }
            Op::Forget => {
                direct.clear();
                keyed.forget(7);
            }
            Op::Advance(by) => clock.advance(Duration::from_nanos(by)),
        }
        let told = [direct.counts(), keyed.counts()]
            .map(|it| (it.live_keys, it.decisions, it.overruled, it.penalties, it.penalties_refused, it.listed));
        assert_eq!(told[0], told[1]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_direct_limiter_agrees_with_a_keyed_limiter(
        case in case(),
        ops in prop::collection::vec(op(), 1..150),
    ) {
        let two = Two::new(&case);
        ops.into_iter().for_each(|op| two.apply(op));
    }
}

#[test]
fn a_direct_limiter_counts_and_has_modes() {
    let minute = Duration::from_secs(60);
    let builder = || DirectLimiter::builder(Quota::per_minute(1)).clock(CountedClock::new()).count_decisions(true);
    let strict = builder().penalty(Penalty::new(2, minute, 5 * minute)).build().expect("good");
    let told: Vec<Option<Duration>> = (0..3).map(|_| strict.try_acquire().retry_after()).collect();
    assert_eq!(told, [None, Some(minute), Some(5 * minute)]);
    let counts = strict.counts();
    assert_eq!((counts.live_keys, counts.penalties), (1, 1));
    let decisions = counts.decisions.expect("asked for");
    assert_eq!((decisions.admitted, decisions.denied), (1, 2));
    let shadow = builder().shadow(true).build().expect("good");
    assert!((0..3).all(|_| shadow.try_acquire().is_admitted()));
    assert_eq!(shadow.counts().overruled, 2);
    let status = shadow.peek();
    assert_eq!((status.is_admitted(), status.remaining()), (true, 0));
}
