//! Only failed logins count: a right password refunds the permit.
//!
//! ```text
//! alice, "secret": 200
//! alice, "guess": 401
//! alice, "secret": 200
//! alice, "guess": 401
//! alice, "guess": 429
//! ```

use std::time::Duration;

use tollgate::{Limiter, Quota};

fn login(limiter: &Limiter<String>, user: &str, password: &str) -> u16 {
    let Ok(attempt) = limiter.reserve(user, 1, Duration::ZERO) else { return 429 };
    if password == "secret" {
        attempt.cancel();
        return 200;
    }
    attempt.commit();
    401
}

fn main() -> Result<(), tollgate::BuildError> {
    let limiter = Limiter::new(Quota::per_hour(2))?;
    for password in ["secret", "guess", "secret", "guess", "guess"] {
        println!("alice, {password:?}: {}", login(&limiter, "alice", password));
    }
    Ok(())
}
