//! Two login attempts a minute for each user name, charged before the password is checked.
//!
//! ```text
//! alice: 200
//! alice: 200
//! alice: 429
//! bob: 200
//! ```

use tollgate::{BuildError, Limiter, Quota};

fn login(limiter: &Limiter<String>, user: &str) -> u16 {
    if limiter.try_acquire(user).is_admitted() { 200 } else { 429 }
}

fn main() -> Result<(), BuildError> {
    let limiter = Limiter::new(Quota::per_minute(2))?;
    for user in ["alice", "alice", "alice", "bob"] {
        println!("{user}: {}", login(&limiter, user));
    }
    Ok(())
}
