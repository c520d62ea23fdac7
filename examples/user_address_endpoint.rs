//! One decision on user, address and endpoint: charged to all of them or to none.
//!
//! ```text
//! alice from 192.0.2.7: admitted
//! anonymous from 192.0.2.7: admitted
//! bob from 192.0.2.7: denied by address
//! bob from 192.0.2.8: admitted
//! ```

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use tollgate::{Decision, JointLimiter, Quota};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limiter = JointLimiter::<(String, IpAddr, String)>::builder()
        .dimension("user", [Quota::per_second(10), Quota::per_minute(100)])
        .dimension("address", [Quota::per_minute(2)])
        .dimension("endpoint", [Quota::token_bucket(1000, 100, Duration::from_secs(1))])
        .build()?;

    let requests = [(Some("alice"), 7), (None, 7), (Some("bob"), 7), (Some("bob"), 8)];
    for (user, host) in requests {
        let address = IpAddr::from(Ipv4Addr::new(192, 0, 2, host));
        let answer = match limiter.try_acquire((user, address, "/login"))? {
            Decision::Admitted(_) => "admitted".to_owned(),
            Decision::Denied(denial) => format!("denied by {}", limiter.dimension(denial.dimension())),
        };
        println!("{} from {address}: {answer}", user.unwrap_or("anonymous"));
    }
    Ok(())
}
