//! What the types can be used for: shared between threads, asked with borrowed keys, cheap to pass
//! around.

use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::thread;

use tollgate::{
    Admission, AnyClock, AtKeyCap, BuildError, Clock, CoarseClock, CostExceedsLimit, Counts, Decision,
    DefaultFingerprinter, Denial, DenialReason, DirectLimiter, Fingerprint, HashTwice, InstantClock, JointLimiter,
    Limiter, LimiterBuilder, ListError, MockClock, MonotonicClock, Penalty, PenaltyError, Quota, QuotaError,
    SipFingerprinter, Status,
};

const THREE_A_MINUTE: Quota = Quota::per_minute(3);

fn shared<T: Send + Sync + Debug>() {}
fn owned_and_safe<T: Send + Sync + Debug + Unpin + UnwindSafe + RefUnwindSafe + 'static>() {}
fn plain<T: Copy + Eq + Send + Sync + Debug + 'static>() {}
fn error<T: std::error::Error + Copy + Eq + Send + Sync + 'static>() {}

#[test]
fn limiters_can_be_shared() {
    owned_and_safe::<Limiter<String>>();
    owned_and_safe::<Limiter<str, MockClock>>();
    shared::<Limiter<String, AnyClock>>();
    #[cfg(feature = "tokio")]
    shared::<tollgate::TokioClock>();
    owned_and_safe::<DirectLimiter>();
    shared::<DirectLimiter<CoarseClock>>();
    // Keys are never stored, so a limiter of keys that can't leave their thread can.
    shared::<Limiter<std::rc::Rc<str>>>();
    owned_and_safe::<Status>();
    shared::<LimiterBuilder<str>>();
    shared::<HashTwice<std::hash::RandomState>>();
    shared::<DefaultFingerprinter>();
    shared::<SipFingerprinter>();
    shared::<MonotonicClock>();
    shared::<InstantClock>();
    plain::<Quota>();
    plain::<Decision>();
    plain::<Admission>();
    plain::<DenialReason>();
    plain::<AtKeyCap>();
    plain::<Counts>();
    plain::<Fingerprint>();
    plain::<Penalty>();
    error::<Denial>();
    error::<CostExceedsLimit>();
    error::<BuildError>();
    error::<QuotaError>();
    error::<PenaltyError>();
    error::<ListError>();
}

/// A speed bump: who makes these larger must do it on purpose.
#[test]
fn decisions_are_small() {
    assert!(size_of::<Decision>() <= 24, "{}", size_of::<Decision>());
    assert!(size_of::<Result<Decision, CostExceedsLimit>>() <= 24);
    assert!(size_of::<Status>() <= 248, "{}", size_of::<Status>());
    assert!(size_of::<Quota>() <= 128, "{}", size_of::<Quota>());
}

#[test]
fn one_limiter_in_an_arc_is_one_quota_for_all_threads() {
    let builder = Limiter::<String>::builder(THREE_A_MINUTE).clock(MockClock::new());
    let limiter = Arc::new(builder.build().expect("a good quota"));
    let ask =
        |limiter: Arc<Limiter<String, MockClock>>| (0..10).filter(|_| limiter.try_acquire("a").is_admitted()).count();
    let threads: Vec<_> =
        (0..4).map(|_| Arc::clone(&limiter)).map(|shared| thread::spawn(move || ask(shared))).collect();
    let admitted: usize = threads.into_iter().map(|thread| thread.join().expect("no panic")).sum();
    assert_eq!(admitted, 3);
}

#[test]
fn scoped_threads_need_no_arc() {
    let limiter = DirectLimiter::with_clock(THREE_A_MINUTE, MockClock::new()).expect("a good quota");
    let ask = || (0..10).filter(|_| limiter.try_acquire().is_admitted()).count();
    let admitted: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    assert_eq!(admitted, 3);
}

#[test]
fn clocks_can_be_borrowed_or_shared() {
    let clock = Arc::new(MockClock::new());
    let by_reference = DirectLimiter::with_clock(Quota::per_second(1), &*clock).expect("a good quota");
    let by_arc = Limiter::<str>::builder(Quota::per_second(1)).clock(Arc::clone(&clock)).build().expect("a good quota");
    clock.set(7);
    assert_eq!((by_reference.clock().now(), by_arc.clock().now()), (7, 7));
}

#[test]
fn keys_can_be_asked_for_in_any_borrowed_form() {
    let strings = Limiter::<String>::new(THREE_A_MINUTE).expect("a good quota");
    assert!(strings.try_acquire("alice").is_admitted());
    let alice = String::from("alice");
    assert!(strings.try_acquire(&alice).is_admitted());
    assert!(strings.try_acquire(alice.clone()).is_admitted());
    assert!(strings.try_acquire(&alice).is_denied());
    assert!(strings.try_acquire("alice").is_denied(), "owned and borrowed are one key");
    assert!(strings.try_acquire("bob").is_admitted());

    let strs = Limiter::<str>::new(THREE_A_MINUTE).expect("a good quota");
    assert!(strs.try_acquire("alice").is_admitted());
    assert_eq!(strs.peek("alice").remaining(), 2);

    let bytes = Limiter::<[u8]>::new(THREE_A_MINUTE).expect("a good quota");
    assert!(bytes.try_acquire(&b"alice"[..]).is_admitted());
    assert_eq!(bytes.peek(&[97, 108, 105, 99, 101][..]).remaining(), 2);

    let vectors = Limiter::<Vec<u8>>::new(THREE_A_MINUTE).expect("a good quota");
    assert!(vectors.try_acquire(&b"alice"[..]).is_admitted());
    assert_eq!(vectors.peek(&b"alice".to_vec()).remaining(), 2);
}

#[test]
fn keys_can_be_tuples_in_which_each_part_counts() {
    let limiter = Limiter::<(IpAddr, String)>::new(THREE_A_MINUTE).expect("a good quota");
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let key = (address, "/login".to_owned());
    assert!(limiter.try_acquire_n(&key, 3).is_ok_and(|decision| decision.is_admitted()));
    assert!(limiter.try_acquire(&key).is_denied());
    assert!(limiter.try_acquire(&(address, "/logout".to_owned())).is_admitted());
    assert!(limiter.try_acquire(&(IpAddr::V4(Ipv4Addr::BROADCAST), "/login".to_owned())).is_admitted());
    assert!(limiter.forget(&key));
    assert!(limiter.try_acquire(&key).is_admitted());
}

#[test]
fn parts_of_a_key_do_not_run_together() {
    let limiter = Limiter::<(String, String)>::new(Quota::per_minute(1)).expect("a good quota");
    assert!(limiter.try_acquire(&("ab".to_owned(), "c".to_owned())).is_admitted());
    assert!(limiter.try_acquire(&("a".to_owned(), "bc".to_owned())).is_admitted());
}

#[test]
fn another_hasher_decides_the_same() {
    let builder = Limiter::<str>::builder(THREE_A_MINUTE).hasher(std::hash::RandomState::new()).clock(MockClock::new());
    let limiter = builder.build().expect("a good quota");
    let admitted = (0..10).filter(|_| limiter.try_acquire("alice").is_admitted()).count();
    assert_eq!((admitted, limiter.peek("bob").remaining()), (3, 3));
}

#[test]
fn a_limiter_is_shown_as_a_person_writes_it() {
    let (second, clock) = (std::time::Duration::from_secs(1), || MockClock::new());
    let builder = Limiter::<u32>::builder(Quota::per_second(10)).and(Quota::per_minute(100)).clock(clock());
    let shown = format!("{:?}", builder.build().unwrap());
    assert!(shown.starts_with("Limiter { quotas: [10 per 1s, 100 per 1m], "), "{shown}");
    let shown = format!("{:?}", DirectLimiter::with_clock(Quota::token_bucket(5, 1, second), clock()).unwrap());
    assert!(shown.starts_with("DirectLimiter { quotas: [token bucket"), "{shown}");
    let builder = JointLimiter::<(u32, u32)>::builder().dimension("user", [Quota::per_second(1)]);
    let builder = builder.dimension("address", [Quota::per_minute(5)]).clock(clock());
    let shown = format!("{:?}", builder.build().unwrap());
    assert!(shown.starts_with("JointLimiter { user: [1 per 1s], address: [5 per 1m], "), "{shown}");
}
