//! Wrong input to limiters of several dimensions.

use super::*;

#[test]
fn a_limiter_of_no_dimension_or_of_too_many_is_not_built() {
    let of = |dimensions: usize| {
        let builder = JointLimiter::<[u32]>::builder();
        (0..dimensions).fold(builder, |it, place| it.dimension(place.to_string(), [Quota::per_second(1)])).build()
    };
    for dimensions in [0, MAX_DIMENSIONS + 1, 100] {
        let error = of(dimensions).expect_err("dimensions");
        assert_eq!(error, BuildError::DimensionCount { dimensions, most: MAX_DIMENSIONS });
        assert!(error.to_string().contains(&dimensions.to_string()) && error.to_string().contains('8'), "{error}");
    }
    assert!(of(1).is_ok() && of(MAX_DIMENSIONS).is_ok());
}

#[test]
fn a_limiter_has_the_dimensions_that_its_type_names() {
    let quota = || [Quota::per_second(1)];
    let two = || JointLimiter::<(u32, u32)>::builder().dimension("one", quota());
    let error = two().build().expect_err("one of two");
    assert_eq!(error, BuildError::OtherDimensionCount { given: 1, named: 2 });
    assert!(error.to_string().contains("1 dimensions") && error.to_string().contains("names 2"), "{error}");
    assert!(two().dimension("two", quota()).build().is_ok());
    let error = two().dimension("two", quota()).dimension("three", quota()).build().expect_err("three of two");
    assert_eq!(error, BuildError::OtherDimensionCount { given: 3, named: 2 });
}

#[test]
fn each_dimension_has_a_name_of_its_own() {
    let named = |names: &[&'static str]| {
        let builder = JointLimiter::<[u32]>::builder();
        names.iter().fold(builder, |it, &name| it.dimension(name, [Quota::per_second(1)])).build().map(drop)
    };
    assert_eq!(named(&["a", "b", "c"]), Ok(()));
    let error = named(&["a", "b", "c", "b"]).expect_err("twice");
    assert_eq!(error, BuildError::RepeatedDimensionName { first: 1, second: 3 });
    assert!(error.to_string().contains("dimensions 1 and 3"), "{error}");
    for empty in ["", " ", "\t"] {
        let error = named(&["a", empty]).expect_err("no name");
        assert_eq!(error, BuildError::EmptyDimensionName { dimension: 1 });
        assert!(error.to_string().contains("dimension 1"), "{error}");
    }
}

#[test]
fn a_request_without_a_key_in_any_dimension_asks_nothing() {
    let builder = JointLimiter::<(u32, String)>::builder().dimension("one", [Quota::per_second(1)]);
    let limiter = builder.dimension("two", [Quota::per_second(1)]).count_decisions(true).build().expect("good quotas");
    let nothing = JointError::NoKeys;
    assert_eq!(limiter.try_acquire((Absent, Absent)), Err(nothing));
    assert_eq!(limiter.try_acquire((None::<u32>, None::<&str>)), Err(nothing));
    assert_eq!(limiter.try_acquire_n((Absent, Absent), 0), Err(nothing));
    assert_eq!(limiter.try_acquire_n((Absent, Absent), 9), Err(nothing));
    assert_eq!(limiter.peek_n((Absent, Absent), 1), Err(nothing));
    assert_eq!(limiter.forget((Absent, Absent)), Err(nothing));
    assert_eq!(limiter.reserve((Absent, Absent), 1).err(), Some(ReserveError::Joint(nothing)));
    assert!(nothing.to_string().contains("no key in any dimension") && nothing.source().is_none());
    let decisions = limiter.counts().decisions.expect("they are counted");
    assert_eq!((decisions.admitted, decisions.denied), (0, 0));
}

#[test]
fn a_dimension_has_quotas_that_can_be_used_together() {
    let with =
        |quotas: Vec<Quota>| JointLimiter::<(u32,)>::builder().dimension("one", quotas).build().expect_err("quotas");
    let bucket = Quota::token_bucket(2, 1, Duration::from_secs(1));
    let (zero, log) = (Quota::per_second(0), Quota::per_second(1));
    assert_eq!(with(vec![]), BuildError::NoQuota);
    assert_eq!(with(vec![log, zero]), BuildError::Quota(QuotaError::ZeroLimit));
    assert_eq!(with(vec![log, bucket]), BuildError::QuotasDontCombine { algorithm: Algorithm::TokenBucket });
    assert_eq!(with(vec![log; 9]), BuildError::TooManyQuotas { quotas: 9, most: 8 });
    assert!(with(vec![log, bucket]).to_string().contains("dimensions of their own"));
}

#[test]
fn the_keys_of_several_dimensions_have_one_cap() {
    let builder = || JointLimiter::<(u32,)>::builder().dimension("one", [Quota::per_second(1)]);
    assert_eq!(builder().key_cap(0).build().expect_err("no keys"), BuildError::ZeroKeyCap);
    let error = builder().key_cap(2).expected_keys(3).build().expect_err("too many are expected");
    assert_eq!(error, BuildError::ExpectedKeysPastCap { expected_keys: 3, key_cap: 2 });
}

#[test]
fn a_request_that_can_never_be_decided_says_why_and_charges_nothing() {
    let two = JointLimiter::<[u32]>::builder()
        .dimension("one", [Quota::per_second(3)])
        .dimension("two", [Quota::per_second(2)]);
    let limiter = two.clock(MockClock::new()).build().expect("good quotas");
    let error = limiter.try_acquire([1]).expect_err("two keys are needed");
    assert_eq!(error, JointError::WrongNumberOfKeys { keys: 1, dimensions: 2 });
    assert!(error.to_string().contains("1 keys for 2 dimensions") && error.source().is_none(), "{error}");
    for cost in [3, 4, u32::MAX] {
        let error = limiter.try_acquire_n([1, 1], cost).expect_err("two at most");
        let JointError::Cost(too_much) = error else { panic!("{error:?}") };
        assert_eq!((too_much.cost(), too_much.limit()), (cost, if cost == 3 { 2 } else { 3 }));
        assert!(error.source().is_none() && error.to_string() == too_much.to_string());
        assert_eq!(limiter.peek_n([1, 1], cost), Err(error));
    }
    // A dimension that is not asked does not count.
    assert!(limiter.try_acquire_n([Some(1), None], 3).expect("three fit").is_admitted());
    assert!(limiter.try_acquire_n([2, 1], 2).expect("two fit").is_admitted());
}
