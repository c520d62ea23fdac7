//! Wrong input, and wrong clocks: each has a documented answer, and none is a panic.

mod clocks;
mod joint;

use std::error::Error as _;
use std::time::Duration;

use tollgate::{
    Absent, Algorithm, BuildError, Clock, CostExceedsLimit, Decision, DirectLimiter, JointError, JointLimiter, Limiter,
    MAX_DIMENSIONS, MAX_KEY_CAP, MockClock, Quota, QuotaError, ReserveError,
};
use tollgate_kit::facade::each;

const KEY: &[Option<u32>] = &[Some(7)];
const NANOSECOND: Duration = Duration::from_nanos(1);
const DECADE: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// The same quota is refused by each way to make a limiter, with the same words.
fn refused(quota: Quota) -> (BuildError, String) {
    let error = Limiter::<str>::new(quota).expect_err("a bad quota");
    assert_eq!(DirectLimiter::new(quota).expect_err("a bad quota"), error);
    assert_eq!(DirectLimiter::with_clock(quota, MockClock::new()).expect_err("a bad quota"), error);
    assert_eq!(Limiter::<u8>::builder(quota).clock(MockClock::new()).build().expect_err("a bad quota"), error);
    let text = error.to_string();
    assert!(error.source().is_none(), "the text of the quota's own error would be printed twice");
    (error, text)
}

#[test]
fn a_limit_of_zero() {
    let (error, text) = refused(Quota::per_minute(0));
    assert_eq!(error, BuildError::Quota(QuotaError::ZeroLimit));
    assert_eq!(text, "the limit is zero: give at least one permit");
}

#[test]
fn a_window_of_zero() {
    let (error, text) = refused(Quota::new(5, Duration::ZERO));
    assert_eq!(error, BuildError::Quota(QuotaError::ZeroWindow));
    assert_eq!(text, "the window is zero: give at least one nanosecond");
}

#[test]
fn a_limit_past_the_maximum() {
    for limit in [Quota::MAX_LIMIT + 1, u32::MAX] {
        let (error, text) = refused(Quota::per_second(limit));
        assert_eq!(error, BuildError::Quota(QuotaError::LimitTooLarge { limit }));
        let expected = "is too large for a sliding window log: at most 1048576; a quantised log counts to 1073741824";
        assert_eq!(text, format!("the limit {limit} {expected}"));
    }
}

#[test]
fn a_window_past_the_maximum() {
    for window in [Quota::MAX_WINDOW + NANOSECOND, Duration::MAX] {
        let (error, text) = refused(Quota::new(1, window));
        assert_eq!(error, BuildError::Quota(QuotaError::WindowTooLong { window }));
        assert_eq!(text, format!("the window {window:?} is too long: at most 1152921504.606846975s"));
    }
}

/// Each error of a quota beside the log, from every way to make a limiter; `src/quota/tests.rs` has
/// each bound.
#[test]
fn a_number_that_another_algorithm_does_not_allow() {
    const SECOND: Duration = Duration::from_secs(1);
    const MOST: u32 = Quota::MAX_CAPACITY;
    let long = Quota::MAX_WINDOW + NANOSECOND;
    let year = Duration::from_secs(31_557_600);
    let past = |algorithm, limit, most| QuotaError::PastMaximum { algorithm, limit, most };
    for (quota, expected, text) in [
        (Quota::token_bucket(0, 1, SECOND), QuotaError::ZeroLimit, "the limit is zero: give at least one permit"),
        (
            Quota::fixed_window(MOST + 1, SECOND),
            past(Algorithm::FixedWindow, MOST + 1, MOST),
            "1073741825 permits are too many for a fixed window: at most 1073741824",
        ),
        (
            Quota::sliding_counter(65_536, SECOND),
            past(Algorithm::SlidingCounter, 65_536, 65_535),
            "65536 permits are too many for a sliding window counter: at most 65535; a quantised log counts to \
             1073741824",
        ),
        (
            Quota::leaky_bucket(1, 0, SECOND),
            QuotaError::ZeroRate,
            "the rate is zero: give at least one permit per period, as `refill` or `leak`",
        ),
        (
            Quota::token_bucket(1, MOST + 1, SECOND),
            QuotaError::RateTooLarge { permits: MOST + 1 },
            "a rate of 1073741825 permits per period is too large: at most 1073741824",
        ),
        (
            Quota::leaky_queue(1, Duration::ZERO, SECOND),
            QuotaError::ZeroPeriod,
            "the period of the rate is zero: give at least one nanosecond, as `per`",
        ),
        (
            Quota::token_bucket(1, 1, long),
            QuotaError::PeriodTooLong { per: long },
            "the period 1152921504.606846976s of the rate is too long: at most 1152921504.606846975s",
        ),
        (
            Quota::leaky_queue(MOST, SECOND, 2 * SECOND),
            QuotaError::QueueTooLong { max_delay: 2 * SECOND },
            "the queue is too long: a maximum delay of 2s has room for more than 1073741824 places",
        ),
        (
            Quota::token_bucket(37, 1, year),
            QuotaError::ResetTooLong { reset: 37 * year },
            "all permits of a key are free again only after 1167631200s: that may take at most 1152921504.606846975s",
        ),
        (
            Quota::token_bucket(5, 1, SECOND).starting_with(6),
            QuotaError::StartPastCapacity { start: 6, capacity: 5 },
            "a token bucket of 5 permits cannot start with 6: at most 5",
        ),
        (
            Quota::per_second(5).starting_with(1),
            QuotaError::StartNeedsTokenBucket,
            "only a token bucket can start with a number of permits",
        ),
        (
            Quota::leaky_bucket(5, 1, SECOND).aligned(SECOND),
            QuotaError::PhaseNeedsFixedWindow,
            "only a fixed window of one length or a sliding window counter can be aligned to a phase",
        ),
    ] {
        let (error, said) = refused(quota);
        assert_eq!((error, said.as_str()), (BuildError::Quota(expected), text));
    }
}

/// What several quotas on one key are refused with, by each way to give them.
fn refused_together(quotas: &[Quota]) -> (BuildError, String) {
    let builder = quotas[1..].iter().fold(Limiter::<str>::builder(quotas[0]), |builder, &quota| builder.and(quota));
    let error = builder.build().expect_err("quotas that can't be had together");
    assert_eq!(DirectLimiter::with_quotas(quotas, MockClock::new()).expect_err("the same quotas"), error);
    (error, error.to_string())
}

#[test]
fn several_quotas_of_which_one_is_not_a_log() {
    let log = Quota::per_second(5);
    let bucket = Quota::token_bucket(5, 1, Duration::from_secs(1));
    let counter = Quota::sliding_counter(5, Duration::from_secs(1));
    for (quotas, algorithm) in [
        (vec![log, bucket], Algorithm::TokenBucket),
        (vec![bucket, log], Algorithm::TokenBucket),
        (vec![log, counter, bucket], Algorithm::SlidingCounter),
        (vec![bucket, bucket], Algorithm::TokenBucket),
    ] {
        let (error, text) = refused_together(&quotas);
        assert_eq!(error, BuildError::QuotasDontCombine { algorithm });
        assert!(text.starts_with("several quotas on one key have to be sliding window logs, and one is "), "{text}");
        assert!(error.source().is_none());
    }
    // What is wrong with one quota is said before what is wrong with all of them.
    let (error, _) = refused_together(&[bucket, Quota::per_second(0)]);
    assert_eq!(error, BuildError::Quota(QuotaError::ZeroLimit));
    assert!(Limiter::<str>::new(bucket).is_ok() && Limiter::<str>::builder(log).and(log).build().is_ok());
}

#[test]
fn more_quotas_than_a_key_may_have() {
    let (error, text) = refused_together(&[Quota::per_second(5); 9]);
    assert_eq!(error, BuildError::TooManyQuotas { quotas: 9, most: 8 });
    assert_eq!(text, "9 quotas on one key are too many: at most 8");
    // The last of them is the one in the way, and can be named.
    let mut quotas = [Quota::per_second(5); 8];
    quotas[7] = Quota::per_second(1);
    let limiter = DirectLimiter::with_quotas(&quotas, MockClock::new()).expect("as many as there may be");
    assert!(limiter.try_acquire().is_admitted());
    assert_eq!(limiter.try_acquire().into_result().expect_err("one only").quota(), 7);
}

#[test]
fn no_quota_at_all() {
    let error = DirectLimiter::with_quotas(&[], MockClock::new()).expect_err("no quota");
    assert_eq!((error, error.to_string().as_str()), (BuildError::NoQuota, "no quota: give at least one"));
}

#[test]
fn a_cost_past_the_least_of_several_limits() {
    let quotas = [Quota::per_minute(5), Quota::per_second(3), Quota::per_day(100)];
    let limiter = DirectLimiter::with_quotas(&quotas, MockClock::new()).expect("good quotas");
    let error = limiter.try_acquire_n(4).expect_err("never");
    assert_eq!((error.cost(), error.limit()), (4, 3));
    assert!(limiter.try_acquire_n(3).is_ok_and(|decision| decision.is_admitted()));
}

/// Either takes a ring of twice as many slots as the limit.
#[test]
fn the_largest_limit_is_reserved_ahead_and_counts_refused_requests() {
    let second = Duration::from_secs(1);
    let clock = MockClock::new();
    for quota in [Quota::new(Quota::MAX_LIMIT, second), Quota::new(Quota::MAX_LIMIT, second).counting_refused()] {
        let limiter = Limiter::<str>::builder(quota).clock(clock.clone()).build().expect("the maximum is allowed");
        assert!(limiter.try_acquire_n("alice", Quota::MAX_LIMIT).expect("of that cost").is_admitted());
        assert!(limiter.try_acquire("alice").is_denied());
        let reserved = limiter.reserve("alice", 1, second);
        assert_eq!(reserved.is_ok(), !quota.is_counting_refused());
        drop(reserved);
        assert_eq!(limiter.peek("alice").retry_after(), Some(second));
        // Refused, and so counted, if refused requests are.
        let refused = limiter.try_acquire_n("alice", Quota::MAX_LIMIT).expect("of that cost");
        assert_eq!((refused.retry_after(), limiter.peek("alice").remaining()), (Some(second), 0));
        assert_eq!(limiter.try_acquire("alice").retry_after(), Some(second));
    }
}

#[test]
fn both_maxima_at_once_make_a_limiter_that_works() {
    let clock = MockClock::new();
    let quota = Quota::new(Quota::MAX_LIMIT, Quota::MAX_WINDOW);
    let limiter = Limiter::<str>::builder(quota).clock(clock.clone()).build().expect("the maxima are allowed");
    assert!(limiter.try_acquire("alice").is_admitted());
    clock.advance(Quota::MAX_WINDOW - NANOSECOND);
    assert_eq!(limiter.peek("alice").remaining(), Quota::MAX_LIMIT - 1);
    assert_eq!(limiter.peek("alice").reset_after(), NANOSECOND);
    clock.advance(NANOSECOND);
    assert_eq!(limiter.peek("alice").remaining(), Quota::MAX_LIMIT);
}

#[test]
fn a_key_cap_of_zero() {
    let error = Limiter::<str>::builder(Quota::per_second(1)).key_cap(0).build().expect_err("a bad cap");
    assert_eq!(error, BuildError::ZeroKeyCap);
    assert_eq!(error.to_string(), "the cap on keys is zero: allow at least one key");
    assert!(error.source().is_none());
}

#[test]
fn a_key_cap_past_the_maximum() {
    for key_cap in [MAX_KEY_CAP + 1, usize::MAX] {
        let error = Limiter::<str>::builder(Quota::per_second(1)).key_cap(key_cap).build().expect_err("a bad cap");
        assert_eq!(error, BuildError::KeyCapTooLarge { key_cap });
        assert_eq!(error.to_string(), format!("a cap of {key_cap} keys is too large: at most 250000000"));
    }
    assert!(Limiter::<str>::builder(Quota::per_second(1)).key_cap(MAX_KEY_CAP).build().is_ok());
}

#[test]
fn more_keys_expected_than_the_cap_allows() {
    let expecting =
        |expected_keys| Limiter::<str>::builder(Quota::per_second(1)).key_cap(10).expected_keys(expected_keys).build();
    let error = expecting(11).expect_err("too many");
    assert_eq!(error, BuildError::ExpectedKeysPastCap { expected_keys: 11, key_cap: 10 });
    assert_eq!(error.to_string(), "11 keys are expected but the cap is 10: raise the cap or expect fewer");
    assert!(expecting(10).expect("as many as the cap").try_acquire("alice").is_admitted());
}

#[test]
fn a_bad_quota_is_named_before_a_bad_cap() {
    let error = Limiter::<str>::builder(Quota::per_second(0)).key_cap(0).build().expect_err("both are bad");
    assert_eq!(error, BuildError::Quota(QuotaError::ZeroLimit));
}

#[test]
fn a_cost_of_zero_is_admitted_and_charges_nothing_even_when_nothing_is_left() {
    for limiter in each(&[Quota::per_minute(1)], MockClock::new) {
        assert_eq!(limiter.acquire(KEY, 0).map(|decision| decision.is_admitted()), Ok(true));
        assert_eq!(limiter.counts().live_keys, 0, "to ask for nothing makes no key live");
        assert!(limiter.acquire_one(KEY).is_admitted());
        assert!(limiter.acquire_one(KEY).is_denied());
        for _ in 0..3 {
            let status = limiter.status(KEY, 0).expect("zero is no error");
            assert!(status.is_admitted());
            assert_eq!((status.remaining(), status.reset_after()), (0, Duration::from_secs(60)));
            assert_eq!(limiter.acquire(KEY, 0).map(|decision| decision.is_admitted()), Ok(true));
        }
        let counted = limiter.counts().decisions.expect("asked for");
        assert_eq!((counted.admitted, counted.denied), (1, 1), "a cost of zero does not count");
        assert_eq!(limiter.peek(KEY).remaining(), 0);
    }
}

#[test]
fn a_cost_past_the_limit_is_an_error_of_its_own_and_charges_nothing() {
    for limiter in each(&[Quota::per_minute(5)], MockClock::new) {
        for cost in [6, u32::MAX] {
            let errors: [CostExceedsLimit; 3] = [
                limiter.acquire(KEY, cost).expect_err("too much"),
                limiter.status(KEY, cost).expect_err("too much"),
                limiter.peek_n(KEY, cost).expect_err("too much"),
            ];
            for error in errors {
                assert_eq!((error.cost(), error.limit()), (cost, 5));
                let expected = "can never be admitted under a limit of 5: ask for at most 5";
                assert_eq!(error.to_string(), format!("a request of cost {cost} {expected}"));
            }
        }
        let (counts, left) = (limiter.counts(), limiter.peek(KEY).remaining());
        let counted = counts.decisions.expect("asked for");
        assert_eq!((left, counts.live_keys, counted.admitted, counted.denied), (5, 0, 0, 0));
    }
}

#[test]
fn a_denial_says_why_and_how_long() {
    let builder = Limiter::<str>::builder(Quota::new(1, Duration::from_secs(2))).clock(MockClock::new()).key_cap(1);
    let limiter = builder.build().expect("a good quota and cap");
    assert!(limiter.try_acquire("alice").is_admitted());
    let by_quota = limiter.try_acquire("alice").into_result().expect_err("one only");
    assert_eq!(by_quota.to_string(), "too many requests: try again in 2 s");
    let by_cap = limiter.try_acquire("bob").into_result().expect_err("room for one only");
    let text = by_cap.to_string();
    assert!(text.starts_with("the limiter is at its key cap: try again in "), "{text}");
    assert!(by_cap.retry_after() <= Duration::from_secs(2), "{text}");
}
