//! Limits that are enforced for a percentage of the keys.

use std::time::Duration;

use tollgate::{
    Absent, BuildError, CostExceedsLimit, Decision, DefaultFingerprinter, DenialReason, JointLimiter, Limiter,
    MockClock, Penalty, Quota, SipFingerprinter,
};

const KEYS: u64 = 2_000;

fn seeded(seed: u64) -> DefaultFingerprinter {
    DefaultFingerprinter::with_seed(seed, 7)
}

/// The keys of `0..KEYS` that are denied their second request. The others are overruled.
fn denied(percent: u8, seed: u64) -> Vec<u64> {
    let builder = Limiter::<u64>::builder(Quota::per_minute(1)).enforced_percent(percent).fingerprinter(seeded(seed));
    let limiter = builder.clock(MockClock::new()).build().unwrap();
    let denied: Vec<u64> = (0..KEYS)
        .filter(|key| {
            assert!(limiter.try_acquire(key).is_admitted());
            let (peeked, second) = (limiter.peek(key).decision(), limiter.try_acquire(key));
            assert_eq!(peeked, second, "a peek tells it beforehand");
            assert_eq!(limiter.try_acquire_status(key).is_denied(), second.is_denied(), "a key stays on its side");
            second.into_result().map_or(true, |admission| {
                assert!(admission.overruled().is_some() && !admission.is_counted());
                false
            })
        })
        .collect();
    assert_eq!(limiter.counts().overruled, 2 * (KEYS - denied.len() as u64));
    denied
}

/// Numbers in a row, which a fingerprinter may put at equal distances.
#[test]
fn so_many_keys_are_denied_and_with_a_larger_number_more_join() {
    assert_eq!((denied(0, 1).len(), denied(100, 1).len()), (0, 2_000));
    for seed in 0..20 {
        let [few, some, most] = [1, 30, 90].map(|percent| denied(percent, seed));
        for (share, of) in [(0.01, &few), (0.3, &some), (0.9, &most)] {
            // Six standard deviations.
            let (expected, deviation) = (KEYS as f64 * share, (KEYS as f64 * share * (1.0 - share)).sqrt());
            assert!((of.len() as f64 - expected).abs() < 6.0 * deviation, "{} of {share}, seed {seed}", of.len());
        }
        assert!(few.iter().all(|key| some.contains(key)) && some.iter().all(|key| most.contains(key)));
    }
    assert_ne!(denied(30, 1), denied(30, 2), "the seed chooses the keys");
}

#[test]
fn a_key_outside_has_an_answer_for_any_cost_and_one_inside_an_error() {
    let builder = Limiter::<u64>::builder(Quota::per_minute(1)).enforced_percent(50).clock(MockClock::new());
    let limiter = builder.fingerprinter(SipFingerprinter::with_seed(1, 2)).build().unwrap();
    let mut outside = 0;
    for key in 0..100 {
        match limiter.try_acquire_n(key, 2) {
            Ok(decision) => outside += usize::from(decision.into_result().unwrap().overruled().is_some()),
            Err(CostExceedsLimit { .. }) => assert!((0..2).any(|_| limiter.try_acquire(key).is_denied())),
        }
    }
    assert!((25..75).contains(&outside), "{outside}");
}

/// A request is denied if one of the keys that deny it is inside.
#[test]
fn of_several_dimensions_one_key_that_denies_and_is_inside_is_enough() {
    let limiter = |users: u32, tenants: u32| {
        JointLimiter::<(u64, u64)>::builder()
            .dimension("user", [Quota::per_minute(users)])
            .dimension("tenant", [Quota::per_minute(tenants)])
            .enforced_percent(50)
            .clock(MockClock::new())
            .fingerprinter(seeded(3))
            .build()
            .unwrap()
    };
    let (by_user, by_tenant, by_both) = (limiter(1, 9), limiter(9, 1), limiter(1, 1));
    let mut seen = [0; 4];
    for key in 0..200 {
        let [user, tenant, both] = [&by_user, &by_tenant, &by_both].map(|limiter| {
            assert!(limiter.try_acquire((key, 1_000 + key)).unwrap().is_admitted());
            let peeked = limiter.peek((key, 1_000 + key)).unwrap().decision();
            let second = limiter.try_acquire((key, 1_000 + key)).unwrap();
            assert_eq!(peeked, second);
            assert_eq!(limiter.try_acquire_status((key, 1_000 + key)).unwrap().is_denied(), second.is_denied());
            second.is_denied()
        });
        assert_eq!(both, user || tenant, "key {key}");
        seen[usize::from(user) + 2 * usize::from(tenant)] += 1;
    }
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
}

#[test]
fn what_is_no_percentage_is_refused() {
    let builder = Limiter::<u64>::builder(Quota::per_minute(1)).enforced_percent(101);
    assert_eq!(builder.build().unwrap_err(), BuildError::NoPercentage { percent: 101 });
    // The last call counts.
    let builder = Limiter::<u64>::builder(Quota::per_minute(1)).enforced_percent(101).shadow(false);
    let limiter = builder.build().unwrap();
    assert!(limiter.try_acquire_many([7, 7])[1].is_denied());
}

/// Ids as they come: their parts must not lie at equal distances.
#[test]
fn a_percentage_of_numbers_in_a_row_is_about_that() {
    for seed in 0..300 {
        let builder = Limiter::<u64>::builder(Quota::per_minute(1)).clock(MockClock::new()).enforced_percent(10);
        let limiter = builder.fingerprinter(seeded(seed)).build().unwrap();
        let enforced = (0..500_u64).filter(|key| limiter.try_acquire_many([key; 2])[1].is_denied()).count();
        assert!((20..=95).contains(&enforced), "seed {seed}: {enforced} of 500 keys, 50 expected");
    }
}

/// By the side of a user and of a tenant: whether the limit is enforced for each.
fn sides(limiter: &JointLimiter<(u64, u64), MockClock>, key: u64) -> [bool; 2] {
    let is_denied = [(Some(key), None), (None, Some(key))].map(|keys| {
        assert!(limiter.try_acquire(keys).unwrap().is_admitted());
        limiter.try_acquire(keys).unwrap().is_denied()
    });
    assert!(limiter.forget((key, key)).unwrap());
    is_denied
}

/// Once the others are over, the request is admitted.
#[test]
fn the_wait_of_a_key_outside_counts_only_if_all_that_deny_are_outside() {
    let [short, long] = [10, 100].map(Duration::from_nanos);
    let limiter = JointLimiter::<(u64, u64)>::builder()
        .dimension("user", [Quota::new(1, long)])
        .dimension("tenant", [Quota::new(1, short)])
        .enforced_percent(50)
        .clock(MockClock::new())
        .fingerprinter(seeded(3))
        .build()
        .unwrap();
    for key in 0..50 {
        let sides = sides(&limiter, key);
        assert!(limiter.try_acquire((key, key)).unwrap().is_admitted());
        let (wait, dimension) = if sides == [false, true] { (short, 1) } else { (long, 0) };
        for decision in [limiter.try_acquire((key, key)).unwrap(), limiter.peek((key, key)).unwrap().decision()] {
            let denial = match decision {
                Decision::Admitted(admission) => admission.overruled().unwrap(),
                Decision::Denied(denial) => denial,
            };
            assert_eq!(decision.is_denied(), sides != [false, false], "{key}");
            assert_eq!((denial.retry_after(), denial.dimension()), (wait, dimension), "{key}: {sides:?}");
            assert!(denial.violated().eq([0, 1]));
        }
    }
}

/// A cost above the limit of a key outside is no error. The block of a key inside denies it all the
/// same, and a quota inside tells its own wait.
#[test]
fn a_cost_above_the_limit_of_a_key_outside_leaves_the_others_to_decide() {
    let nanos = Duration::from_nanos;
    let limiter = |tenants| {
        JointLimiter::<(u64, u64)>::builder()
            .dimension("user", [Quota::new(1, nanos(100))])
            .dimension("tenant", [tenants])
            .penalty(1, Penalty::new(1, nanos(1_000), nanos(1_000)))
            .enforced_percent(50)
            .clock(MockClock::new())
            .fingerprinter(seeded(3))
            .build()
            .unwrap()
    };
    let limiters = [Quota::new(2, nanos(10)), Quota::token_bucket(2, 1, nanos(5)).starting_with(0)].map(limiter);
    let sided = (0..200).filter(|&key| sides(&limiter(Quota::new(1, nanos(10))), key) == [false, true]);
    let sided: Vec<u64> = sided.collect();
    assert!(sided.len() > 20);
    for key in sided {
        let [log, low] = &limiters;
        assert!(log.try_acquire_n((Absent, key), 2).unwrap().is_admitted());
        let denied =
            |limiter: &JointLimiter<_, _>| limiter.try_acquire_n((key, key), 2).unwrap().into_result().unwrap_err();
        for limiter in [log, low] {
            let denials = [(); 2].map(|()| denied(limiter));
            assert_eq!(denials.map(|denial| denial.reason()), [DenialReason::Penalty; 2]);
            assert_eq!(denials.map(|denial| denial.dimension()), [1; 2]);
        }
        assert_eq!(low.peek_n((Absent, key), 0).unwrap().reset_after(), nanos(10), "it fills");
        let counts = low.counts();
        assert_eq!(counts.penalties, log.counts().penalties);
    }
}
