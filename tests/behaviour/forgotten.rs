//! Many keys that are forgotten, as a login does it on success.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::{Clock, Limiter, Quota};

/// A clock that stands still, and panics when it has been read too often: by a request that never
/// ends.
struct Patience(AtomicU64);

impl Clock for Patience {
    fn now(&self) -> u64 {
        assert!(self.0.fetch_add(1, Ordering::Relaxed) < 1_000_000, "a request that does not end");
        0
    }
}

fn forget_many(requests: u64, key_cap: usize) {
    let clock = Patience(AtomicU64::new(0));
    let limiter = Limiter::<u64>::builder(Quota::per_hour(5)).clock(clock).key_cap(key_cap).build().unwrap();
    for key in 0..requests {
        assert!(limiter.try_acquire(key).is_admitted());
        assert!(limiter.forget(key));
        limiter.clock().0.store(0, Ordering::Relaxed);
    }
}

#[test]
fn requests_return_though_many_keys_were_forgotten() {
    forget_many(5_000, 1 << 20);
    forget_many(500, 64);
}

#[test]
fn new_keys_after_a_clear_take_no_more_readings_of_the_clock_than_a_few_hundred_each() {
    let clock = Patience(AtomicU64::new(0));
    let limiter = Limiter::<u64>::builder(Quota::per_hour(5)).clock(clock).build().unwrap();
    let ask = |keys: core::ops::Range<u64>| {
        for key in keys {
            assert!(limiter.try_acquire(key).is_admitted());
            assert!(limiter.clock().0.swap(0, Ordering::Relaxed) < 2_000, "key {key}");
        }
    };
    ask(0..20_000);
    limiter.clear();
    limiter.clock().0.store(0, Ordering::Relaxed);
    ask(20_000..25_000);
}
