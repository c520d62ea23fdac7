//! Ten a second, a hundred a minute and a thousand a day, all on one key. A request must fit into
//! each quota, and is charged to all or to none.
//!
//! A client sends twenty requests a second. It gets ten a second until the hundred of the minute
//! are used, then a hundred a minute until the thousand of the day are used. Each denial names the
//! quota that denied and the wait.

use std::io::{self, Write};
use std::time::Duration;

use tollgate::{Decision, Limiter, MockClock, Quota};

const QUOTAS: [(Quota, &str); 3] = [
    (Quota::per_second(10), "10 a second"),
    (Quota::per_minute(100), "100 a minute"),
    (Quota::per_day(1000), "1,000 a day"),
];

/// What happened within a while: how many were admitted, and how many denied by each of the quotas.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    admitted: u32,
    denied: [u32; 3],
    longest_wait: Duration,
}

/// Twenty requests a second for so long.
fn send(limiter: &Limiter<String, MockClock>, clock: &MockClock, seconds: u32) -> Told {
    let mut told = Told::default();
    for _ in 0..20 * seconds {
        match limiter.try_acquire("203.0.113.7") {
            Decision::Admitted(_) => told.admitted += 1,
            Decision::Denied(denial) => {
                told.denied[denial.quota()] += 1;
                told.longest_wait = told.longest_wait.max(denial.retry_after());
            }
        }
        clock.advance(Duration::from_millis(50));
    }
    told
}

/// Tells the story, and returns what happened in the first second, the rest of the minute, and the
/// rest of the hour.
fn run(out: &mut impl Write) -> io::Result<[Told; 3]> {
    let clock = MockClock::new();
    let [(second, _), (minute, _), (day, _)] = QUOTAS;
    let builder = Limiter::<String>::builder(second).and(minute).and(day).clock(clock.clone());
    let limiter = builder.build().map_err(io::Error::other)?;
    let mut told = [1, 59, 59 * 60].map(|seconds| (seconds, send(&limiter, &clock, seconds)));
    for (seconds, told) in &mut told {
        writeln!(out, "in {seconds} s: {} of {} admitted", told.admitted, 20 * *seconds)?;
        for (count, (_, name)) in told.denied.iter().zip(QUOTAS).filter(|&(&count, _)| count > 0) {
            writeln!(out, "    {count} denied by {name}")?;
        }
        writeln!(out, "    the longest wait that was advised: {:?}", told.longest_wait)?;
    }
    let status = limiter.peek("203.0.113.7");
    writeln!(out, "{} of {} left", status.remaining(), status.limit())?;
    Ok(told.map(|(_, told)| told))
}

fn main() -> io::Result<()> {
    run(&mut io::stdout().lock()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_quota_is_kept_and_the_one_that_decides_is_named() {
        let mut out = Vec::new();
        let [second, minute, hour] = run(&mut out).unwrap();
        // The first ten within half a second; the eleventh waits for the other half.
        assert_eq!(second, Told { admitted: 10, denied: [10, 0, 0], longest_wait: Duration::from_millis(500) });
        // Ninety more within nine seconds and a half. Who comes at 9.5 s waits for the minute to be
        // over.
        assert_eq!(minute.admitted, 90);
        assert_eq!(minute.denied, [80, 1010, 0]);
        assert_eq!(minute.longest_wait, Duration::from_millis(50_500));
        // Nine hundred more, as the minute's permits come back one by one, never more than ten in a
        // second; and then the day's are gone. The eleventh of a second waits for the minute as well,
        // which has more permits.
        assert_eq!(hour.admitted, 900);
        assert_eq!(hour.denied, [0, 8890, 61_010]);
        assert!(hour.longest_wait > Duration::from_secs(23 * 60 * 60), "{hour:?}");
        let story = String::from_utf8(out).unwrap();
        assert!(story.ends_with("0 of 1000 left\n"), "{story}");
    }
}
