//! Customers of two plans: the request says which quotas its key has.
//!
//! ```text
//! alice (free): 2 of 5 requests admitted
//! bob (paid): 4 of 5 requests admitted
//! ```

use tollgate::{Limiter, Quota};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limiter = Limiter::<str>::builder(Quota::per_minute(2)).tier("paid", [Quota::per_minute(4)]).build()?;
    for (customer, plan) in [("alice", "free"), ("bob", "paid")] {
        // A plan without a tier has the quotas of the limiter itself.
        let key = limiter.tier(plan).unwrap_or_default().key(customer);
        let admitted = (0..5).filter(|_| limiter.try_acquire(key).is_admitted()).count();
        println!("{customer} ({plan}): {admitted} of 5 requests admitted");
    }
    Ok(())
}
