//! Many keys beside lists of stamps, through rebuilds; and threads.

use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Barrier, Mutex};
use std::thread::scope;

use proptest::prelude::*;

use super::kit::{Answer, At, World, key, log};
use crate::quota::Quota;
use crate::state::cell::time_of;
use crate::state::sync::stepped_kit::Thread;
use crate::sync::plain;

const LIMIT: u32 = 5;
const WINDOW: u64 = 100;
/// More keys than any test has.
const CAP: usize = 1 << 20;

fn world() -> World {
    World::new(&[log(LIMIT, WINDOW)], CAP, 0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    /// The shard starts with room for four keys, and grows, collects and shrinks many times.
    #[test]
    fn keys_answer_as_lists_of_stamps(
        steps in prop::collection::vec((0..200_u64, 1..4_u32, prop_oneof![9 => 0..3_u64, 1 => 0..150_u64]), 1..1500),
    ) {
        let world = world();
        let (mut naive, mut now) = (HashMap::<u64, Vec<u64>>::new(), 0);
        for (number, cost, wait) in steps {
            now += wait;
            let permits = naive.entry(number).or_default();
            let live = permits.iter().filter(|&&stamp| stamp + WINDOW > now).count();
            match world.ask(number, cost, &At(now)) {
                Answer::Admitted { stamp } => {
                    prop_assert_eq!(stamp, now);
                    prop_assert!(live + cost as usize <= LIMIT as usize, "{live} live and {cost} more");
                    permits.extend((0..cost).map(|_| now));
                }
                Answer::Denied { wait_ns } => {
                    prop_assert!(live + cost as usize > LIMIT as usize, "{live} live and {cost} more");
                    let frees = permits[permits.len() + cost as usize - 1 - LIMIT as usize];
                    prop_assert_eq!(now + wait_ns, frees + WINDOW);
                }
                Answer::Full => prop_assert!(false, "there are places"),
            }
            let left = world.left(number, &At(now));
            let live = permits.iter().filter(|&&stamp| stamp + WINDOW > now).count();
            prop_assert_eq!(left.unwrap_or(LIMIT) as usize, LIMIT as usize - live);
        }
    }
}

#[test]
fn what_was_taken_for_keys_that_are_gone_is_given_back() {
    let world = world();
    for number in 0..2_000 {
        assert_eq!(world.ask(number, 1, &At(0)), Answer::Admitted { stamp: 0 });
    }
    let peak = world.shard().bytes();
    // One live key at a time.
    for number in 2_000..6_000 {
        let _ = world.ask(number, 1, &At(number * WINDOW));
    }
    assert!(world.shard().bytes() < peak / 10, "{} of {peak} bytes", world.shard().bytes());
    assert!(world.taken() < 100, "{} places", world.taken());
}

#[test]
fn a_clock_that_lags_behind_a_collection_gains_nothing() {
    let world = world();
    assert_eq!(world.ask(0, LIMIT, &At(0)), Answer::Admitted { stamp: 0 });
    // Many keys later the first has expired and is gone.
    for number in 1..500 {
        let _ = world.ask(number, 1, &At(WINDOW));
    }
    assert_eq!(world.left(0, &At(0)), None);
    let Answer::Admitted { stamp } = world.ask(0, 1, &At(1)) else { panic!("as a new key") };
    assert!(stamp >= WINDOW);
}

/// The same at the key cap, where the cell stays and tells until when its key had permits.
#[test]
fn a_clock_that_lags_behind_a_collection_at_the_cap_gains_nothing() {
    let world = World::new(&[log(LIMIT, WINDOW)], 1, 8);
    assert_eq!(world.ask(0, LIMIT, &At(7)), Answer::Admitted { stamp: 7 });
    assert_eq!(world.ask(1, 1, &At(20)), Answer::Full);
    assert_eq!(world.with(&At(20)).collect(0..64, time_of(20)), Err(Some(time_of(7 + WINDOW))));
    assert_eq!(world.with(&At(7 + WINDOW)).collect(0..64, time_of(7 + WINDOW)), Ok(()));
    assert_eq!(world.ask(0, 1, &At(20)), Answer::Admitted { stamp: 7 + WINDOW });
    assert_eq!(world.taken(), 1);
}

#[test]
fn a_forgotten_key_gets_no_permit_before_it_was_forgotten() {
    let world = world();
    assert_eq!(world.ask(0, LIMIT, &At(0)), Answer::Admitted { stamp: 0 });
    assert_eq!(world.ask(0, 1, &At(40)), Answer::Denied { wait_ns: 60 });
    assert!(world.forget(0, &At(50)));
    assert!(!world.forget(0, &At(50)), "it has no permits");
    assert_eq!((world.left(0, &At(50)), world.taken()), (None, 0));
    assert_eq!(world.ask(0, LIMIT, &At(9)), Answer::Admitted { stamp: 50 });
    assert_eq!(world.ask(0, 1, &At(60)), Answer::Denied { wait_ns: 90 });
}

/// A refund stops before any of its steps. The key is forgotten and asked again at the same reading,
/// so that its word is the one that the refund saw.
#[test]
fn a_refund_of_an_earlier_life_gives_nothing_back() {
    let window = Duration::from_nanos(WINDOW);
    let quotas = [
        log(1, WINDOW),
        Quota::quantised_log(1, window, window / 10),
        Quota::fixed_window(1, window),
        Quota::sliding_counter(1, window),
        Quota::token_bucket(1, 1, window),
    ];
    for quota in quotas {
        let mut late = 0;
        for steps in 0.. {
            let (world, clock) = (World::new(&[quota], CAP, 0), At(5));
            let charged = world.charge(0, &clock);
            let has_ended = scope(|scope| {
                let mut refund = Thread::spawn(scope, || world.refund_charged(key(0), 1, charged, &clock));
                (0..steps).for_each(|_| {
                    refund.step();
                });
                if refund.has_ended() {
                    return true;
                }
                world.forget(0, &clock);
                assert!(world.decide(0, 1, &clock).unwrap().is_admitted());
                late += u32::from(refund.finish() == 0);
                false
            });
            let another = world.decide(0, 1, &clock).unwrap();
            assert_eq!(another.is_admitted(), has_ended, "{quota:?} after {steps} steps");
            if has_ended {
                break;
            }
        }
        assert!(late > 3, "{quota:?}");
    }
}

#[test]
fn quotas_that_change_leave_the_permits() {
    let world = world();
    for number in 0..100 {
        assert_eq!(world.ask(number, 3, &At(number)), Answer::Admitted { stamp: number });
    }
    world.change(&[log(4, 50)], &At(99));
    for number in 0..100 {
        let left = if number + 50 > 99 { Some(1) } else { None };
        assert_eq!(world.left(number, &At(99)).filter(|&left| left < 4), left, "{number}");
    }
}

/// Real threads on a few hundred keys of an arena that is rebuilt all the time: no window holds
/// more than the limit, and each key got all that a window allows.
#[test]
fn threads_never_exceed_a_window_through_rebuilds() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 6_000;
    struct Ticks(plain::AtomicU64);
    impl crate::Clock for Ticks {
        fn now(&self) -> u64 {
            self.0.fetch_add(1, plain::Ordering::Relaxed)
        }
    }
    let (world, clock) = (world(), Ticks(plain::AtomicU64::new(0)));
    let (start, granted) = (Barrier::new(4), Mutex::new(HashMap::<u64, Vec<u64>>::new()));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (world, clock, start, granted) = (&world, &clock, &start, &granted);
            scope.spawn(move || {
                let mut mine = Vec::new();
                start.wait();
                for round in 0..ROUNDS {
                    let number = (round * 7 + thread).wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40;
                    let number = if round % 2 == 0 { number % 6 } else { round % 300 };
                    if let Answer::Admitted { stamp } = world.ask(number, 1, clock) {
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
