//! As `recorded_runs.rs`, for a token bucket, a fixed window and a quantised log: many threads,
//! every call recorded, and the whole run checked.

use std::time::Duration;

use crate::checker::meters::{Bucket, Steps, Window};
use crate::checker::record::{Numbers, Plan, READING_ERROR, obey, record};
use crate::checker::{Event, Told};
use tollgate::{AtKeyCap, Clock, DirectLimiter, Limiter, MockClock, Quota};

const BUCKETS: [Bucket; 4] = [
    Bucket { capacity: 1, refill: 1, per: 20_000 },
    Bucket { capacity: 5, refill: 3, per: 10_000 },
    Bucket { capacity: 100, refill: 7, per: 100_000 },
    // Refilled within the call, as good as.
    Bucket { capacity: 3, refill: 1000, per: 1_000_000 },
];

impl Bucket {
    fn quota(self) -> Quota {
        Quota::token_bucket(self.capacity, self.refill, Duration::from_nanos(self.per))
    }

    fn assert_kept(self, what: &str, error: u64, events: &[Event]) {
        self.check(events, error).unwrap_or_else(|fault| panic!("{what}, {self:?}: {fault:?}"));
    }
}

fn windows() -> impl Iterator<Item = Window> {
    let lengths = [(1, 20_000), (3, 100_000), (50, 1_000_000)];
    let window = |(limit, window)| [false, true].map(|aligned| Window { limit, window, aligned });
    lengths.into_iter().flat_map(window)
}

impl Window {
    fn quota(self) -> Quota {
        let plain = Quota::fixed_window(self.limit, Duration::from_nanos(self.window));
        if self.aligned { plain.aligned(Duration::ZERO) } else { plain }
    }

    fn assert_kept(self, what: &str, error: u64, events: &[Event]) {
        self.check(events, error).unwrap_or_else(|fault| panic!("{what}, {self:?}: {fault:?}"));
    }
}

const STEPS: [Steps; 4] = [
    Steps { limit: 1, window: 20_000, resolution: 5_000 },
    Steps { limit: 5, window: 40_000, resolution: 1_000 },
    Steps { limit: 50, window: 200_000, resolution: 200_000 },
    Steps { limit: 300, window: 1_000_000, resolution: 250 },
];

impl Steps {
    fn quota(self) -> Quota {
        Quota::quantised_log(self.limit, Duration::from_nanos(self.window), Duration::from_nanos(self.resolution))
    }

    fn assert_kept(self, what: &str, error: u64, events: &[Event]) {
        self.check(events, error).unwrap_or_else(|fault| panic!("{what}, {self:?}: {fault:?}"));
    }
}

/// The plans of the runs: 2 to 4 threads, on one key and on many.
fn plans(limit: u32) -> impl Iterator<Item = Plan> {
    [(2, 1), (3, 1), (4, 1), (2, 50), (4, 50)]
        .map(|(threads, keys)| Plan { threads, calls: 6000 / threads, keys, costs: limit.min(3), obeys_every: 50 })
        .into_iter()
}

/// All the calls of such a run on the real clock, with less room than keys where they are many:
/// what is as new makes way.
fn on_the_real_clock(quota: Quota, plan: Plan) -> Vec<Event> {
    let builder = Limiter::<u32>::builder(quota).key_cap(30).at_key_cap(AtKeyCap::Deny);
    let limiter = builder.build().expect("a good quota and cap");
    let decide = |key, cost| limiter.try_acquire_n(key, cost).expect("costs up to the limit");
    record(plan, limiter.clock(), decide, obey(plan, limiter.clock()))
}

/// The threads move the clock themselves, often to the nanosecond that they were advised.
fn on_a_clock_that_the_threads_move(quota: Quota, plan: Plan) -> Vec<Event> {
    let clock = MockClock::new();
    let limiter = Limiter::<u32>::builder(quota).clock(clock.clone()).build().expect("a good quota");
    let decide = |key, cost| limiter.try_acquire_n(key, cost).expect("costs up to the limit");
    let part = u32::try_from(quota.window().as_nanos() / 8).expect("short") + 1;
    let move_clock = |numbers: &mut Numbers, told: Told| match told {
        Told::Denied { retry_after, .. } if numbers.below(4) == 0 => {
            clock.advance(Duration::from_nanos(retry_after - u64::from(numbers.below(2))));
        }
        _ if numbers.below(16) == 0 => clock.advance(Duration::from_nanos(numbers.below(part).into())),
        _ => {}
    };
    let events = record(plan, &clock, decide, move_clock);
    assert!(clock.now() > 0);
    events
}

#[test]
fn a_token_bucket_on_the_real_clock() {
    for bucket in BUCKETS {
        for plan in plans(bucket.capacity) {
            bucket.assert_kept("the real clock", READING_ERROR, &on_the_real_clock(bucket.quota(), plan));
        }
    }
}

#[test]
fn a_token_bucket_on_a_clock_that_the_threads_move() {
    for bucket in BUCKETS {
        for plan in plans(bucket.capacity) {
            bucket.assert_kept("a moved clock", 0, &on_a_clock_that_the_threads_move(bucket.quota(), plan));
        }
    }
}

#[test]
fn a_token_bucket_without_keys() {
    for bucket in BUCKETS {
        let plan = Plan { threads: 4, calls: 1500, keys: 1, costs: 1, obeys_every: 50 };
        let limiter = DirectLimiter::new(bucket.quota()).expect("a good quota");
        let events = record(plan, limiter.clock(), |_, _| limiter.try_acquire(), obey(plan, limiter.clock()));
        bucket.assert_kept("without keys", READING_ERROR, &events);
    }
}

#[test]
fn a_fixed_window_on_the_real_clock() {
    for window in windows() {
        for plan in plans(window.limit) {
            // An aligned window begins with the limiter's clock, which is the recorder's too.
            window.assert_kept("the real clock", READING_ERROR, &on_the_real_clock(window.quota(), plan));
        }
    }
}

#[test]
fn a_fixed_window_on_a_clock_that_the_threads_move() {
    for window in windows() {
        for plan in plans(window.limit) {
            window.assert_kept("a moved clock", 0, &on_a_clock_that_the_threads_move(window.quota(), plan));
        }
    }
}

#[test]
fn a_quantised_log_on_the_real_clock() {
    for steps in STEPS {
        for plan in plans(steps.limit) {
            steps.assert_kept("the real clock", READING_ERROR, &on_the_real_clock(steps.quota(), plan));
        }
    }
}

#[test]
fn a_quantised_log_on_a_clock_that_the_threads_move() {
    for steps in STEPS {
        for plan in plans(steps.limit) {
            steps.assert_kept("a moved clock", 0, &on_a_clock_that_the_threads_move(steps.quota(), plan));
        }
    }
}

/// While the clock stands still exactly the capacity is admitted, and after it has moved exactly
/// what has come back.
#[test]
fn at_each_tick_of_a_clock_that_stands_still_exactly_the_permits_left_are_admitted() {
    let bucket = Bucket { capacity: 40, refill: 3, per: 10 };
    let clock = MockClock::new();
    let limiter = Limiter::<u32>::builder(bucket.quota()).clock(clock.clone()).build().expect("a good quota");
    let plan = Plan { threads: 4, calls: 60, keys: 1, costs: 1, obeys_every: 1 };
    let (mut events, mut refilled) = (vec![], 0);
    for tick in 0..50_u64 {
        let run = record(plan, &clock, |key, _| limiter.try_acquire(key), |_, _| {});
        let admitted = run.iter().filter(|event| event.told == Told::Admitted).count();
        assert_eq!(u64::try_from(admitted), Ok(if tick == 0 { 40 } else { refilled }), "tick {tick}");
        events.extend(run);
        // Fractions of a permit are kept: seven nanoseconds are 2.1 permits.
        clock.advance(Duration::from_nanos(7));
        refilled = (tick + 1) * 21 / 10 - tick * 21 / 10;
    }
    bucket.assert_kept("a clock that stands still", 0, &events);
}
