//! Many keys beside lists of stamps, through rebuilds; and threads.

use std::collections::HashMap;
use std::sync::{Barrier, Mutex};

use proptest::prelude::*;

use super::*;
use crate::heart::log::Answer;
use crate::quota::Quota;
use crate::sync::plain;
use core::time::Duration;

const ORIGIN: u64 = 1 << 60;
const LIMIT: u32 = 5;
const WINDOW: u64 = 100;

fn plan() -> LogPlan {
    LogPlan::new(&[Quota::new(LIMIT, Duration::from_nanos(WINDOW))])
}

/// Spreads small numbers as a fingerprint does.
fn key(number: u64) -> Key {
    Key::new((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

struct Ask<'a> {
    plan: &'a LogPlan,
    cost: u32,
}

impl Request for Ask<'_> {
    type Answer = Answer;

    fn attempt(&self, place: Place<'_>, word: Word, now: u64) -> Attempt<Answer> {
        self.plan.decide(place, word, now, self.cost, 0)
    }
}

fn ask(shard: &Shard, plan: &LogPlan, number: u64, now: u64, cost: u32) -> Answer {
    shard.decide(plan, key(number), &|| now, &Ask { plan, cost })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    /// The shard starts with room for four keys, and grows, collects and shrinks many times.
    #[test]
    fn keys_answer_as_lists_of_stamps(
        steps in prop::collection::vec((0..200_u64, 1..4_u32, prop_oneof![9 => 0..3_u64, 1 => 0..150_u64]), 1..1500),
    ) {
        let (shard, plan) = (Shard::new(0), plan());
        let (mut naive, mut now) = (HashMap::<u64, Vec<u64>>::new(), ORIGIN);
        for (number, cost, wait) in steps {
            now += wait;
            let permits = naive.entry(number).or_default();
            let live = permits.iter().filter(|&&stamp| stamp + WINDOW > now).count();
            match ask(&shard, &plan, number, now, cost) {
                Answer::Admitted { stamp, .. } => {
                    prop_assert_eq!(stamp, now);
                    prop_assert!(live + cost as usize <= LIMIT as usize, "{live} live and {cost} more");
                    permits.extend((0..cost).map(|_| now));
                }
                Answer::Denied { wait_ns, .. } => {
                    prop_assert!(live + cost as usize > LIMIT as usize, "{live} live and {cost} more");
                    let frees = permits[permits.len() + cost as usize - 1 - LIMIT as usize];
                    prop_assert_eq!(now + wait_ns, frees + WINDOW);
                }
            }
            let left = shard.view(key(number), |place, word| plan.left(place, word, now));
            let live = permits.iter().filter(|&&stamp| stamp + WINDOW > now).count();
            prop_assert_eq!(left.map_or(LIMIT, |left| left.first().remaining) as usize, LIMIT as usize - live);
        }
    }
}

#[test]
fn what_was_taken_for_keys_that_are_gone_is_given_back() {
    let (shard, plan) = (Shard::new(0), plan());
    for number in 0..2_000 {
        assert!(matches!(ask(&shard, &plan, number, ORIGIN, 1), Answer::Admitted { .. }));
    }
    let peak = shard.bytes();
    // One live key at a time.
    for number in 2_000..3_000 {
        let _ = ask(&shard, &plan, number, ORIGIN + number * WINDOW, 1);
    }
    assert!(shard.bytes() < peak / 10, "{} of {peak} bytes", shard.bytes());
}

#[test]
fn a_clock_that_lags_behind_a_collection_gains_nothing() {
    let (shard, plan) = (Shard::new(0), plan());
    assert!(matches!(ask(&shard, &plan, 0, ORIGIN, LIMIT), Answer::Admitted { .. }));
    // Many keys later the first has expired and is gone.
    for number in 1..500 {
        let _ = ask(&shard, &plan, number, ORIGIN + WINDOW, 1);
    }
    assert!(shard.view(key(0), |_, _| Some(())).is_none());
    let Answer::Admitted { stamp, .. } = ask(&shard, &plan, 0, ORIGIN + 1, 1) else { panic!("as a new key") };
    assert!(stamp >= ORIGIN + WINDOW);
}

/// Real threads on a few hundred keys of an arena that is rebuilt all the time: no window holds
/// more than the limit, and each key got all that a window allows.
#[test]
fn threads_never_exceed_a_window_through_rebuilds() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 6_000;
    let (shard, plan, clock) = (Shard::new(0), plan(), plain::AtomicU64::new(ORIGIN));
    let (start, granted) = (Barrier::new(4), Mutex::new(HashMap::<u64, Vec<u64>>::new()));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (shard, plan, clock, start, granted) = (&shard, &plan, &clock, &start, &granted);
            scope.spawn(move || {
                let mut mine = Vec::new();
                start.wait();
                for round in 0..ROUNDS {
                    let number = (round * 7 + thread).wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40;
                    let number = if round % 2 == 0 { number % 6 } else { round % 300 };
                    let now = || clock.fetch_add(1, plain::Ordering::Relaxed);
                    let answer = shard.decide(plan, key(number), &now, &Ask { plan, cost: 1 });
                    if let Answer::Admitted { stamp, .. } = answer {
                        mine.push((number, stamp));
                    }
                }
                let mut granted = granted.lock().unwrap();
                mine.into_iter().for_each(|(number, stamp)| granted.entry(number).or_default().push(stamp));
            });
        }
    });
    let granted = granted.into_inner().unwrap();
    for stamps in granted.into_values() {
        let mut stamps = stamps;
        stamps.sort_unstable();
        for window in stamps.windows(LIMIT as usize + 1) {
            assert!(window[LIMIT as usize] - window[0] >= WINDOW, "{window:?}");
        }
    }
}
