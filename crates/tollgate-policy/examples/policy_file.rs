//! Limits from a file, which changes while requests come.
//!
//! ```text
//! alice: true, true, false
//! with the limit raised to 5: true
//! one dimension alone: 2 requests an hour
//! ```

use tollgate::JointLimiter;
use tollgate_policy::Policy;

// A service reads its file by `Policy::load("limits.toml")`.
const FILE: &str = r#"
[[dimension]]
name = "user"

[[dimension.quota]]
limit = 2
per = "1h"
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limiter: JointLimiter<(String,)> = Policy::from_toml(FILE)?.builder()?.build()?;
    let admits_alice = || limiter.try_acquire(("alice",)).map(|decision| decision.is_admitted());
    println!("alice: {}, {}, {}", admits_alice()?, admits_alice()?, admits_alice()?);

    Policy::from_toml(&FILE.replace("limit = 2", "limit = 5"))?.apply(&limiter)?;
    println!("with the limit raised to 5: {}", admits_alice()?);

    // One dimension needs no tuples.
    let limiter = Policy::from_toml(FILE)?.builder_of::<String>("user")?.build()?;
    println!("one dimension alone: {} requests an hour", limiter.peek("alice").limit());
    Ok(())
}
