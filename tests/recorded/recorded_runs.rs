//! Many threads on one limiter, every call recorded with the clock before and after, and the whole
//! run checked afterwards.
//!
//! Nothing here passes or fails by timing: whatever the scheduler does, a limiter that is right is
//! found right.

use std::time::Duration;

use tollgate::{AtKeyCap, DirectLimiter, Limiter, MockClock, Quota};
use tollgate_kit::checker::record::{Numbers, Plan, READING_ERROR, obey, record};
use tollgate_kit::checker::{Event, Expiry, Limit, Run, Summary, Told};

/// Permits are given back one by one, each a window after its own stamp.
const EXPIRY: Expiry = Expiry::EachOnItsOwn;

fn check(what: &str, quota: Quota, reading_error: u64, events: Vec<Event>) -> Summary {
    check_all(what, &[quota], reading_error, events)
}

fn check_all(what: &str, quotas: &[Quota], reading_error: u64, events: Vec<Event>) -> Summary {
    let limit = |quota: &Quota| Limit {
        permits: quota.limit(),
        window: u64::try_from(quota.window().as_nanos()).expect("short windows"),
    };
    let asked = events.len();
    let run = Run { limits: quotas.iter().map(limit).collect(), events, reading_error, expiry: EXPIRY };
    run.check().unwrap_or_else(|fault| panic!("{what}, {quotas:?}, {asked} calls: {fault:?}"))
}

/// The quotas of the runs on the real clock: windows so short that permits expire all the time.
fn short_quotas() -> impl Iterator<Item = Quota> {
    let windows = [20, 100, 1000].map(Duration::from_micros);
    [1, 2, 3, 8, 100].into_iter().flat_map(move |limit| windows.map(|window| Quota::new(limit, window)))
}

#[test]
fn one_key_on_the_real_clock() {
    for quota in short_quotas() {
        for threads in [2, 4, 8] {
            let plan = Plan { threads, calls: 10_000 / threads, keys: 1, costs: 1, obeys_every: 200 };
            let limiter = Limiter::<u32>::new(quota).expect("a good quota");
            let decide = |key, _| limiter.try_acquire(key);
            let events = record(plan, limiter.clock(), decide, obey(plan, limiter.clock()));
            check("one key", quota, READING_ERROR, events);
        }
    }
}

#[test]
fn a_few_keys_and_all_costs_on_the_real_clock() {
    for quota in short_quotas() {
        for threads in [2, 4, 8] {
            let plan = Plan { threads, calls: 10_000 / threads, keys: 3, costs: quota.limit(), obeys_every: 200 };
            let limiter = Limiter::<u32>::new(quota).expect("a good quota");
            let decide = |key, cost| limiter.try_acquire_n(key, cost).expect("costs up to the limit");
            let events = record(plan, limiter.clock(), decide, obey(plan, limiter.clock()));
            check("a few keys, all costs", quota, READING_ERROR, events);
        }
    }
}

#[test]
fn without_keys_on_the_real_clock() {
    for quota in short_quotas() {
        let plan = Plan { threads: 4, calls: 2500, keys: 1, costs: quota.limit().min(3), obeys_every: 200 };
        let limiter = DirectLimiter::new(quota).expect("a good quota");
        let decide = |_, cost| limiter.try_acquire_n(cost).expect("costs up to the limit");
        let events = record(plan, limiter.clock(), decide, obey(plan, limiter.clock()));
        check("without keys", quota, READING_ERROR, events);
    }
}

/// More keys than places: what is forgotten and what takes its place must never give a key a second
/// quota.
#[test]
fn keys_that_make_way_for_each_other_on_the_real_clock() {
    for (cap, keys) in [(2, 4), (16, 64), (256, 2000)] {
        for quota in short_quotas().filter(|quota| quota.limit() <= 3) {
            let plan = Plan { threads: 4, calls: 5000, keys, costs: quota.limit(), obeys_every: 200 };
            let builder = Limiter::<u32>::builder(quota).key_cap(cap).at_key_cap(AtKeyCap::Deny);
            let limiter = builder.build().expect("a good quota and cap");
            let decide = |key, cost| limiter.try_acquire_n(key, cost).expect("costs up to the limit");
            let events = record(plan, limiter.clock(), decide, obey(plan, limiter.clock()));
            check("more keys than places", quota, READING_ERROR, events);
        }
    }
}

/// The threads move the clock themselves, often to the nanosecond at which permits expire. Readings
/// are exact here.
#[test]
fn a_clock_that_the_threads_move() {
    for (limit, window) in [(1, 1), (1, 1000), (2, 10), (3, 1000), (8, 1000), (100, 1000)] {
        for threads in [2, 4, 8] {
            let quota = Quota::new(limit, Duration::from_nanos(window));
            let plan = Plan { threads, calls: 16_000 / threads, keys: 2, costs: limit, obeys_every: 4 };
            let clock = MockClock::new();
            let builder = Limiter::<u32>::builder(quota).clock(clock.clone());
            let limiter = builder.build().expect("a good quota");
            let decide = |key, cost| limiter.try_acquire_n(key, cost).expect("costs up to the limit");
            let move_clock = |numbers: &mut Numbers, told: Told| {
                let part = Duration::from_nanos(window / u64::from(1 + numbers.below(16)));
                match told {
                    // All that wait for one expiry race to it, and some come a nanosecond early.
                    Told::Denied { retry_after, .. } if numbers.below(plan.obeys_every) == 0 => {
                        clock.advance(Duration::from_nanos(retry_after - u64::from(numbers.below(2))));
                    }
                    _ if numbers.below(32) == 0 => clock.advance(part),
                    _ => {}
                }
            };
            let events = record(plan, &clock, decide, move_clock);
            check("a clock moved by the threads", quota, 0, events);
        }
    }
}

/// While the clock stands still exactly the limit is admitted, at every tick anew.
#[test]
fn at_each_tick_of_a_clock_that_stands_still_exactly_the_limit_is_admitted() {
    for limit in [1, 2, 3, 8, 100] {
        let quota = Quota::new(limit, Duration::from_nanos(10));
        let plan = Plan { threads: 8, calls: 60, keys: 2, costs: 1, obeys_every: 1 };
        let clock = MockClock::new();
        let builder = Limiter::<u32>::builder(quota).clock(clock.clone());
        let limiter = builder.build().expect("a good quota");
        let direct = DirectLimiter::with_clock(quota, clock.clone()).expect("a good quota");
        for _ in 0..20 {
            clock.advance(quota.window());
            let keyed = record(plan, &clock, |key, _| limiter.try_acquire(key), |_, _| {});
            let keyless = record(Plan { keys: 1, ..plan }, &clock, |_, _| direct.try_acquire(), |_, _| {});
            for (events, keys) in [(keyed, u64::from(plan.keys)), (keyless, 1)] {
                let summary = check("a clock that stands still", quota, 0, events);
                assert_eq!(summary.permits, keys * u64::from(limit), "{quota:?}");
            }
        }
    }
}

/// With costs that need not add up to the limit: what was denied would not have fitted in the end
/// either.
#[test]
fn at_one_tick_no_cost_is_denied_that_would_still_have_fitted() {
    for limit in [2, 3, 8, 100] {
        let quota = Quota::new(limit, Duration::from_nanos(10));
        let plan = Plan { threads: 8, calls: 20, keys: 1, costs: limit, obeys_every: 1 };
        let clock = MockClock::new();
        let builder = Limiter::<u32>::builder(quota).clock(clock.clone());
        let limiter = builder.build().expect("a good quota");
        for _ in 0..50 {
            clock.advance(quota.window());
            let decide = |key, cost| limiter.try_acquire_n(key, cost).expect("costs up to the limit");
            let events = record(plan, &clock, decide, |_, _| {});
            let smallest_denied =
                events.iter().filter(|event| event.told != Told::Admitted).map(|event| u64::from(event.cost)).min();
            let summary = check("all costs at one tick", quota, 0, events);
            let free = u64::from(limit) - summary.permits;
            assert_eq!(u64::from(limiter.peek(0).remaining()), free, "{quota:?}");
            assert!(smallest_denied.is_some_and(|cost| cost > free), "{smallest_denied:?} denied with {free} free");
        }
    }
}

/// Quotas of one key of which now one and now another is in the way, and some that never are.
fn several_quotas() -> Vec<Vec<Quota>> {
    let micros = |limit, micros| Quota::new(limit, Duration::from_micros(micros));
    vec![
        vec![micros(1, 20), micros(3, 200)],
        vec![micros(20, 1000), micros(3, 50), micros(8, 200)],
        vec![micros(5, 100), micros(5, 100), micros(9, 50), micros(30, 2000)],
    ]
}

#[test]
fn several_quotas_on_the_real_clock() {
    for quotas in several_quotas() {
        let least = quotas.iter().map(Quota::limit).min().expect("at least one");
        for (threads, keys) in [(2, 1), (4, 1), (4, 3), (8, 2)] {
            let plan = Plan { threads, calls: 10_000 / threads, keys, costs: least, obeys_every: 100 };
            let builder =
                quotas[1..].iter().fold(Limiter::<u32>::builder(quotas[0]), |builder, &quota| builder.and(quota));
            let limiter = builder.build().expect("good quotas");
            let decide = |key, cost| limiter.try_acquire_n(key, cost).expect("costs up to the least limit");
            let events = record(plan, limiter.clock(), decide, obey(plan, limiter.clock()));
            check_all("several quotas", &quotas, READING_ERROR, events);
        }
    }
}

/// The threads move the clock themselves, often to the nanosecond that they were advised.
#[test]
fn several_quotas_and_a_clock_that_the_threads_move() {
    for threads in [2, 4, 8] {
        for limits in [vec![(2, 10), (5, 100)], vec![(3, 7), (4, 20), (9, 200)], vec![(8, 100), (8, 50), (20, 1000)]] {
            let quotas: Vec<Quota> =
                limits.iter().map(|&(limit, window)| Quota::new(limit, Duration::from_nanos(window))).collect();
            let plan = Plan { threads, calls: 16_000 / threads, keys: 2, costs: limits[0].0, obeys_every: 4 };
            let clock = MockClock::new();
            let builder =
                quotas[1..].iter().fold(Limiter::<u32>::builder(quotas[0]), |builder, &quota| builder.and(quota));
            let limiter = builder.clock(clock.clone()).build().expect("good quotas");
            let decide = |key, cost| limiter.try_acquire_n(key, cost).expect("costs up to the least limit");
            let move_clock = |numbers: &mut Numbers, told: Told| match told {
                Told::Denied { retry_after, .. } if numbers.below(plan.obeys_every) == 0 => {
                    clock.advance(Duration::from_nanos(retry_after - u64::from(numbers.below(2))));
                }
                _ if numbers.below(16) == 0 => clock.advance(Duration::from_nanos(u64::from(numbers.below(5)))),
                _ => {}
            };
            let events = record(plan, &clock, decide, move_clock);
            check_all("several quotas and a clock moved by the threads", &quotas, 0, events);
        }
    }
}
