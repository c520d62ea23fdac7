//! A restart that loses no permits: a snapshot keeps the permits of each key.
//!
//! ```text
//! before the restart: admitted
//! after it: denied
//! ```

use tollgate::{Limiter, Quota, Snapshot};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let quota = Quota::per_hour(1);
    let path = std::env::temp_dir().join(format!("tollgate-{}.snapshot", std::process::id()));

    let limiter = Limiter::<String>::new(quota)?;
    println!("before the restart: {}", limiter.try_acquire("alice"));
    limiter.snapshot().save(&path)?;
    drop(limiter);

    let limiter = Limiter::<String>::builder(quota).restore(&Snapshot::load(&path)?)?;
    let decision = limiter.try_acquire("alice");
    println!("after it: {}", if decision.is_denied() { "denied" } else { "admitted" });
    std::fs::remove_file(path)?;
    Ok(())
}
