//! Many keys that are forgotten, as a login does it on success.

use tollgate::{Limiter, Quota};
use tollgate_kit::clocks::CountedClock;

fn forget_many(requests: u64, key_cap: usize) {
    let clock = CountedClock::new();
    let limiter = Limiter::<u64>::builder(Quota::per_hour(5)).clock(clock).key_cap(key_cap).build().unwrap();
    for key in 0..requests {
        assert!(limiter.try_acquire(key).is_admitted());
        assert!(limiter.forget(key));
        limiter.clock().set(0);
    }
}

#[test]
fn requests_return_though_many_keys_were_forgotten() {
    forget_many(5_000, 1 << 20);
    forget_many(500, 64);
}

#[test]
fn new_keys_after_a_clear_take_no_more_readings_of_the_clock_than_a_few_hundred_each() {
    let clock = CountedClock::new();
    let limiter = Limiter::<u64>::builder(Quota::per_hour(5)).clock(clock).build().unwrap();
    let ask = |keys: core::ops::Range<u64>| {
        for key in keys {
            assert!(limiter.try_acquire(key).is_admitted());
            assert!(limiter.clock().take_readings() < 2_000, "key {key}");
        }
    };
    ask(0..20_000);
    limiter.clear();
    limiter.clock().set(0);
    ask(20_000..25_000);
}
