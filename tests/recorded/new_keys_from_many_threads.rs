//! Keys that many threads see for the first time at once, while the clock stands still: each has
//! one quota, not one per thread, also while the table grows under them; and the cap on keys holds.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tollgate::{AtKeyCap, Decision, Limiter, LimiterBuilder, MockClock, Quota};

const THREADS: u32 = 8;

/// Permits admitted (and charged to the key) by key, over all threads. Each thread asks once for
/// each key, in the same order, so that they meet at every key; `rounds` times over.
fn ask_for_all(limiter: &Limiter<u32, MockClock>, keys: u32, rounds: u32) -> Vec<u32> {
    let start = Barrier::new(usize::try_from(THREADS).expect("few"));
    let one_thread = || {
        start.wait();
        let mut admitted = vec![0; usize::try_from(keys).expect("few")];
        for _ in 0..rounds {
            for (key, admitted) in (0..keys).zip(&mut admitted) {
                *admitted += u32::from(is_charged(limiter.try_acquire(key)));
            }
        }
        admitted
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(one_thread)).collect();
        let by_thread = threads.into_iter().map(|thread| thread.join().expect("a thread panicked"));
        by_thread
            .reduce(|sums, admitted| sums.iter().zip(&admitted).map(|(sum, admitted)| sum + admitted).collect())
            .expect("there are threads")
    })
}

fn is_charged(decision: Decision) -> bool {
    matches!(decision, Decision::Admitted(admission) if admission.is_counted())
}

fn builder(limit: u32) -> (MockClock, LimiterBuilder<u32, MockClock>) {
    let clock = MockClock::new();
    let quota = Quota::new(limit, Duration::from_micros(1));
    (clock.clone(), Limiter::<u32>::builder(quota).clock(clock))
}

#[test]
fn each_new_key_has_one_quota_while_the_table_grows() {
    for (limit, keys) in [(1, 5000), (2, 3000), (3, 1000), (16, 300)] {
        let (clock, builder) = builder(limit);
        let limiter = builder.build().expect("a good quota");
        for tick in 0..3 {
            let rounds = limit.div_ceil(THREADS) + 1;
            let admitted = ask_for_all(&limiter, keys, rounds);
            let wrong: Vec<_> = (0..keys).zip(admitted).filter(|&(_, admitted)| admitted != limit).collect();
            assert!(wrong.is_empty(), "(key, admitted) at tick {tick} under a limit of {limit}: {wrong:?}");
            let held = limiter.counts();
            assert_eq!(held.live_keys, usize::try_from(keys).expect("few"), "at tick {tick}");
            clock.advance(limiter.quotas()[0].window());
            assert_eq!(limiter.counts().live_keys, 0, "after tick {tick}");
        }
    }
}

/// Other keys each time, so that what has expired is reclaimed while all threads bring new keys.
#[test]
fn the_cap_holds_and_no_key_gets_more_than_its_quota() {
    for (cap, at_cap) in [(1, AtKeyCap::Deny), (16, AtKeyCap::Deny), (256, AtKeyCap::Deny), (16, AtKeyCap::Admit)] {
        let limit = 2;
        let (clock, builder) = builder(limit);
        let limiter = builder.key_cap(cap).at_key_cap(at_cap).build().expect("a good quota and cap");
        let mut refused_before = 0;
        for tick in 0..10 {
            let keys = u32::try_from(cap).expect("few") * 4;
            let admitted = ask_for_all(&limiter, keys, 1);
            let most = admitted.iter().max().copied();
            assert!(most.is_some_and(|most| 0 < most && most <= limit), "{most:?} permits at tick {tick}, cap {cap}");
            let placed = admitted.iter().filter(|&&admitted| admitted > 0).count();
            assert!(placed <= cap, "{placed} keys at tick {tick}, cap {cap}");
            let counts = limiter.counts();
            assert_eq!(counts.live_keys, placed, "at tick {tick}, cap {cap}");
            assert!(counts.cells <= cap, "{} cells at tick {tick}, cap {cap}", counts.cells);
            // All that were never placed were refused each time.
            let in_vain = THREADS * (keys - u32::try_from(placed).expect("few"));
            let refused = counts.refused_at_cap - refused_before;
            assert!(refused >= u64::from(in_vain), "{refused} refused at tick {tick}, cap {cap}, not {in_vain}");
            refused_before = counts.refused_at_cap;
            clock.advance(limiter.quotas()[0].window());
        }
    }
}
