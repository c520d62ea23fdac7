//! Limiters whose key cap is reached: who finds a place, and what a peek says of it. And first
//! requests that are denied.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate::{
    AtKeyCap, Clock, Decision, Denial, DenialReason, JointLimiter, JointLimiterBuilder, Limiter, MockClock, Quota,
    QuotaStatus, Status,
};

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn joint(quotas: &[Quota], key_cap: usize) -> (JointLimiterBuilder<[&'static str], MockClock>, MockClock) {
    let clock = MockClock::new();
    let names = ["user", "address", "endpoint"];
    let builder =
        names.into_iter().zip(quotas).fold(JointLimiter::builder(), |b, (name, &quota)| b.dimension(name, [quota]));
    (builder.key_cap(key_cap).clock(clock.clone()), clock)
}

fn denial(decision: Decision) -> Denial {
    decision.into_result().unwrap_err()
}

/// A request, and the peek before it, which must say the same.
fn ask(limiter: &JointLimiter<[&'static str], MockClock>, keys: &[Option<&&'static str>]) -> Decision {
    let peeked = limiter.peek_n(keys, 1).unwrap().decision();
    let told = limiter.try_acquire(keys).unwrap();
    assert_eq!(peeked, told, "{keys:?}");
    told
}

#[test]
fn a_joint_request_opens_a_bucket_that_starts_empty() {
    let (builder, clock) = joint(&[Quota::token_bucket(20, 5, seconds(1)).starting_with(0)], 8);
    let limiter = builder.build().unwrap();
    let peek = limiter.peek_n([&"alice"], 1).unwrap().decision();
    assert_eq!((denial(peek).retry_after(), limiter.counts().cells), (Duration::from_millis(200), 0));
    assert_eq!(ask(&limiter, &[Some(&"alice")]).retry_after(), Some(Duration::from_millis(200)));
    clock.advance(Duration::from_millis(200) - Duration::from_nanos(1));
    assert_eq!(ask(&limiter, &[Some(&"alice")]).retry_after(), Some(Duration::from_nanos(1)));
    clock.advance(Duration::from_nanos(1));
    assert!(ask(&limiter, &[Some(&"alice")]).is_admitted());
}

/// Only the account whose refill has to begin is written.
#[test]
fn a_joint_denial_makes_no_cell_for_a_key_that_was_not_in_the_way() {
    let quotas = [Quota::per_second(1), Quota::token_bucket(20, 5, seconds(1)).starting_with(1), Quota::per_second(2)];
    let (builder, _) = joint(&quotas, 8);
    let limiter = builder.build().unwrap();
    assert!(ask(&limiter, &[Some(&"alice"), None, None]).is_admitted());
    assert_eq!(denial(ask(&limiter, &[Some(&"alice"), Some(&"here"), Some(&"login")])).violated().count(), 1);
    assert_eq!(limiter.counts().cells, 1);
}

#[test]
fn a_bucket_that_starts_empty_and_finds_no_place_is_not_told_a_wait_that_would_not_help() {
    for (policy, admitted) in [(AtKeyCap::Deny, false), (AtKeyCap::Admit, true)] {
        let empty = Quota::token_bucket(20, 5, seconds(1)).starting_with(0);
        let (builder, clock) = joint(&[Quota::per_hour(5), empty], 1);
        let limiter = builder.at_key_cap(policy).build().unwrap();
        assert!(ask(&limiter, &[Some(&"alice"), None]).is_admitted());
        clock.advance(seconds(60));
        let told = ask(&limiter, &[None, Some(&"here")]);
        assert_eq!(told.is_admitted(), admitted, "{policy:?}");
        if let Decision::Denied(denial) = told {
            assert_eq!((denial.reason(), denial.dimension()), (DenialReason::KeyCap, 1));
            assert!(denial.retry_after() > seconds(3500), "{denial:?}");
        }
        assert_eq!(limiter.counts().cells, 1);
    }
}

#[test]
fn a_joint_request_that_is_denied_loses_no_place() {
    let (builder, clock) = joint(&[Quota::new(1, seconds(10)), Quota::new(5, seconds(3600))], 3);
    let limiter = builder.build().unwrap();
    assert!(ask(&limiter, &[None, Some(&"A")]).is_admitted());
    assert!(ask(&limiter, &[Some(&"u"), Some(&"C")]).is_admitted());
    clock.advance(seconds(10));
    let no_place = denial(ask(&limiter, &[Some(&"u"), Some(&"B")]));
    assert_eq!((no_place.reason(), no_place.dimension()), (DenialReason::KeyCap, 1));
    // Not before one of the others is free.
    assert!(no_place.retry_after() > seconds(3500), "{no_place:?}");
    assert!(ask(&limiter, &[Some(&"w"), Some(&"A")]).is_admitted());
}

fn numbers(status: Status) -> (Decision, u32, u32, Duration) {
    (status.decision(), status.limit(), status.remaining(), status.reset_after())
}

#[test]
fn a_peek_at_a_new_key_at_the_cap_gets_the_answer_of_a_request() {
    for policy in [AtKeyCap::Deny, AtKeyCap::Admit] {
        for shadow in [false, true] {
            let clock = MockClock::new();
            let builder = Limiter::<str>::builder(Quota::per_minute(2)).key_cap(2).at_key_cap(policy).shadow(shadow);
            let limiter = builder.clock(clock.clone()).build().unwrap();
            assert_eq!(limiter.peek("carol").remaining(), 2, "there are places");
            assert!(limiter.try_acquire("alice").is_admitted());
            clock.advance(seconds(30));
            assert!(limiter.try_acquire("bob").is_admitted());
            let refused = limiter.counts().refused_at_cap;
            let peeked = limiter.peek("carol");
            assert_eq!(limiter.counts().refused_at_cap, refused, "a peek is not counted");
            let told = limiter.try_acquire_status("carol");
            assert_eq!(peeked.decision(), told.decision(), "{policy:?} {shadow}");
            assert_eq!(numbers(peeked), numbers(told));
            // A cell that has expired and was not swept makes way.
            clock.advance(seconds(30));
            assert_eq!((limiter.peek("carol").remaining(), limiter.counts().live_keys), (2, 1));
            assert!(limiter.try_acquire("carol").is_admitted());
            // So does one that was forgotten.
            let peeked = limiter.peek("dave");
            assert_eq!(peeked.decision(), limiter.try_acquire("dave"));
            limiter.forget("bob");
            assert_eq!(limiter.peek("dave").remaining(), 2);
        }
    }
}

#[test]
fn a_joint_peek_tells_the_delay_of_the_queue() {
    let (builder, _) = joint(&[Quota::leaky_queue(1, seconds(1), seconds(5)), Quota::per_second(9)], 8);
    let limiter = builder.build().unwrap();
    for place in 0..6 {
        let Decision::Admitted(peeked) = limiter.peek_n([&"alice", &"here"], 1).unwrap().decision() else {
            panic!("{place}")
        };
        assert_eq!((peeked.is_counted(), peeked.delay()), (true, seconds(place)));
        assert_eq!(limiter.try_acquire([&"alice", &"here"]).unwrap(), Decision::Admitted(peeked));
    }
    assert!(ask(&limiter, &[Some(&"alice"), Some(&"here"),][..]).is_denied());
}

/// Keys that are passed over are not charged; if there are no others, the request is not.
#[test]
fn a_joint_peek_at_the_cap_tells_whether_any_key_would_be_charged() {
    let (builder, _) = joint(&[Quota::per_minute(1), Quota::per_minute(1)], 1);
    let limiter = builder.at_key_cap(AtKeyCap::Admit).build().unwrap();
    for (keys, counted) in
        [([Some(&"a"), Some(&"b")], true), ([Some(&"c"), Some(&"d")], false), ([None, Some(&"d")], false)]
    {
        let Decision::Admitted(admission) = ask(&limiter, &keys) else { panic!("{keys:?}") };
        assert_eq!(admission.is_counted(), counted, "{keys:?}");
    }
}

/// The dimension and quota of each item, whether it is violated, the permits that remain, and when
/// there are more.
fn items(status: &Status) -> Vec<(usize, usize, bool, u32, Duration)> {
    let numbers =
        |item: QuotaStatus| (item.dimension(), item.quota(), item.is_violated(), item.remaining(), item.next_after());
    status.quotas().map(numbers).collect()
}

#[test]
fn a_joint_status_tells_the_key_without_a_place_from_the_others() {
    let quotas = [Quota::new(2, seconds(10)), Quota::new(5, seconds(60))];
    let (builder, clock) = joint(&quotas, 2);
    let limiter = builder.build().unwrap();
    assert!(limiter.try_acquire([Some(&"alice"), Some(&"here")]).unwrap().is_admitted());
    clock.advance(seconds(4));
    let keys = [Some(&"bob"), Some(&"here")];
    for status in [limiter.peek(keys).unwrap(), limiter.try_acquire_status(keys).unwrap()] {
        let denial = denial(status.decision());
        assert_eq!((denial.reason(), denial.dimension()), (DenialReason::KeyCap, 0));
        // A place is looked for again in at most a few microseconds less.
        let wait = denial.retry_after();
        assert!(wait <= seconds(6) && wait > seconds(6) - Duration::from_micros(100), "{wait:?}");
        assert_eq!(items(&status), [(0, 0, true, 0, wait), (1, 0, false, 4, seconds(56))]);
    }
}

#[test]
fn a_joint_status_lists_the_quotas_of_keys_that_are_passed_over() {
    // More quotas than a status holds without an allocation.
    let quotas =
        |limit: u32| (0..8_u32).map(|nth| Quota::new(limit + nth, seconds(10 + u64::from(nth)))).collect::<Vec<_>>();
    let clock = MockClock::new();
    let builder = JointLimiter::<[&str]>::builder().clock(clock.clone());
    let builder = builder.dimension("user", quotas(2)).dimension("address", quotas(12)).dimension("path", quotas(22));
    let limiter = builder.key_cap(3).at_key_cap(AtKeyCap::Admit).build().unwrap();
    assert!(limiter.try_acquire(["alice", "here", "/"]).unwrap().is_admitted());
    for (user, path) in [("bob", "/"), ("bob", "/new"), ("carol", "/")] {
        let keys = [user, "here", path];
        let peeked = limiter.peek(keys).unwrap();
        let status = limiter.try_acquire_status(keys).unwrap();
        assert!(status.is_admitted(), "{keys:?}");
        for status in [&peeked, &status] {
            let told: Vec<_> = status.quotas().map(|item| (item.dimension(), item.quota())).collect();
            assert_eq!(
                told,
                (0..3).flat_map(|dimension| (0..8).map(move |quota| (dimension, quota))).collect::<Vec<_>>()
            );
            let full = status.quotas().filter(|item| item.remaining() == item.limit());
            let full: Vec<_> = full.map(|item| (item.dimension(), item.quota())).collect();
            // A key that is passed over is not charged.
            assert!((0..8).all(|quota| full.contains(&(0, quota))), "{keys:?}: {full:?}");
            assert_eq!(full.contains(&(2, 0)), path == "/new", "{keys:?}: {full:?}");
            assert!(!full.contains(&(1, 0)), "{keys:?}: {full:?}");
        }
    }
}

/// A bucket that starts empty denies its key's first request, so the key needs a place for that.
#[test]
fn a_joint_status_lists_the_quotas_of_a_key_that_starts_empty_and_is_passed_over() {
    let quotas = || (0..8_u32).map(|nth| Quota::new(5 + nth, seconds(10 + u64::from(nth)))).collect::<Vec<_>>();
    let builder = JointLimiter::<[&str]>::builder().clock(MockClock::new());
    let builder = builder.dimension("user", [Quota::token_bucket(2, 1, seconds(1)).starting_with(0)]);
    let builder = builder.dimension("address", quotas()).dimension("path", quotas());
    let limiter = builder.key_cap(2).at_key_cap(AtKeyCap::Admit).build().unwrap();
    assert!(limiter.try_acquire([None, Some("here"), Some("/")]).unwrap().is_admitted());
    let keys = [Some("bob"), Some("here"), Some("/")];
    for charged in [1, 2] {
        let status = limiter.try_acquire_status(keys).unwrap();
        assert!(status.is_admitted());
        let told: Vec<_> = status.quotas().map(|item| (item.dimension(), item.quota(), item.remaining())).collect();
        let rest = [1, 2]
            .into_iter()
            .flat_map(|dimension| (0..8).zip(5..).map(move |(quota, limit)| (dimension, quota, limit)));
        let rest = rest.map(|(dimension, quota, limit)| (dimension, quota, limit - 1 - charged));
        assert_eq!(told, [(0, 0, 0)].into_iter().chain(rest).collect::<Vec<_>>());
        let peeked = limiter.peek(keys).unwrap();
        assert_eq!(peeked.quotas().count(), 17);
    }
}

/// The wait at the cap is a lower bound: no place is free sooner. A new key that waits as it is told,
/// and 20 us at least, gets the first place that is free, if it is the only one that wants it.
#[test]
fn a_wait_at_the_cap_is_never_too_long_and_leads_to_the_first_free_place() {
    for (key_cap, seed) in [(1_u64, 1_u64), (2, 2), (3, 3), (50, 4), (500, 5)] {
        let (window, clock) = (seconds(60), MockClock::new());
        let builder = Limiter::<u64>::builder(Quota::new(3, window)).clock(clock.clone());
        let limiter = builder.key_cap(usize::try_from(key_cap).unwrap()).build().unwrap();
        let (mut random, mut now) = (seed, Duration::ZERO);
        let mut below = |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % bound
        };
        // The time at which each key's place is free.
        let mut free_at = vec![];
        for key in 0..key_cap {
            assert!(limiter.try_acquire(key).is_admitted());
            free_at.push(now + window);
            let step = Duration::from_nanos(below(60_000_000_000 / key_cap));
            clock.advance(step);
            now += step;
        }
        for round in 0..20 {
            // Keys that hold a place are granted more, so their places are free later.
            for _ in 0..below(5) {
                let place = usize::try_from(below(key_cap)).unwrap();
                if free_at[place] > now && limiter.try_acquire(u64::try_from(place).unwrap()).is_admitted() {
                    free_at[place] = now + window;
                }
            }
            let first = *free_at.iter().min().unwrap();
            if first <= now {
                break;
            }
            let mut waits = 0;
            while let Decision::Denied(denial) = limiter.try_acquire(1_000_000 + round) {
                assert_eq!(denial.reason(), DenialReason::KeyCap);
                assert!(now + denial.retry_after() <= first, "cap {key_cap}, round {round}: too long");
                let step = denial.retry_after().max(Duration::from_micros(20));
                now += step;
                clock.advance(step);
                waits += 1;
                assert!(waits <= 1000, "cap {key_cap}, round {round}");
            }
            let late = now.checked_sub(first).expect("not sooner");
            assert!(late <= Duration::from_micros(20), "cap {key_cap}, round {round}: {late:?}");
            limiter.forget(1_000_000 + round);
            let place = free_at.iter().position(|&free| free == first).unwrap();
            assert!(limiter.try_acquire(u64::try_from(place).unwrap()).is_admitted());
            free_at[place] = now + window;
        }
    }
}

/// A clock that reads 50 so many times, and 150 from then on.
#[derive(Debug, Default)]
struct Jumping(AtomicU64);

impl Clock for Jumping {
    fn now(&self) -> u64 {
        let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if left.is_ok() { 50 } else { 150 }
    }
}

/// A place may come free between two readings of one request.
#[test]
fn a_key_is_denied_at_the_cap_only_while_no_place_is_free() {
    let (mut admitted, mut denied) = (0, 0);
    for readings in 0..20 {
        let builder = Limiter::<str>::builder(Quota::new(1, Duration::from_nanos(60))).key_cap(1);
        let limiter = builder.clock(Jumping::default()).build().unwrap();
        limiter.clock().0.store(1000, Ordering::Relaxed);
        assert!(limiter.try_acquire("alice").is_admitted());
        limiter.clock().0.store(readings, Ordering::Relaxed);
        match limiter.try_acquire("bob") {
            Decision::Admitted(_) => admitted += 1,
            Decision::Denied(denial) => {
                // Alice has the place until 110.
                assert_eq!(denial.retry_after(), Duration::from_nanos(60), "after {readings} readings");
                denied += 1;
            }
        }
    }
    assert!(admitted > 1 && denied > 1, "{admitted} admitted, {denied} denied");
}
