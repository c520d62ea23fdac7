//! Requests in flight: so many at a time for each key, whatever becomes of keys, quotas and threads.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use tollgate::{
    AtKeyCap, DenialReason, DirectLimiter, InFlight, JointLimiter, Limiter, MockClock, Penalty, Quota, QuotaError,
    Reservation, ReserveError,
};

const NOW: Duration = Duration::ZERO;
const SECOND: Duration = Duration::from_secs(1);

fn limiter(limit: u32) -> Limiter<str> {
    Limiter::new(Quota::concurrent(limit)).unwrap()
}

#[test]
fn a_request_without_a_guard_is_over_at_once() {
    let limiter = limiter(1);
    for _ in 0..9 {
        assert!(limiter.try_acquire("a").is_admitted());
        assert!(limiter.try_acquire_n("a", 1000).unwrap().is_admitted(), "a cost is no more than a request");
    }
    let held = limiter.try_enter("a").unwrap();
    let denial = limiter.try_acquire("a").into_result().unwrap_err();
    assert_eq!((denial.reason(), denial.retry_after(), denial.quota()), (DenialReason::InFlight, Duration::MAX, 0));
    assert_eq!(denial.to_string(), "too many requests in flight: try again when one has ended");
    assert!(limiter.try_acquire("b").is_admitted());
    drop(held);
    assert!(limiter.try_acquire("a").is_admitted());
}

#[test]
fn a_reservation_is_in_flight_until_it_ends() {
    let limiter = limiter(1);
    let is_free = || limiter.try_acquire("a").is_admitted();
    let reserve = || limiter.reserve("a", 5, NOW).unwrap();
    let ends: [fn(Reservation<&Limiter<str>>); 4] =
        [|it| drop(it), |it| drop(it.commit()), |it| assert_eq!(it.settle(9), 5), |it| assert_eq!(it.cancel(), 0)];
    for end in ends {
        let reserved = reserve();
        assert!(!is_free());
        end(reserved);
        assert!(is_free());
    }
    let (in_flight, receipt) = reserve().enter();
    assert!(!is_free());
    drop(receipt);
    assert!(!is_free());
    drop(in_flight);
    assert!(is_free());
}

#[test]
fn the_requests_of_a_forgotten_key_count_no_more() {
    let limiter = limiter(2);
    let (old, other) = (limiter.try_enter("a").unwrap(), limiter.try_enter("a").unwrap());
    assert!(limiter.forget("a"));
    let new = limiter.try_enter("a").unwrap();
    // Neither of them ends the request of the later life.
    drop((old, other));
    let second = limiter.try_enter("a").unwrap();
    assert!(limiter.try_enter("a").is_err(), "two are in flight");
    limiter.clear();
    drop((new, second));
    assert_eq!(limiter.peek("a").remaining(), 2);
}

/// A forgotten key's cell is gone after a rebuild, and with it what it knew of earlier lives.
#[test]
fn a_request_of_an_earlier_life_does_nothing_after_the_table_has_grown() {
    let limiter: Limiter<u32> = Limiter::new(Quota::concurrent(1)).unwrap();
    let old = limiter.try_enter(0).unwrap();
    limiter.forget(0);
    let others: Vec<_> = (1..5_000).map(|key| limiter.try_enter(key).unwrap()).collect();
    let new = limiter.try_enter(0).unwrap();
    drop(old);
    assert!(limiter.try_enter(0).is_err(), "one is in flight");
    drop((new, others));
    for key in 0..5_000 {
        assert_eq!(limiter.peek(key).remaining(), 1, "{key}");
    }
}

#[test]
fn a_lower_limit_lets_requests_end_and_a_higher_one_lets_more_in() {
    let limiter = limiter(3);
    let mut held: Vec<_> = (0..3).map(|_| limiter.try_enter("a").unwrap()).collect();
    limiter.set_quotas(&[Quota::concurrent(1)]).unwrap();
    assert_eq!(limiter.peek("a").remaining(), 0);
    for left in [2, 1] {
        drop(held.pop());
        assert_eq!(limiter.try_enter("a").is_ok(), left < 1);
    }
    drop(held.pop());
    held.push(limiter.try_enter("a").unwrap());
    limiter.set_quotas(&[Quota::concurrent(2)]).unwrap();
    held.push(limiter.try_enter("a").unwrap());
    assert!(limiter.try_enter("a").is_err());
}

#[test]
fn a_key_without_requests_makes_room_for_another() {
    let build = |at_cap| Limiter::<u32>::builder(Quota::concurrent(1)).key_cap(2).at_key_cap(at_cap).build().unwrap();
    let limiter = build(AtKeyCap::Deny);
    for key in 0..9 {
        assert!(limiter.try_enter(key).is_ok(), "it is over at once");
        assert!(limiter.try_acquire(key).is_admitted());
    }
    let _two = (limiter.try_enter(100).unwrap(), limiter.try_enter(101).unwrap());
    let denial = limiter.try_enter(102).unwrap_err();
    assert_eq!(denial.reason(), DenialReason::KeyCap);
    limiter.settings().set_at_key_cap(AtKeyCap::Admit);
    let uncounted = limiter.try_enter(102).unwrap();
    assert!(!uncounted.admission().is_counted());
    drop(uncounted);
    assert_eq!(limiter.counts().live_keys, 2);
}

#[test]
fn a_key_has_so_many_in_flight_in_each_of_its_tiers() {
    let builder = Limiter::<str>::builder(Quota::concurrent(1)).tier("premium", [Quota::concurrent(2)]);
    let limiter = builder.tier("rate", [Quota::per_hour(3)]).clock(MockClock::new()).build().unwrap();
    let [premium, rate] = ["premium", "rate"].map(|name| limiter.tier(name).unwrap());
    let left = || [limiter.peek("a"), limiter.peek(premium.key("a"))].map(|status| status.remaining());
    let own = limiter.try_enter("a").unwrap();
    assert_eq!(limiter.try_enter("a").unwrap_err().reason(), DenialReason::InFlight);
    let mut two = [(); 2].map(|()| limiter.try_enter(premium.key("a")).unwrap()).into_iter();
    assert_eq!(limiter.try_enter(premium.key("a")).unwrap_err().reason(), DenialReason::InFlight);
    assert_eq!(left(), [0, 0]);
    assert!((0..3).all(|_| !limiter.try_enter(rate.key("a")).unwrap().counts()));
    assert_eq!(limiter.try_enter(rate.key("a")).unwrap_err().reason(), DenialReason::Quota);
    // Each ends where it has entered.
    drop(two.next());
    assert_eq!(left(), [0, 1]);
    drop(own);
    assert_eq!(left(), [1, 1]);
    drop(two);
    assert_eq!(left(), [1, 2]);
}

#[test]
fn a_joint_request_is_charged_all_or_nothing() {
    let limiter = JointLimiter::<(u8, u8)>::builder()
        .dimension("rate", [Quota::per_hour(3)])
        .dimension("in flight", [Quota::concurrent(1)])
        .build()
        .unwrap();
    let left = || limiter.peek((1, 1)).unwrap().quotas().map(|quota| quota.remaining()).collect::<Vec<_>>();
    let (in_flight, receipt) = limiter.reserve((1, 1), 2).unwrap().enter();
    assert_eq!(left(), [1, 0]);
    let denial = limiter.try_acquire((1, 1)).unwrap().into_result().unwrap_err();
    assert_eq!((denial.reason(), denial.dimension()), (DenialReason::InFlight, 1));
    assert_eq!(left(), [1, 0]);
    // A denial by the rate takes no place.
    drop(in_flight);
    assert!(matches!(limiter.reserve((1, 1), 2).unwrap_err(), ReserveError::Denied(_)));
    assert_eq!(left(), [1, 1]);
    let status = limiter.try_acquire_n_status((1, 1), 2).unwrap();
    assert_eq!(status.quotas().map(|quota| quota.is_violated()).collect::<Vec<_>>(), [true, false]);
    assert_eq!(limiter.refund(receipt).unwrap(), 2);
    assert_eq!(left(), [3, 1]);
}

#[test]
fn modes_see_it_as_any_quota() {
    let penalty = Penalty::new(2, SECOND, 10 * SECOND);
    let clock = MockClock::new();
    let builder = || Limiter::<str>::builder(Quota::concurrent(1)).clock(clock.clone());
    let penalised = builder().penalty(penalty).build().unwrap();
    let held = penalised.try_enter("a").unwrap();
    let reasons = [(); 2].map(|()| penalised.try_enter("a").unwrap_err().reason());
    assert_eq!(reasons, [DenialReason::InFlight, DenialReason::Penalty]);
    drop(held);
    assert_eq!(penalised.try_enter("a").unwrap_err().reason(), DenialReason::Penalty);

    let shadow = builder().shadow(true).build().unwrap();
    let guards: Vec<_> = (0..3).map(|_| shadow.try_enter("a").unwrap()).collect();
    assert_eq!(guards.iter().map(InFlight::counts).collect::<Vec<_>>(), [true, false, false]);
    let overruled = guards.iter().filter(|guard| guard.admission().overruled().is_some());
    assert_eq!((overruled.count(), shadow.counts().overruled), (2, 2));

    let listed = builder().list_cap(9).build().unwrap();
    listed.allow("a").unwrap();
    listed.deny("b").unwrap();
    let allowed = [(); 2].map(|()| listed.try_enter("a").unwrap());
    assert!(allowed.iter().all(|guard| !guard.admission().is_counted() && !guard.counts()));
    assert_eq!(listed.try_enter("b").unwrap_err().reason(), DenialReason::DenyList);
}

#[test]
fn bad_limits_are_errors() {
    let error = |quota: Quota| quota.validate().unwrap_err();
    assert_eq!(error(Quota::concurrent(0)), QuotaError::ZeroLimit);
    assert!(matches!(error(Quota::concurrent(u32::MAX)), QuotaError::PastMaximum { .. }));
    assert!(matches!(error(Quota::concurrent(1).held_at_most(NOW)), QuotaError::HoldOutOfRange { .. }));
    assert!(matches!(error(Quota::concurrent(1).held_at_most(Duration::MAX)), QuotaError::HoldOutOfRange { .. }));
    assert_eq!(error(Quota::per_hour(1).held_at_most(SECOND)), QuotaError::HoldNeedsConcurrency);
    let quota = Quota::concurrent(4).held_at_most(SECOND);
    assert_eq!(quota.to_string(), "concurrency limit, 4 in flight, held for at most 1s");
    let fields: Vec<_> = quota.fields().collect();
    assert_eq!(Quota::from_fields(quota.algorithm(), &fields), Ok(quota));
}

/// Threads count for themselves how many of them are within.
#[test]
fn no_more_than_the_limit_are_in_flight_at_any_instant() {
    const THREADS: usize = 4;
    const LIMIT: u32 = 2;
    let (keyed, direct) =
        (Limiter::<u32>::new(Quota::concurrent(LIMIT)).unwrap(), DirectLimiter::new(Quota::concurrent(LIMIT)).unwrap());
    let limiter = Arc::new((keyed, direct));
    let within: Arc<[AtomicU32; 4]> = Arc::default();
    let barrier = Arc::new(Barrier::new(THREADS));
    let threads = (0..THREADS).map(|_| {
        let (limiter, within, barrier) = (Arc::clone(&limiter), Arc::clone(&within), Arc::clone(&barrier));
        std::thread::spawn(move || {
            barrier.wait();
            let mut admitted = 0;
            let enter = |place: usize| {
                assert!(within[place].fetch_add(1, Ordering::SeqCst) < LIMIT, "too many are within");
            };
            let leave = |place: usize| {
                within[place].fetch_sub(1, Ordering::SeqCst);
            };
            for round in 0..20_000_u32 {
                let place = (round % 3) as usize;
                if let Ok(_guard) = limiter.0.try_enter(round % 3) {
                    enter(place);
                    std::thread::yield_now();
                    leave(place);
                    admitted += 1;
                }
                if let Ok(_guard) = limiter.1.try_enter() {
                    enter(3);
                    leave(3);
                    admitted += 1;
                }
            }
            admitted
        })
    });
    let threads: Vec<_> = threads.collect();
    let admitted: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert!(admitted > 20_000, "{admitted}");
    // None is lost.
    assert_eq!([0, 1, 2].map(|key| limiter.0.peek(key).remaining()), [LIMIT; 3]);
    assert_eq!(limiter.1.peek().remaining(), LIMIT);
}

#[cfg(feature = "snapshot")]
#[test]
fn a_snapshot_has_no_requests_in_flight() {
    let build = |max_hold| {
        let quota = Quota::concurrent(1).held_at_most(max_hold);
        JointLimiter::<(u8, u8)>::builder()
            .dimension("rate", [Quota::per_hour(3)])
            .dimension("in flight", [quota])
            .clock(MockClock::new())
    };
    let limiter = build(SECOND).build().unwrap();
    let in_flight = limiter.try_enter((1, 1)).unwrap();
    let snapshot = limiter.snapshot();
    let restored = build(2 * SECOND).restore(&snapshot).unwrap();
    drop(in_flight);
    let left: Vec<_> = restored.peek((1, 1)).unwrap().quotas().map(|quota| quota.remaining()).collect();
    assert_eq!(left, [2, 1]);
}
