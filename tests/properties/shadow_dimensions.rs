//! Dimensions in shadow mode beside those in force: the joint limiter answers and charges as a joint
//! limiter of the dimensions in force, and a limiter of its own for each in shadow mode that is asked
//! with each admitted request.

use core::time::Duration;

use proptest::prelude::*;
use tollgate::{Decision, JointLimiter, Limiter, MockClock, Quota};

const DIMENSIONS: usize = 4;

fn quota() -> impl Strategy<Value = Quota> {
    let period = || (1..4_u64).prop_map(Duration::from_secs);
    prop_oneof![
        (1..5_u32, period()).prop_map(|(limit, window)| Quota::new(limit, window)),
        (1..5_u32, 1..4_u32, period()).prop_map(|(capacity, refill, per)| Quota::token_bucket(capacity, refill, per)),
        (1..5_u32, period()).prop_map(|(limit, window)| Quota::fixed_window(limit, window)),
    ]
}

/// A request: the time before it, a key of each dimension that it asks, and the cost.
type Request = (u64, [Option<u8>; DIMENSIONS], u32);

fn request() -> impl Strategy<Value = Request> {
    let key = || proptest::option::weighted(0.8, 0..2_u8);
    (0..1_500_u64, [key(), key(), key(), key()], 1..3_u32)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn they_charge_alone_and_deny_nothing(
        quotas in [quota(), quota(), quota(), quota()],
        shadow in any::<[bool; DIMENSIONS]>(),
        in_use in any::<bool>(),
        requests in proptest::collection::vec(request(), 1..60),
    ) {
        let clock = MockClock::new();
        let joint = |shadow: [bool; DIMENSIONS]| {
            let builder = JointLimiter::<[u8]>::builder().clock(clock.clone());
            let builder = (0..).zip(quotas).fold(builder, |builder, (at, quota)| builder.dimension(format!("{at}"), [quota]));
            (0..DIMENSIONS).filter(|at| shadow[*at]).fold(builder, |builder, at| builder.shadow_dimension(at)).build().unwrap()
        };
        let limiter = joint(if in_use { [false; DIMENSIONS] } else { shadow });
        for (at, is_on) in shadow.into_iter().enumerate() {
            limiter.settings().set_shadow_dimension(at, is_on).unwrap();
            prop_assert_eq!(limiter.settings().is_shadow_dimension(at), is_on);
        }
        let in_force = joint([false; DIMENSIONS]);
        let alone = quotas.map(|quota| Limiter::<u8>::builder(quota).clock(clock.clone()).build().unwrap());
        let mut overruled = 0;
        for (gap, keys, cost) in requests {
            clock.advance(Duration::from_millis(gap));
            let kept: Vec<Option<u8>> = (0..DIMENSIONS).map(|at| keys[at].filter(|_| !shadow[at])).collect();
            if keys.iter().all(Option::is_none) {
                continue;
            }
            let fits = (0..DIMENSIONS).all(|at| keys[at].is_none() || quotas[at].limit() >= cost);
            if !fits {
                continue;
            }
            let is_asked = kept.iter().any(Option::is_some);
            let expected = is_asked.then(|| in_force.try_acquire_n(&kept[..], cost).unwrap());
            let peeked = limiter.peek_n(&keys[..], cost).unwrap().decision();
            let decided = limiter.try_acquire_n(&keys[..], cost).unwrap();
            prop_assert_eq!(peeked, decided);
            if let Some(Decision::Denied(denial)) = expected {
                let Decision::Denied(told) = decided else { panic!("{decided:?} for {denial:?}") };
                prop_assert_eq!((told.retry_after(), told.dimension()), (denial.retry_after(), denial.dimension()));
                continue;
            }
            let mut denying = Vec::new();
            for at in (0..DIMENSIONS).filter(|at| shadow[*at]) {
                if keys[at].is_some_and(|key| alone[at].try_acquire_n(key, cost).unwrap().is_denied()) {
                    denying.push(at);
                }
            }
            let Decision::Admitted(admission) = decided else { panic!("{decided:?}") };
            let told = admission.overruled().map(|denial| denial.violated().collect::<Vec<_>>());
            prop_assert_eq!(told, (!denying.is_empty()).then(|| denying.clone()));
            let asked = keys.iter().flatten().count();
            prop_assert_eq!(admission.is_counted(), denying.len() < asked);
            overruled += u64::from(!denying.is_empty());
        }
        prop_assert_eq!(limiter.counts().overruled, overruled);
    }
}
