//! Each mistake is an error with its remedy, and never a panic.
//!
//! ```text
//! the window is zero: give at least one nanosecond
//! a request of cost 6 can never be admitted under a limit of 5: ask for at most 5
//! a sliding window log can't become a token bucket: build another limiter for it
//! 1 dimensions for a limiter whose type names 2: give one for each key type
//! ```

use std::time::Duration;

use tollgate::{JointLimiter, Limiter, Quota};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Err(error) = Limiter::<String>::new(Quota::new(5, Duration::ZERO)) {
        println!("{error}");
    }
    let limiter = Limiter::<String>::new(Quota::per_minute(5))?;
    if let Err(error) = limiter.try_acquire_n("alice", 6) {
        println!("{error}");
    }
    let other = Quota::token_bucket(5, 1, Duration::from_secs(1));
    if let Err(error) = limiter.set_quotas(&[other]) {
        println!("{error}");
    }
    let joint = JointLimiter::<(String, String)>::builder().dimension("user", [Quota::per_minute(5)]);
    if let Err(error) = joint.build() {
        println!("{error}");
    }
    Ok(())
}
