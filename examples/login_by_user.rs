//! Two login attempts a minute for each user at an address, and four for each address. Each attempt
//! is charged before the password is checked.
//!
//! A limit by user alone would let anybody lock a user out. A limit by user and address alone would
//! let one address try a list of names.
//!
//! ```text
//! alice from 192.0.2.7: 200
//! alice from 192.0.2.7: 200
//! alice from 192.0.2.7: 429, by user
//! alice from 192.0.2.8: 200
//! bob from 192.0.2.7: 200
//! carol from 192.0.2.7: 200
//! dave from 192.0.2.7: 429, by address
//! ```

use std::net::{IpAddr, Ipv4Addr};

use tollgate::{Decision, JointLimiter, Quota};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limiter = JointLimiter::<((String, IpAddr), IpAddr)>::builder()
        .dimension("user", [Quota::per_minute(2)])
        .dimension("address", [Quota::per_minute(4)])
        .build()?;

    let attempts = [("alice", 7), ("alice", 7), ("alice", 7), ("alice", 8), ("bob", 7), ("carol", 7), ("dave", 7)];
    for (user, host) in attempts {
        let address = IpAddr::from(Ipv4Addr::new(192, 0, 2, host));
        let answer = match limiter.try_acquire(((user, address), address))? {
            Decision::Admitted(_) => "200".to_owned(),
            Decision::Denied(denial) => format!("429, by {}", limiter.dimension(denial.dimension())),
        };
        println!("{user} from {address}: {answer}");
    }
    Ok(())
}
