//! Five requests in any ten seconds, as a timeline: the sixth request gets its exact wait.
//!
//! At 8 s five permits are live. The permit of 1 s is free again at 11 s.
//!
//! ```text
//!  1.0 s  admitted, 4 left
//!  2.8 s  admitted, 3 left
//!  4.0 s  admitted, 2 left
//!  5.5 s  admitted, 1 left
//!  7.0 s  admitted, 0 left
//!  8.0 s  denied: wait 3s, until 11 s
//! 11.1 s  admitted, 0 left
//! ```

use std::io::{self, Write};
use std::time::Duration;

use tollgate::{Decision, DirectLimiter, MockClock, Quota};

const ARRIVALS_MS: [u64; 7] = [1000, 2800, 4000, 5500, 7000, 8000, 11_100];

/// Prints the timeline and returns the decisions.
fn run(out: &mut impl Write) -> io::Result<Vec<Decision>> {
    let clock = MockClock::new();
    let quota = Quota::new(5, Duration::from_secs(10));
    let limiter = DirectLimiter::with_clock(quota, clock.clone()).map_err(io::Error::other)?;
    let mut told = Vec::new();
    for at in ARRIVALS_MS.map(Duration::from_millis) {
        clock.set(u64::try_from(at.as_nanos()).map_err(io::Error::other)?);
        let status = limiter.try_acquire_status();
        let (at, left) = (at.as_secs_f64(), status.remaining());
        match status.decision() {
            Decision::Admitted(_) => writeln!(out, "{at:>4.1} s  admitted, {left} left")?,
            Decision::Denied(denial) => {
                let wait = denial.retry_after();
                writeln!(out, "{at:>4.1} s  denied: wait {wait:?}, until {} s", at + wait.as_secs_f64())?;
            }
        }
        told.push(status.decision());
    }
    Ok(told)
}

fn main() -> io::Result<()> {
    run(&mut io::stdout().lock()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sixth_waits_three_seconds_and_the_seventh_is_admitted() {
        let mut out = Vec::new();
        let told = run(&mut out).unwrap();
        let waits: Vec<_> = told.iter().map(Decision::retry_after).collect();
        let three_seconds = Some(Duration::from_secs(3));
        assert_eq!(waits, [None, None, None, None, None, three_seconds, None]);
        let story = String::from_utf8(out).unwrap();
        assert!(story.contains(" 8.0 s  denied: wait 3s, until 11 s"), "{story}");
        // At 11.1 s the request of 1 s no longer counts, and the other four do.
        assert!(story.ends_with("11.1 s  admitted, 0 left\n"), "{story}");
    }
}
