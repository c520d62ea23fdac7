//! Many threads at once: one block for as many denials as it takes, and lists that hold from the
//! moment they are made.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tollgate::{Denial, DenialReason, Limiter, MockClock, Penalty, Quota};

const THREADS: u32 = 4;
const MINUTE: Duration = Duration::from_secs(60);

/// The permits of all keys are spent. Then the threads meet at key after key, and each asks twice.
#[test]
fn denials_that_come_at_once_begin_exactly_one_block() {
    const KEYS: u32 = 2000;
    const ASKS: u32 = 2;
    for denials in [1, 2, 3, 5] {
        let limiter = Limiter::<u32>::builder(Quota::per_minute(1))
            .penalty(Penalty::new(denials, MINUTE, 10 * MINUTE))
            .clock(MockClock::new())
            .build()
            .expect("good");
        assert!((0..KEYS).all(|key| limiter.try_acquire(key).is_admitted()));
        let arrived = AtomicU32::new(0);
        let ask = || {
            let mut seen = Vec::new();
            for key in 0..KEYS {
                // Spinning, so that they leave together.
                arrived.fetch_add(1, Ordering::AcqRel);
                while arrived.load(Ordering::Acquire) < (key + 1) * THREADS {
                    thread::yield_now();
                }
                seen.extend((0..ASKS).map(|_| limiter.try_acquire(key).into_result().expect_err("no permit is left")));
            }
            seen
        };
        let seen: Vec<Vec<Denial>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        for key in 0..KEYS {
            let asks = usize::try_from(key * ASKS).expect("few")..usize::try_from((key + 1) * ASKS).expect("few");
            let denied: Vec<Denial> = seen.iter().flat_map(|seen| &seen[asks.clone()]).copied().collect();
            let by = |reason| denied.iter().filter(move |denial| denial.reason() == reason);
            let counted = by(DenialReason::Quota).count();
            assert_eq!(counted, usize::try_from(denials - 1).expect("few"), "denials of {key} before the block");
            assert_eq!(denied.len() - counted, by(DenialReason::Penalty).count());
            assert!(by(DenialReason::Penalty).all(|denial| denial.retry_after() == 10 * MINUTE), "key {key}");
        }
        assert_eq!(limiter.counts().penalties, u64::from(KEYS), "one for each key, after {denials} denials");
    }
}

/// By the real clock, blocks of a key never overlap.
#[test]
fn blocks_do_not_overlap() {
    let blocked_for = Duration::from_millis(2);
    let limiter = Limiter::<u32>::builder(Quota::new(1, Duration::from_micros(100)))
        .penalty(Penalty::new(3, Duration::from_micros(500), blocked_for))
        .build()
        .expect("good");
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while start.elapsed() < Duration::from_millis(200) {
                    let _ = limiter.try_acquire(7);
                }
            });
        }
    });
    let most = start.elapsed().as_nanos() / blocked_for.as_nanos() + 1;
    let penalties = u128::from(limiter.counts().penalties);
    assert!((1..=most).contains(&penalties), "{penalties} blocks, at most {most}");
}

/// One thread lists key after key, and says how far it is; the others see to it that all of those
/// are denied. The lists grow meanwhile, and keys are taken off them and put on again.
#[test]
fn from_when_a_key_is_listed_it_is_denied() {
    const KEYS: u32 = 3000;
    let limiter = Limiter::<u32>::builder(Quota::per_minute(1_000_000)).list_cap(10_000).build().expect("good");
    let listed = AtomicU32::new(0);
    let check = |seed: u32| {
        let mut at = seed;
        loop {
            let so_far = listed.load(Ordering::Acquire);
            for _ in 0..20 {
                at = at.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if so_far > 0 {
                    let key = (at >> 8) % so_far;
                    assert!(limiter.try_acquire(key).is_denied(), "{key} of {so_far}");
                }
                let other = KEYS + 1 + (at >> 8) % 100;
                let _ = (limiter.deny(other), limiter.unlist(other));
            }
            if so_far == KEYS {
                break;
            }
        }
    };
    thread::scope(|scope| {
        for seed in 0..THREADS - 1 {
            scope.spawn(move || check(seed));
        }
        for key in 0..KEYS {
            assert_eq!(limiter.deny(key), Ok(true));
            listed.store(key + 1, Ordering::Release);
        }
    });
    assert_eq!(limiter.counts().listed, usize::try_from(KEYS).expect("few"));
    // The same key by all threads at once is new to one of them.
    let barrier = Barrier::new(usize::try_from(THREADS).expect("few"));
    let new = thread::scope(|scope| {
        let put = || {
            barrier.wait();
            limiter.allow(u32::MAX).expect("room")
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(put)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).filter(|&new| new).count()
    });
    assert_eq!(new, 1);
}
