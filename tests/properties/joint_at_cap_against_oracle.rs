//! Limiters of every algorithm and every start, with few places: each peek, and the request that
//! follows, against naive accounts that know how many keys are live. Joint limiters, and limiters
//! for keys of one kind.

use tollgate_kit::facade::Facade;
use tollgate_kit::joint::{Model, Told};
use tollgate_kit::key::Quotas;
use tollgate_kit::oracle::Rule;
use tollgate_kit::oracle::meter::Meter;

use proptest::prelude::*;
use tollgate::{AtKeyCap, Denial, DenialReason, JointLimiter, Limiter, Status};

use tollgate_kit::clocks::CountedClock;

#[derive(Debug, Clone)]
enum Op {
    Ask(Vec<Option<u32>>, u32),
    Wait(u64),
    /// Until the last denial says, or a nanosecond less.
    WaitAsTold(bool),
    Forget(Vec<Option<u32>>),
    Clear,
}

fn keys() -> impl Strategy<Value = Vec<Option<u32>>> {
    prop::collection::vec(prop::option::weighted(0.8, 0..4_u32), 4)
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        12 => (keys(), 1..4_u32).prop_map(|(keys, cost)| Op::Ask(keys, cost)),
        4 => (0..30_u64).prop_map(Op::Wait),
        1 => (0..300_u64).prop_map(Op::Wait),
        4 => any::<bool>().prop_map(Op::WaitAsTold),
        1 => keys().prop_map(Op::Forget),
    ];
    prop::collection::vec(prop_oneof![60 => op, 1 => Just(Op::Clear)], 1..80)
}

/// Times are multiples of a unit.
fn quotas(unit: u64) -> impl Strategy<Value = Quotas> {
    let (limit, times) = (|| 1..6_u32, move |end: u64| (0..end).prop_map(move |units| units * unit));
    let window = move || (1..40_u64).prop_map(move |units| units * unit);
    let rule = (limit(), window()).prop_map(|(limit, window)| Rule { limit, window });
    let meter = prop_oneof![
        4 => (limit(), 1..4_u32, window(), 0..6_u32).prop_map(|(capacity, refill, per, start)| {
            Meter::TokenBucket { capacity, refill, per, start: start.min(capacity) }
        }),
        1 => (limit(), 1..4_u32, window()).prop_map(|(capacity, leak, per)| Meter::LeakyBucket { capacity, leak, per }),
        2 => (1..4_u32, window(), times(60))
            .prop_map(|(leak, per, max_delay)| Meter::LeakyQueue { leak, per, max_delay }),
        2 => (limit(), window(), prop::option::of(times(50)))
            .prop_map(|(limit, window, phase)| Meter::FixedWindow { limit, window, phase: phase.map(u128::from) }),
        1 => (limit(), window()).prop_map(|(limit, window)| Meter::SlidingCounter { limit, window, phase: 0 }),
        1 => (limit(), 1..8_u64, 1..6_u64).prop_map(move |(limit, resolution, steps)| {
            Meter::QuantisedLog { limit, window: resolution * steps * unit, resolution: resolution * unit }
        }),
    ];
    prop_oneof![3 => prop::collection::vec(rule, 1..3).prop_map(Quotas::Logs), 11 => meter.prop_map(Quotas::Meter)]
}

#[derive(Debug, Clone)]
struct Case {
    dimensions: Vec<Quotas>,
    cap: usize,
    admits: bool,
    /// Whether requests are answered with a status.
    by_status: bool,
    /// How many nanoseconds all times are multiples of. What a sweep notes is coarser than a
    /// microsecond.
    unit: u64,
}

fn case_of() -> impl Strategy<Value = Case> {
    let cap = prop_oneof![5 => 1..5_usize, 2 => 5..9_usize, 1 => Just(1000_usize)];
    let dimensions = prop_oneof![Just(1_u64), Just(1 << 20)]
        .prop_flat_map(|unit| (prop::collection::vec(quotas(unit), 1..5), Just(unit)));
    (dimensions, cap, any::<bool>(), any::<bool>()).prop_map(|((dimensions, unit), cap, admits, by_status)| Case {
        dimensions,
        cap,
        admits,
        by_status,
        unit,
    })
}

/// What is played on: a joint limiter, or one for keys of one kind.
fn limiter(case: &Case, is_keyed: bool, clock: &CountedClock) -> Box<dyn Facade> {
    let Case { dimensions, cap, admits, .. } = case;
    let policy = if *admits { AtKeyCap::Admit } else { AtKeyCap::Deny };
    if is_keyed {
        let quotas = dimensions[0].quotas();
        let builder = Limiter::<u32>::builder(quotas[0]).key_cap(*cap).at_key_cap(policy).clock(clock.clone());
        let builder = quotas[1..].iter().fold(builder, |builder, &quota| builder.and(quota));
        return Box::new(builder.build().expect("good quotas"));
    }
    let builder = dimensions.iter().enumerate().fold(JointLimiter::<[u32]>::builder(), |builder, (at, quotas)| {
        builder.dimension(at.to_string(), quotas.quotas())
    });
    let builder = builder.key_cap(*cap).at_key_cap(policy).clock(clock.clone());
    Box::new(builder.build().expect("good quotas"))
}

/// The permits left of each quota.
fn left(status: &Status) -> Vec<u32> {
    status.quotas().map(|quota| quota.remaining()).collect()
}

fn play(case: &Case, is_keyed: bool, ops: &[Op]) -> Result<(), TestCaseError> {
    let Case { dimensions, cap, admits, by_status, unit } = case;
    let clock = CountedClock::new();
    let dimensions = if is_keyed { &dimensions[..1] } else { dimensions };
    let limiter = limiter(case, is_keyed, &clock);
    let mut model = Model::new(dimensions, *cap, *admits);
    let (mut now, mut last_wait) = (0_u64, 0_u64);
    for (at, op) in ops.iter().enumerate() {
        match op {
            Op::Ask(keys, _) | Op::Forget(keys) if keys[..dimensions.len()].iter().all(Option::is_none) => {}
            Op::Ask(keys, cost) => {
                let keys: Vec<_> = keys[..dimensions.len()].to_vec();
                let most = keys.iter().zip(dimensions).filter_map(|(key, quotas)| key.map(|_| quotas.most())).min();
                let cost = (*cost).min(most.unwrap_or(1));
                let before = limiter.counts();
                let peeked = limiter.peek_n(&keys, cost).expect("a good request").decision();
                let after = limiter.counts();
                // At the cap a peek may sweep out what has expired.
                prop_assert!(after.cells <= before.cells && after.live_keys == before.live_keys);
                prop_assert_eq!(before.refused_at_cap, after.refused_at_cap);
                let told = if *by_status {
                    let status = limiter.status(&keys, cost).expect("a good request");
                    let told = status.decision();
                    if told.into_result().is_ok_and(|admission| admission.is_counted()) {
                        // Nothing else happens at this reading.
                        let looked = limiter.peek_n(&keys, 0).expect("a good request");
                        prop_assert_eq!(
                            left(&status),
                            left(&looked),
                            "step {}, at {}: {:?} for {}",
                            at,
                            now,
                            keys,
                            cost
                        );
                    }
                    told
                } else {
                    limiter.acquire(&keys, cost).expect("a good request")
                };
                let expected = model.ask(&keys, cost, now);
                // A bucket that does not start full keeps its place for ever.
                let wait = told.retry_after().filter(|wait| wait.as_secs() < 1 << 20);
                last_wait = wait.map_or(last_wait, |wait| u64::try_from(wait.as_nanos()).expect("soon"));
                for said in [peeked, told] {
                    let said = Told::from(said);
                    prop_assert!(
                        expected.allows(&said),
                        "step {at}, at {now}: {keys:?} for {cost}: {said:?}, not {expected:?}"
                    );
                }
                // For want of a place the wait is the earliest moment at which there may be one:
                // the request, which sweeps after the peek, may know better.
                let is_for_a_place = |denial: Denial| denial.reason() == DenialReason::KeyCap;
                if !told.into_result().is_err_and(is_for_a_place) {
                    prop_assert_eq!(peeked, told, "step {}, at {}: {:?} for {}", at, now, keys, cost);
                }
            }
            Op::Wait(units) => now += units * unit,
            Op::WaitAsTold(exactly) => now += last_wait.saturating_sub(u64::from(!exactly)),
            Op::Forget(keys) => {
                limiter.forget(&keys[..dimensions.len()]);
                model.forget(&keys[..dimensions.len()]);
            }
            Op::Clear => {
                limiter.clear();
                model.clear();
            }
        }
        clock.set(now);
        let counts = limiter.counts();
        prop_assert_eq!(counts.live_keys, model.live(now), "step {}, at {}: {:?}", at, now, op);
        prop_assert!(counts.cells <= *cap);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn peeks_and_requests_with_few_places(case in case_of(), ops in ops()) {
        // Where keys lie in the index differs from limiter to limiter.
        for _ in 0..2 {
            play(&case, false, &ops)?;
        }
    }

    #[test]
    fn peeks_and_requests_of_one_key_with_few_places(case in case_of(), ops in ops()) {
        play(&case, true, &ops)?;
    }
}

/// What is told to a key of each dimension alone, over and over until it is admitted, is the wait
/// that the algorithm says.
#[test]
fn a_bucket_that_starts_below_full_fills_in_every_place_of_a_request() {
    for start in 0..=3 {
        let bucket = Quotas::Meter(Meter::TokenBucket { capacity: 3, refill: 2, per: 7, start });
        let dimensions = vec![Quotas::log(3, 10), bucket];
        let case = Case { dimensions, cap: 4, admits: false, by_status: false, unit: 1 };
        let ask = |cost| Op::Ask(vec![Some(1), Some(1), None, None], cost);
        let ops: Vec<Op> = (1..4)
            .flat_map(|cost| [ask(cost), Op::WaitAsTold(false), ask(cost), Op::WaitAsTold(true), ask(cost)])
            .collect();
        play(&case, false, &ops).expect("as in the model");
    }
}
