//! Ten requests an hour and three a minute for each key, and the numbers of both.
//!
//! ```text
//! 3 per minute: 0 left
//! 10 per hour: 7 left
//! denied by: minute
//! ```

use tollgate::{Decision, Limiter, Quota};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let minute = Quota::per_minute(3).named("minute");
    let hour = Quota::per_hour(10).named("hour");
    let limiter = Limiter::<String>::builder(minute).and(hour).build()?;

    let status = limiter.try_acquire_n_status("alice", 3)?;
    for (quota, numbers) in limiter.quotas().iter().zip(status.quotas()) {
        println!("{} per {}: {} left", numbers.limit(), quota.name().unwrap_or(""), numbers.remaining());
    }
    if let Decision::Denied(denial) = limiter.try_acquire("alice") {
        println!("denied by: {}", limiter.quotas()[denial.quota()].name().unwrap_or(""));
    }
    Ok(())
}
