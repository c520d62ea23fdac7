//! A limiter with tiers, against a limiter for each tier.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{JointLimiter, Limiter, Quota, Tier};

use tollgate_kit::clocks::CountedClock;

const NAMES: [&str; 2] = ["silver", "gold"];

#[derive(Debug, Clone)]
enum Op {
    Acquire {
        tier: usize,
        key: u8,
        cost: u32,
    },
    Many {
        keys: Vec<(usize, u8)>,
    },
    Peek {
        tier: usize,
        key: u8,
        cost: u32,
    },
    Forget {
        tier: usize,
        key: u8,
    },
    /// Another limit of the tier.
    Change {
        tier: usize,
        limit: u32,
    },
    Advance(u64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let key = || (0_usize..3, 0_u8..3);
    let op = prop_oneof![
        6 => (key(), 0_u32..4).prop_map(|((tier, key), cost)| Op::Acquire { tier, key, cost }),
        1 => prop::collection::vec(key(), 0..6).prop_map(|keys| Op::Many { keys }),
        2 => (key(), 0_u32..4).prop_map(|((tier, key), cost)| Op::Peek { tier, key, cost }),
        1 => key().prop_map(|(tier, key)| Op::Forget { tier, key }),
        1 => (0_usize..3, 3_u32..8).prop_map(|(tier, limit)| Op::Change { tier, limit }),
        4 => (0_u64..25).prop_map(Op::Advance),
    ];
    prop::collection::vec(op, 1..60)
}

fn quotas(limit: u32, place: usize) -> Quota {
    let nanos = Duration::from_nanos;
    match place {
        0 => Quota::new(limit, nanos(20)),
        1 => Quota::token_bucket(limit, 1, nanos(9)),
        _ => Quota::fixed_window(limit, nanos(30)),
    }
}

/// All three as one, and each alone.
struct Both {
    clock: CountedClock,
    tiers: [Tier; 3],
    joint_tiers: [Tier; 3],
    limiter: Limiter<u8, CountedClock>,
    joint: JointLimiter<(String, u8), CountedClock>,
    alone: [Limiter<u8, CountedClock>; 3],
}

impl Both {
    fn new() -> Self {
        let clock = CountedClock::new();
        let [zero, one, two] = [0, 1, 2].map(|place| [quotas(5, place)]);
        let builder = Limiter::builder(zero[0]).clock(clock.clone());
        let limiter = builder.tier(NAMES[0], one).tier(NAMES[1], two).build().unwrap();
        let builder = JointLimiter::builder().clock(clock.clone()).dimension("other", [Quota::per_hour(1)]);
        let builder = builder.dimension("key", zero).tier(1, NAMES[0], one);
        let joint = builder.tier(0, NAMES[0], [Quota::per_hour(2)]).tier(1, NAMES[1], two).build().unwrap();
        let alone = [zero, one, two].map(|[quota]| Limiter::builder(quota).clock(clock.clone()).build().unwrap());
        let tiers = ["", NAMES[0], NAMES[1]].map(|name| limiter.tier(name).unwrap_or_default());
        let joint_tiers = ["", NAMES[0], NAMES[1]].map(|name| joint.tier(1, name).unwrap_or_default());
        Self { clock, tiers, joint_tiers, limiter, joint, alone }
    }

    fn run(&self, op: &Op) -> Result<(), TestCaseError> {
        let Self { clock, tiers, joint_tiers, limiter, joint, alone } = self;
        let none = None::<&str>;
        match *op {
            Op::Acquire { tier, key, cost } => {
                let expected = alone[tier].try_acquire_n_status(key, cost).unwrap();
                prop_assert_eq!(limiter.try_acquire_n_status(tiers[tier].key(key), cost).unwrap(), expected.clone());
                let decision = joint.try_acquire_n((none, joint_tiers[tier].key(key)), cost).unwrap();
                prop_assert_eq!(decision.is_admitted(), expected.is_admitted());
            }
            Op::Many { ref keys } => {
                let expected: Vec<_> = keys.iter().map(|&(tier, key)| alone[tier].try_acquire(key)).collect();
                prop_assert_eq!(
                    &limiter.try_acquire_many(keys.iter().map(|&(tier, key)| tiers[tier].key(key))),
                    &expected
                );
                let joint_keys = keys.iter().map(|&(tier, key)| (none, joint_tiers[tier].key(key)));
                for (decision, expected) in joint.try_acquire_many(joint_keys).into_iter().zip(expected) {
                    prop_assert_eq!(decision.unwrap().is_admitted(), expected.is_admitted());
                }
            }
            Op::Peek { tier, key, cost } => {
                let expected = alone[tier].peek_n(key, cost).unwrap();
                prop_assert_eq!(limiter.peek_n(tiers[tier].key(key), cost).unwrap(), expected.clone());
                let status = joint.peek_n((none, joint_tiers[tier].key(key)), cost).unwrap();
                prop_assert_eq!(status.is_admitted(), expected.is_admitted());
                let (left, expected) = (status.quotas().next().unwrap(), expected.tightest().unwrap());
                prop_assert_eq!((left.remaining(), left.next_after()), (expected.remaining(), expected.next_after()));
                prop_assert_eq!((left.dimension(), left.is_violated()), (1, expected.is_violated()));
            }
            Op::Forget { tier, key } => {
                // Permits that have expired may be known to one and not to the other.
                let counts = alone[tier].peek(key).reset_after() > Duration::ZERO;
                alone[tier].forget(key);
                let forgotten = limiter.forget(tiers[tier].key(key));
                let joint_forgotten = joint.forget((none, joint_tiers[tier].key(key))).unwrap();
                prop_assert!(!counts || forgotten && joint_forgotten);
            }
            Op::Change { tier, limit } => {
                let quotas = [quotas(limit, tier)];
                alone[tier].set_quotas(&quotas).unwrap();
                limiter.set_quotas_of_tier(tiers[tier], &quotas).unwrap();
                match tier {
                    0 => joint.set_quotas(1, &quotas).unwrap(),
                    _ => joint.set_quotas_of_tier(joint_tiers[tier], &quotas).unwrap(),
                }
            }
            Op::Advance(nanos) => clock.advance(Duration::from_nanos(nanos)),
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_limiter_with_tiers_answers_as_a_limiter_for_each(ops in ops()) {
        let both = Both::new();
        for op in &ops {
            both.run(op)?;
        }
    }
}
