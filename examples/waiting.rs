//! Workers that wait for permits: ten jobs a second, and no job waits longer than a minute.
//!
//! A queue gives each of many workers a place. (A log and a bucket reserve at most one window, or
//! the time to fill, ahead: see `Limiter::reserve`.)
//!
//! ```text
//! job 1
//! job 2
//! job 3
//! ```

use std::thread::sleep;
use std::time::Duration;

use tollgate::{DirectLimiter, Quota};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let jobs = DirectLimiter::new(Quota::leaky_queue(10, Duration::from_secs(1), Duration::from_secs(60)))?;
    for job in 1..=3 {
        let reservation = jobs.reserve(1, Duration::from_secs(60))?;
        sleep(reservation.delay());
        reservation.commit();
        println!("job {job}");
    }
    Ok(())
}
