//! Clocks that go back: a penalty is never shorter for it, a quota never larger, and nothing
//! panics.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use tollgate::{Decision, Limiter, Penalty, Quota};

use tollgate_kit::clocks::CountedClock;

#[derive(Debug, Clone, Copy)]
enum Op {
    Ask(u32),
    Forward(u64),
    Back(u64),
    Set(u64),
}

const LIMIT: usize = 2;
const WINDOW: u64 = 50;

fn ops() -> impl Strategy<Value = Op> {
    prop_oneof![
        30 => (0_u32..3).prop_map(Op::Ask),
        6 => prop_oneof![Just(1_u64), Just(49), Just(50), Just(99), Just(100), 0_u64..120].prop_map(Op::Forward),
        3 => (0_u64..150).prop_map(Op::Back),
        1 => prop_oneof![Just(0_u64), Just(u64::MAX), Just(1 << 62), Just(1000)].prop_map(Op::Set),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn with_any_clock_readings(
        denials in 1_u32..4,
        within in prop_oneof![Just(100_u64), 1_u64..200],
        blocked_for in prop_oneof![Just(100_u64), 1_u64..200],
        (factor, longest, quiet_for) in (1_u32..4, 200_u64..800, 1_u64..400),
        start in prop_oneof![Just(500_u64), Just(0)],
        ops in prop::collection::vec(ops(), 1..300),
    ) {
        let clock = CountedClock::new();
        let nanos = Duration::from_nanos;
        let [within, block] = [within, blocked_for].map(nanos);
        let length = |block: u8| u128::from(longest.min(blocked_for * u64::from(factor.pow(u32::from(block) - 1))));
        let limiter = Limiter::<u32>::builder(Quota::new(2, Duration::from_nanos(WINDOW)))
            .penalty(Penalty::new(denials, within, block).growing(factor, nanos(longest), nanos(quiet_for)))
            .clock(clock.clone())
            .build()
            .expect("good");
        // The time that has really passed: every step forward, and none back.
        let (mut now, mut passed) = (start, 0_u128);
        let mut granted: HashMap<u32, Vec<u128>> = HashMap::new();
        // When the last block began, and how long it lasts.
        let mut blocks: HashMap<u32, (u128, u128)> = HashMap::new();
        clock.set(now);
        for op in ops {
            let then = now;
            match op {
                Op::Ask(key) => {
                    let before = limiter.counts().penalties;
                    let decision = limiter.try_acquire(key);
                    let blocked = blocks.get(&key).is_some_and(|(at, length)| passed - at < *length);
                    match decision {
                        Decision::Admitted(_) => {
                            prop_assert!(!blocked, "admitted {key} at {passed}, blocked at {blocks:?}");
                            let granted = granted.entry(key).or_default();
                            granted.push(passed);
                            let live = granted.iter().filter(|&&at| passed - at < u128::from(WINDOW)).count();
                            prop_assert!(live <= LIMIT, "{live} live permits of {key} at {passed}");
                        }
                        Decision::Denied(denial) => prop_assert!(denial.retry_after() > Duration::ZERO),
                    }
                    if limiter.counts().penalties > before {
                        let block = decision.into_result().err().and_then(|denial| denial.block());
                        prop_assert!(block.is_some() && !blocked, "{decision:?} of {key} at {passed}, {blocks:?}");
                        blocks.insert(key, (passed, length(block.unwrap_or(1))));
                    }
                }
                Op::Forward(by) => now = now.saturating_add(by),
                Op::Back(by) => now = now.saturating_sub(by),
                Op::Set(to) => now = to,
            }
            passed += u128::from(now.saturating_sub(then));
            clock.set(now);
        }
    }
}
