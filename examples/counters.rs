//! The figures of a limiter, for a dashboard.
//!
//! ```text
//! 3 keys, 4 admitted, 2 denied
//! ```

use tollgate::{BuildError, Limiter, Quota};

fn main() -> Result<(), BuildError> {
    let limiter = Limiter::<String>::builder(Quota::per_hour(2)).count_decisions(true).build()?;
    let _ = limiter.try_acquire_many(["alice", "alice", "alice", "alice", "bob", "carol"]);
    let counts = limiter.counts();
    let decisions = counts.decisions.unwrap_or_default();
    println!("{} keys, {} admitted, {} denied", counts.live_keys, decisions.admitted, decisions.denied);
    Ok(())
}
