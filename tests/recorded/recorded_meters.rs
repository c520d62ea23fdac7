//! As `recorded_runs.rs`, for a token bucket, a fixed window and a quantised log: many threads,
//! every call recorded, and the whole run checked.

use std::time::Duration;

use tollgate::{AtKeyCap, Clock, DirectLimiter, Limiter, MockClock, MonotonicClock};
use tollgate_kit::checker::record::{Numbers, Plan, READING_ERROR, obey, record};
use tollgate_kit::checker::{Event, Told};
use tollgate_kit::oracle::meter::Meter;

fn buckets() -> [Meter; 4] {
    let bucket = |(capacity, refill, per)| Meter::TokenBucket { capacity, refill, per, start: capacity };
    // The last is refilled within the call, as good as.
    [(1, 1, 20_000), (5, 3, 10_000), (100, 7, 100_000), (3, 1000, 1_000_000)].map(bucket)
}

fn windows() -> impl Iterator<Item = Meter> {
    let lengths = [(1, 20_000), (3, 100_000), (50, 1_000_000)];
    // Both clocks know no wall clock, so an aligned window begins with the limiter's clock, which is the
    // recorder's too.
    let window = |(limit, window)| [None, Some(0)].map(|phase| Meter::FixedWindow { limit, window, phase });
    lengths.into_iter().flat_map(window)
}

fn steps() -> [Meter; 4] {
    let steps = |(limit, window, resolution)| Meter::QuantisedLog { limit, window, resolution };
    [(1, 20_000, 5_000), (5, 40_000, 1_000), (50, 200_000, 200_000), (300, 1_000_000, 250)].map(steps)
}

fn assert_kept(meter: Meter, error: u64, events: &[Event]) {
    meter.check(events, error).unwrap_or_else(|fault| panic!("{meter:?}: {fault:?}"));
}

/// The plans of the runs: 2 to 4 threads, on one key and on many.
fn plans(limit: u32) -> impl Iterator<Item = Plan> {
    [(2, 1), (3, 1), (4, 1), (2, 50), (4, 50)]
        .map(|(threads, keys)| Plan { threads, calls: 6000 / threads, keys, costs: limit.min(3), obeys_every: 50 })
        .into_iter()
}

/// The real clock, from whose origin phases count.
struct ByOrigin(MonotonicClock);

impl Clock for ByOrigin {
    fn now(&self) -> u64 {
        self.0.now()
    }
}

/// Such runs on the real clock, with less room than keys where they are many: what is as new makes
/// way.
fn on_the_real_clock(meters: impl IntoIterator<Item = Meter>) {
    for (meter, plan) in meters.into_iter().flat_map(|meter| plans(meter.limit()).map(move |plan| (meter, plan))) {
        let builder = Limiter::<u32>::builder(meter.quota()).key_cap(30).at_key_cap(AtKeyCap::Deny);
        let limiter = builder.clock(ByOrigin(MonotonicClock::new())).build().expect("a good quota and cap");
        let decide = |key, cost| limiter.try_acquire_n(key, cost).expect("costs up to the limit");
        assert_kept(meter, READING_ERROR, &record(plan, limiter.clock(), decide, obey(plan, &limiter.clock().0)));
    }
}

/// The threads move the clock themselves, often to the nanosecond that they were advised.
fn on_a_clock_that_the_threads_move(meters: impl IntoIterator<Item = Meter>) {
    for (meter, plan) in meters.into_iter().flat_map(|meter| plans(meter.limit()).map(move |plan| (meter, plan))) {
        let (clock, quota) = (MockClock::new(), meter.quota());
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
        assert_kept(meter, 0, &events);
    }
}

#[test]
fn a_token_bucket_on_the_real_clock() {
    on_the_real_clock(buckets());
}

#[test]
fn a_token_bucket_on_a_clock_that_the_threads_move() {
    on_a_clock_that_the_threads_move(buckets());
}

#[test]
fn a_token_bucket_without_keys() {
    for bucket in buckets() {
        let plan = Plan { threads: 4, calls: 1500, keys: 1, costs: 1, obeys_every: 50 };
        let limiter = DirectLimiter::new(bucket.quota()).expect("a good quota");
        let events = record(plan, limiter.clock(), |_, _| limiter.try_acquire(), obey(plan, limiter.clock()));
        assert_kept(bucket, READING_ERROR, &events);
    }
}

#[test]
fn a_fixed_window_on_the_real_clock() {
    on_the_real_clock(windows());
}

#[test]
fn a_fixed_window_on_a_clock_that_the_threads_move() {
    on_a_clock_that_the_threads_move(windows());
}

#[test]
fn a_quantised_log_on_the_real_clock() {
    on_the_real_clock(steps());
}

#[test]
fn a_quantised_log_on_a_clock_that_the_threads_move() {
    on_a_clock_that_the_threads_move(steps());
}

/// While the clock stands still exactly the capacity is admitted, and after it has moved exactly
/// what has come back.
#[test]
fn at_each_tick_of_a_clock_that_stands_still_exactly_the_permits_left_are_admitted() {
    let bucket = Meter::TokenBucket { capacity: 40, refill: 3, per: 10, start: 40 };
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
    assert_kept(bucket, 0, &events);
}
