//! The waits of a status never exceed what the quota allows. The clock advances at each reading, so
//! a decision that reads it twice and counts from the first reading shows.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate::{Clock, JointLimiter, Limiter, Quota, QuotaStatus, Status};
use tollgate_kit::facade::each;

const WINDOW: Duration = Duration::from_secs(60);

/// A clock that advances by a step at each reading.
struct Ticking {
    now: AtomicU64,
    step: u64,
}

impl Ticking {
    fn by(step: u64) -> Self {
        Self { now: AtomicU64::new(0), step }
    }
}

impl Clock for Ticking {
    fn now(&self) -> u64 {
        self.now.fetch_add(self.step, Ordering::Relaxed)
    }
}

/// Quotas, each with the longest time until all of its permits are free.
fn quotas() -> [(Quota, Duration); 7] {
    let second = Duration::from_secs(1);
    [
        (Quota::new(300, WINDOW), WINDOW),
        (Quota::token_bucket(300, 5, second), WINDOW),
        (Quota::leaky_bucket(300, 5, second), WINDOW),
        // The last place, and the interval behind it.
        (Quota::leaky_queue(5, second, WINDOW - second / 5), WINDOW),
        (Quota::fixed_window(300, WINDOW), WINDOW),
        // A count weighs until the end of the next window.
        (Quota::sliding_counter(300, WINDOW), 2 * WINDOW),
        (Quota::quantised_log(300, WINDOW, second), WINDOW + second),
    ]
}

fn check(left: QuotaStatus, longest: Duration, of: &str) {
    let (next, reset) = (left.next_after(), left.reset_after());
    assert!(next <= reset && reset <= longest, "{of}: next after {next:?}, reset after {reset:?} of {longest:?}");
}

fn check_each(status: Status, longest: Duration, of: &str) {
    for left in status.quotas() {
        check(left, longest, of);
    }
}

const STEPS: [u64; 3] = [1, 29_625, 50_000_000];

#[test]
fn no_wait_exceeds_the_window() {
    for ((quota, longest), step) in quotas().into_iter().flat_map(|quota| STEPS.map(|step| (quota, step))) {
        for limiter in each(&[quota], || Ticking::by(step)) {
            for round in 0..700_u32 {
                let (key, cost, of) =
                    ([Some(round % 2)], 1 + round % 3, format!("{quota}, step {step}, round {round}"));
                check_each(limiter.status(&key, 1).unwrap(), longest, &of);
                check_each(limiter.status(&key, cost).unwrap(), longest, &of);
                check_each(limiter.peek(&key), longest, &of);
                check_each(limiter.peek_n(&key, cost).unwrap(), longest, &of);
                check_each(limiter.status(&[Some(1000 + round)], 1).unwrap(), longest, &of);
                if let Ok((status, receipt)) = limiter.reserve(&key, 1) {
                    check_each(status, longest, &of);
                    limiter.refund(receipt);
                }
            }
        }
    }
}

#[test]
fn no_wait_of_several_quotas_or_dimensions_exceeds_their_windows() {
    let logs = [Quota::new(100, WINDOW), Quota::new(250, 5 * WINDOW)];
    let longest = [WINDOW, 5 * WINDOW, WINDOW];
    for step in STEPS {
        let builder = Limiter::<u32>::builder(logs[0]).and(logs[1]).clock(Ticking::by(step));
        let limiter = builder.build().unwrap();
        let builder = JointLimiter::<(u32, u32)>::builder().dimension("user", logs);
        let builder = builder.dimension("address", [Quota::fixed_window(300, WINDOW)]);
        let joint = builder.clock(Ticking::by(step)).build().unwrap();
        for round in 0..400_u32 {
            let of = format!("step {step}, round {round}");
            for (left, longest) in limiter.try_acquire_status(0).quotas().zip(longest) {
                check(left, longest, &of);
            }
            for (item, longest) in joint.try_acquire_status((0, round % 5)).unwrap().quotas().zip(longest) {
                check(item, longest, &of);
            }
        }
    }
}
