//! An hour of requests of 20,000 clients, three of them greedy, and who was denied most.
//!
//! ```sh
//! cargo run -p tollgate-observe --example who_is_denied
//! ```
//!
//! prints
//!
//! ```text
//! 2584 denials, most of them of
//! 720 203.0.113.4
//! 540 203.0.113.5
//! 180 203.0.113.10
//! 13 (at least 3) 10.0.55.136
//! ```
//!
//! The list has room for 100 keys, and a thousand were denied: so a count may be too high, and says
//! by how much. The limit is on trial. In shadow mode it denies nobody, and the list is the same.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tollgate::{BuildError, Limiter, MockClock, Quota};
use tollgate_observe::TopDenied;

fn main() -> Result<(), BuildError> {
    println!("{}", report()?);
    Ok(())
}

fn report() -> Result<String, BuildError> {
    let denied = Arc::new(TopDenied::new(100));
    let clock = MockClock::new();
    let limiter = Limiter::<IpAddr>::builder(Quota::per_minute(3))
        .shadow(true)
        .observer(Arc::clone(&denied))
        .clock(clock.clone())
        .build()?;
    let mut seed = 1_u64;
    for second in 0..3_600 {
        for _ in 0..100 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let [a, b, ..] = ((seed >> 33) % 20_000).to_be_bytes()[6..] else { unreachable!() };
            let _ = limiter.try_acquire(IpAddr::from([10, 0, a, b]));
        }
        for greedy in [4, 5, 10] {
            if second % u32::from(greedy) == 0 {
                let _ = limiter.try_acquire(IpAddr::from([203, 0, 113, greedy]));
            }
        }
        clock.advance(Duration::from_secs(1));
    }
    let top = denied.top(4).iter().map(|key| format!("\n{key}")).collect::<String>();
    Ok(format!("{} denials, most of them of{top}", denied.denials()))
}

#[test]
fn the_greedy_are_named() {
    let printed = include_str!("who_is_denied.rs").lines().skip_while(|line| *line != "//! ```text").skip(1);
    let printed: Vec<&str> =
        printed.map_while(|line| line.strip_prefix("//! ")).take_while(|line| *line != "```").collect();
    assert_eq!(report().unwrap(), printed.join("\n"));
}
