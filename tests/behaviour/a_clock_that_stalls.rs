//! A thread may stall between its reading of the clock and its look at the key, while others go on:
//! here the clock itself makes it so, by asking for permits in between.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tollgate::{Clock, DirectLimiter, Quota};

#[derive(Debug, Clone, Default)]
struct Stalling(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    now: AtomicU64,
    /// Whether the next reading takes until 500, and somebody else gets five permits meanwhile.
    stalls: AtomicBool,
    limiter: OnceLock<DirectLimiter<Stalling>>,
}

impl Clock for Stalling {
    fn now(&self) -> u64 {
        let reading = self.0.now.load(Ordering::SeqCst);
        if self.0.stalls.swap(false, Ordering::SeqCst) {
            self.0.now.store(500, Ordering::SeqCst);
            let limiter = self.0.limiter.get().expect("made before");
            assert!(limiter.try_acquire_n(5).expect("less than the limit").is_admitted());
        }
        reading
    }
}

/// The bucket holds at least two permits all the time: 2 at zero, 7 at 500, and 2 when five of them
/// have been taken.
#[test]
fn a_reading_that_is_long_past_denies_nothing_that_was_there_all_the_time() {
    let clock = Stalling::default();
    let quota = Quota::token_bucket(8, 1, Duration::from_nanos(100));
    let limiter = DirectLimiter::with_clock(quota, clock.clone()).expect("a good quota");
    let limiter = clock.0.limiter.get_or_init(|| limiter);
    assert!(limiter.try_acquire_n(6).expect("less than the limit").is_admitted());
    assert_eq!(limiter.peek().remaining(), 2);
    clock.0.stalls.store(true, Ordering::SeqCst);
    assert!(limiter.try_acquire().is_admitted());
    assert_eq!(limiter.peek().remaining(), 1);
}
