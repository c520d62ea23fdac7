//! A customer pays for more: the limit of one key changes while requests come.
//!
//! ```text
//! free: 2 of 2 used, denied
//! paid: 2 of 10 used, admitted
//! ```

use tollgate::{Limiter, Quota};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limiter = Limiter::<String>::builder(Quota::per_day(2)).keys_with_quotas(1000).build()?;
    for tier in ["free", "paid"] {
        if tier == "paid" {
            limiter.set_quotas_of("alice", &[Quota::per_day(10)])?;
        } else {
            let _ = limiter.try_acquire_n("alice", 2)?;
        }
        let status = limiter.peek("alice");
        let (limit, used) = (status.limit(), status.limit() - status.remaining());
        let answer = if status.is_admitted() { "admitted" } else { "denied" };
        println!("{tier}: {used} of {limit} used, {answer}");
    }
    Ok(())
}
