//! The same program with a keyed limiter of governor.

use core::num::NonZeroU32;

use governor::{Quota, RateLimiter};

fn main() {
    let limiter = RateLimiter::keyed(Quota::per_minute(NonZeroU32::new(100).expect("above zero")));
    let admitted = std::env::args().filter(|key| limiter.check_key(key).is_ok()).count();
    println!("{admitted}");
}
