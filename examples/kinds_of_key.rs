//! A key can be of any type that hashes. A request borrows its parts and allocates nothing.
//!
//! ```text
//! text, number, address, pair, own type: admitted
//! ```

use std::net::{IpAddr, Ipv4Addr};

use tollgate::{BuildError, Limiter, Quota};

#[derive(Hash)]
enum Plan {
    Free,
    Paid { seats: u32 },
}

fn main() -> Result<(), BuildError> {
    let quota = Quota::per_second(100);

    let by_name = Limiter::<String>::new(quota)?;
    let by_number = Limiter::<u64>::new(quota)?;
    let by_address = Limiter::<IpAddr>::new(quota)?;
    let by_tenant_and_path = Limiter::<(u64, String)>::new(quota)?;
    let by_plan = Limiter::<Plan>::new(quota)?;

    let decisions = [
        by_name.try_acquire("alice"),
        by_number.try_acquire(7),
        by_address.try_acquire(IpAddr::from(Ipv4Addr::LOCALHOST)),
        by_tenant_and_path.try_acquire((7, "/search")),
        by_plan.try_acquire(&Plan::Free),
        by_plan.try_acquire(&Plan::Paid { seats: 3 }),
    ];
    if decisions.iter().all(|decision| decision.is_admitted()) {
        println!("text, number, address, pair, own type: admitted");
    }
    Ok(())
}
