//! Quotas that are refused when they are to take the place of others: a typed error, and those that
//! there were go on.

use std::time::Duration;

use tollgate::{
    Algorithm, BuildError, ChangeError, DirectLimiter, JointLimiter, Limiter, MockClock, Quota, QuotaError,
};

const SECOND: Duration = Duration::from_secs(1);

fn limiter(quota: Quota) -> Limiter<str, MockClock> {
    Limiter::builder(quota).clock(MockClock::new()).build().unwrap()
}

#[test]
fn quotas_of_another_algorithm_are_refused() {
    let limiter = limiter(Quota::new(2, SECOND));
    let error = limiter.set_quotas(&[Quota::token_bucket(2, 1, SECOND)]).unwrap_err();
    assert_eq!(error, ChangeError::OtherAlgorithm { is: Algorithm::SlidingWindowLog, asked: Algorithm::TokenBucket });
    assert_eq!(error.to_string(), "a sliding window log can't become a token bucket: build another limiter for it");
    assert_eq!(*limiter.quotas(), [Quota::new(2, SECOND)]);
    assert_eq!(limiter.peek("a").remaining(), 2);
}

#[test]
fn quotas_that_could_not_be_built_are_refused() {
    let limiter = limiter(Quota::new(2, SECOND));
    let refused = |quotas: &[Quota]| limiter.set_quotas(quotas).unwrap_err();
    assert_eq!(refused(&[]), ChangeError::Unusable(BuildError::NoQuota));
    let zero = ChangeError::Unusable(BuildError::Quota(QuotaError::ZeroLimit));
    assert_eq!(refused(&[Quota::new(0, SECOND)]), zero);
    assert!(std::error::Error::source(&zero).is_none());
    let mixed = refused(&[Quota::new(2, SECOND), Quota::fixed_window(2, SECOND)]);
    assert_eq!(mixed, ChangeError::Unusable(BuildError::QuotasDontCombine { algorithm: Algorithm::FixedWindow }));
    assert_eq!(*limiter.quotas(), [Quota::new(2, SECOND)]);
}

#[test]
fn the_smallest_quota_can_become_the_largest_and_back() {
    for (small, large) in [
        (Quota::new(1, SECOND), Quota::new(Quota::MAX_LIMIT, SECOND)),
        (Quota::fixed_window(1, SECOND), Quota::fixed_window(Quota::MAX_CAPACITY, SECOND)),
        (Quota::sliding_counter(1, SECOND), Quota::sliding_counter(Quota::MAX_COUNTER_LIMIT, SECOND)),
        (Quota::leaky_bucket(1, 1, SECOND), Quota::leaky_bucket(Quota::MAX_CAPACITY, Quota::MAX_CAPACITY, SECOND)),
    ] {
        let limiter = limiter(small);
        assert!(limiter.try_acquire("a").is_admitted());
        limiter.set_quotas(&[large]).unwrap();
        assert_eq!(*limiter.quotas(), [large]);
        assert_eq!(limiter.peek("a").remaining(), large.limit() - 1, "{large}");
        assert!(limiter.try_acquire_n("a", large.limit() - 1).unwrap().is_admitted(), "{large}");
        limiter.set_quotas(&[small]).unwrap();
        assert!(limiter.try_acquire("a").is_denied(), "{small}");
    }
}

/// Changes to and fro take no memory.
#[test]
fn many_changes_take_no_more_memory_than_few() {
    let limiter = DirectLimiter::with_clock(Quota::new(3, SECOND), MockClock::new()).unwrap();
    assert!(limiter.try_acquire().is_admitted());
    let bytes_after = |changes: u32| {
        for change in 0..changes {
            limiter.set_quotas(&[Quota::new(4 + change % 2, SECOND)]).unwrap();
        }
        limiter.counts().bytes
    };
    let few = bytes_after(10);
    assert_eq!((bytes_after(20_000), limiter.peek().remaining()), (few, 4));
}

#[test]
fn a_dimension_that_there_is_not_has_no_quotas() {
    let limiter = JointLimiter::<(u32, u32)>::builder()
        .dimension("user", [Quota::new(2, SECOND)])
        .dimension("endpoint", [Quota::leaky_bucket(2, 1, SECOND)])
        .clock(MockClock::new())
        .build()
        .unwrap();
    let error = limiter.set_quotas(2, &[Quota::new(1, SECOND)]).unwrap_err();
    assert_eq!(error, ChangeError::NoSuchDimension { dimension: 2, dimensions: 2 });
    // Each dimension has an algorithm of its own.
    let error = limiter.set_quotas(1, &[Quota::new(1, SECOND)]).unwrap_err();
    assert_eq!(error, ChangeError::OtherAlgorithm { is: Algorithm::LeakyBucket, asked: Algorithm::SlidingWindowLog });
    limiter.set_quotas(0, &[Quota::new(1, SECOND)]).unwrap();
    assert!(limiter.try_acquire((&1, &1)).unwrap().is_admitted());
    assert!(limiter.try_acquire((&1, &1)).unwrap().is_denied());
    assert!(limiter.try_acquire_n((&2, &1), 2).is_err(), "more than the new limit");
}

#[test]
fn no_key_has_quotas_of_its_own_unless_the_builder_was_told() {
    let plain = limiter(Quota::new(2, SECOND));
    let five = [Quota::new(5, SECOND)];
    assert_eq!(plain.set_quotas_of("a", &five), Err(ChangeError::NoneOfItsOwn));
    assert_eq!(*plain.quotas_of("a"), [Quota::new(2, SECOND)]);
    let told = Limiter::<str>::builder(Quota::new(2, SECOND)).keys_with_quotas(1).clock(MockClock::new());
    let told = told.build().unwrap();
    told.set_quotas_of("a", &five).unwrap();
    assert_eq!((told.peek("a").remaining(), told.peek("b").remaining()), (5, 2));
    let other = told.set_quotas_of("a", &[Quota::fixed_window(5, SECOND)]).unwrap_err();
    let is = Algorithm::SlidingWindowLog;
    assert_eq!(other, ChangeError::OtherAlgorithm { is, asked: Algorithm::FixedWindow });
    assert_eq!(*told.quotas_of("a"), five);
}

#[test]
fn a_direct_limiter_refuses_the_same() {
    let limiter = DirectLimiter::with_clock(Quota::token_bucket(2, 1, SECOND), MockClock::new()).unwrap();
    let is = Algorithm::TokenBucket;
    let error = limiter.set_quotas(&[Quota::new(2, SECOND)]).unwrap_err();
    assert_eq!(error, ChangeError::OtherAlgorithm { is, asked: Algorithm::SlidingWindowLog });
    assert_eq!(limiter.set_quotas(&[]), Err(ChangeError::Unusable(BuildError::NoQuota)));
    assert_eq!(*limiter.quotas(), [Quota::token_bucket(2, 1, SECOND)]);
}

/// A tier is a dimension of its own, and a function of the key says which one a request is asked
/// in.
#[test]
fn tiers_are_dimensions_that_a_function_of_the_key_chooses() {
    let limiter = JointLimiter::<(String, String)>::builder()
        .dimension("free", [Quota::new(1, SECOND)])
        .dimension("paid", [Quota::new(3, SECOND)])
        .clock(MockClock::new())
        .build()
        .unwrap();
    let pays = |user: &str| user.starts_with("paying");
    let admitted = |user: &str| {
        let (free, paid) = if pays(user) { (None, Some(user)) } else { (Some(user), None) };
        limiter.try_acquire((free, paid)).unwrap().is_admitted()
    };
    assert_eq!([(); 4].map(|()| admitted("alice")), [true, false, false, false]);
    assert_eq!([(); 4].map(|()| admitted("paying bob")), [true, true, true, false]);
    limiter.set_quotas(1, &[Quota::new(4, SECOND)]).unwrap();
    assert!(admitted("paying bob"), "a tier can change, and its keys keep what they have been granted");
    assert!(!admitted("paying bob"));
}

#[test]
fn many_changes_later_an_account_is_still_read_by_the_quota_that_it_was_written_under() {
    let slow = || Quota::token_bucket(100, 1, 10 * SECOND);
    let fast = || Quota::token_bucket(100, 100, 10 * SECOND);
    let exhausted = |keys_with_quotas| {
        let clock = MockClock::new();
        let builder = Limiter::<str>::builder(slow()).keys_with_quotas(keys_with_quotas);
        let limiter = builder.clock(clock.clone()).build().unwrap();
        (limiter, clock)
    };
    let left = |limiter: &Limiter<str, MockClock>| (0..200).filter(|_| limiter.try_acquire("a").is_admitted()).count();
    for changes in [1, 63, 64, 65, 128] {
        let (limiter, clock) = exhausted(0);
        assert_eq!(left(&limiter), 100);
        clock.advance(100 * SECOND);
        (1..changes).for_each(|_| limiter.set_quotas(&[slow()]).unwrap());
        limiter.set_quotas(&[fast()]).unwrap();
        assert_eq!(left(&limiter), 10, "ten have come back; {changes} changes");
    }
    // Keys with quotas of their own share the numbers.
    let (limiter, clock) = exhausted(64);
    let tenants: Vec<String> = (1..64).map(|tenant| tenant.to_string()).chain(["a".into()]).collect();
    tenants.iter().for_each(|tenant| limiter.set_quotas_of(tenant.as_str(), &[slow()]).unwrap());
    assert_eq!(left(&limiter), 100);
    clock.advance(100 * SECOND);
    tenants.iter().for_each(|tenant| limiter.set_quotas_of(tenant.as_str(), &[fast()]).unwrap());
    assert_eq!(left(&limiter), 10);
}

#[test]
fn a_shorter_window_frees_places_at_the_cap() {
    for (long, short) in [
        (Quota::new(10, 100 * SECOND), Quota::new(10, SECOND)),
        (Quota::fixed_window(10, 100 * SECOND), Quota::fixed_window(10, SECOND)),
        (Quota::token_bucket(10, 1, 10 * SECOND), Quota::token_bucket(10, 10, SECOND)),
    ] {
        let clock = MockClock::new();
        let limiter = Limiter::<str>::builder(long).key_cap(1).clock(clock.clone()).build().unwrap();
        assert!(limiter.try_acquire_n("a", 10).unwrap().is_admitted());
        (0..3).for_each(|_| assert!(limiter.try_acquire("b").is_denied()));
        limiter.set_quotas(&[short]).unwrap();
        clock.advance(2 * SECOND);
        assert!(limiter.try_acquire("b").is_admitted(), "{long:?}");
    }
}

/// A bucket that becomes smaller owes all that is missing, and a key that is forgotten does not.
#[test]
fn a_smaller_bucket_lacks_all_permits_and_the_reserved_ones() {
    for (reserved, wait) in [(0, 8), (1, 9), (3, 11), (9, 17)] {
        let clock = MockClock::new();
        let builder = Limiter::<str>::builder(Quota::token_bucket(10, 1, SECOND)).clock(clock.clone());
        let limiter = builder.build().unwrap();
        assert!(limiter.try_acquire_n("a", 10).unwrap().is_admitted());
        if reserved > 0 {
            let _ = limiter.reserve("a", reserved, 10 * SECOND).unwrap().commit();
        }
        limiter.set_quotas(&[Quota::token_bucket(3, 1, SECOND)]).unwrap();
        assert_eq!(limiter.try_acquire("a").retry_after(), Some(wait * SECOND), "{reserved} reserved");
        assert!(limiter.forget("a") && limiter.try_acquire("a").is_admitted());
    }
}

/// A clock that stands still shows the same time however often the quotas change.
#[test]
fn a_thousand_changes_within_one_reading_postpone_nothing() {
    for quota in [Quota::token_bucket(1, 1, SECOND), Quota::leaky_queue(1, SECOND, Duration::ZERO)] {
        let limiter = limiter(quota);
        let reserved = limiter.reserve("a", 1, Duration::ZERO).unwrap();
        let _ = reserved.cancel();
        for _ in 0..1000 {
            limiter.set_quotas(&[quota]).unwrap();
            let reserved = limiter.reserve("a", 1, Duration::ZERO).unwrap();
            assert_eq!((reserved.delay(), reserved.cancel()), (Duration::ZERO, 1), "{quota}");
        }
        assert!(limiter.try_acquire("a").is_admitted());
        assert_eq!(limiter.try_acquire("a").retry_after(), Some(SECOND), "{quota}");
    }
}
