//! Tiers: which quotas a key has, what it shares with itself in other tiers, and bad input.

use std::time::Duration;

use tollgate::{BuildError, ChangeError, Decision, DenialReason, JointLimiter, Limiter, MockClock, Penalty, Quota};

fn reason(decision: Decision) -> Option<DenialReason> {
    decision.into_result().err().map(|denial| denial.reason())
}

fn limiter() -> Limiter<str> {
    let builder = Limiter::builder(Quota::per_hour(1)).list_cap(10).keys_with_quotas(10);
    builder.tier("premium", [Quota::per_hour(2)]).build().unwrap()
}

#[test]
fn a_key_has_permits_in_each_tier() {
    let limiter = limiter();
    let premium = limiter.tier("premium").unwrap();
    assert!(limiter.try_acquire("alice").is_admitted());
    assert!(limiter.try_acquire("alice").is_denied());
    assert_eq!(limiter.peek(premium.key("alice")).remaining(), 2);
    assert_eq!(*limiter.quotas_of(premium.key("alice")), [Quota::per_hour(2)]);
    assert_eq!(limiter.counts().live_keys, 1);
}

#[test]
fn a_tuple_is_in_the_tier_of_its_parts() {
    let builder = Limiter::<(u64, String)>::builder(Quota::per_hour(1));
    let limiter = builder.tier("premium", [Quota::per_hour(2)]).build().unwrap();
    let premium = limiter.tier("premium").unwrap();
    for key in [limiter.peek((premium.key(7), "x")), limiter.peek((7, premium.key("x")))] {
        assert_eq!(key.remaining(), 2);
    }
    assert!(limiter.try_acquire((premium.key(7), "x")).is_admitted());
    assert_eq!(limiter.peek(premium.key((7, "x"))).remaining(), 1);
    assert_eq!(limiter.peek((7, "x")).remaining(), 1);
}

#[test]
fn a_key_in_a_tier_can_have_quotas_of_its_own() {
    let limiter = limiter();
    let premium = limiter.tier("premium").unwrap();
    limiter.set_quotas_of(premium.key("alice"), &[Quota::per_hour(9)]).unwrap();
    assert_eq!(limiter.peek(premium.key("alice")).limit(), 9);
    assert_eq!((limiter.peek("alice").limit(), limiter.peek(premium.key("bob")).limit()), (1, 2));
    let bucket = Quota::token_bucket(1, 1, Duration::from_secs(1));
    let error = limiter.set_quotas_of(premium.key("alice"), &[bucket]).unwrap_err();
    assert!(matches!(error, ChangeError::OtherAlgorithm { .. }), "{error}");
    assert!(limiter.unset_quotas_of(premium.key("alice")));
    assert_eq!(limiter.peek(premium.key("alice")).limit(), 2);
}

#[test]
fn lists_are_of_a_key_in_all_tiers() {
    let limiter = limiter();
    let premium = limiter.tier("premium").unwrap();
    assert_eq!(limiter.deny("mallory"), Ok(true));
    for status in [limiter.peek("mallory"), limiter.peek(premium.key("mallory"))] {
        assert_eq!(reason(status.decision()), Some(DenialReason::DenyList));
    }
    assert!(limiter.unlist(premium.key("mallory")));
    assert!(limiter.try_acquire("mallory").is_admitted());
}

#[test]
fn a_penalty_is_of_a_key_in_all_tiers() {
    let penalty = Penalty::new(1, Duration::from_secs(60), Duration::from_secs(60));
    let builder = Limiter::<str>::builder(Quota::per_hour(1)).tier("premium", [Quota::per_hour(2)]);
    let limiter = builder.penalty(penalty).clock(MockClock::new()).build().unwrap();
    let premium = limiter.tier("premium").unwrap();
    assert!(limiter.try_acquire_n(premium.key("mallory"), 2).unwrap().is_admitted());
    assert!(limiter.try_acquire(premium.key("mallory")).is_denied());
    for status in [limiter.peek("mallory"), limiter.peek(premium.key("mallory"))] {
        assert_eq!(reason(status.decision()), Some(DenialReason::Penalty));
    }
    assert!(limiter.forget("mallory"), "the block");
    assert!(limiter.try_acquire("mallory").is_admitted());
}

#[test]
fn penalties_are_those_of_the_dimension() {
    let penalty = Penalty::new(1, Duration::from_secs(60), Duration::from_secs(60));
    let builder = JointLimiter::<(String, String)>::builder().dimension("user", [Quota::per_hour(1)]);
    let builder = builder.dimension("path", [Quota::per_hour(9)]).tier(1, "slow", [Quota::per_hour(1)]);
    let limiter = builder.penalty(1, penalty).clock(MockClock::new()).build().unwrap();
    let slow = limiter.tier(1, "slow").unwrap();
    assert!(limiter.try_acquire(("alice", slow.key("/"))).unwrap().is_admitted());
    assert!(limiter.try_acquire(("bob", slow.key("/"))).unwrap().is_denied());
    let denial = limiter.peek(("bob", "/")).unwrap().decision().into_result().unwrap_err();
    assert_eq!((denial.reason(), denial.dimension()), (DenialReason::Penalty, 1));
}

#[cfg(feature = "snapshot")]
#[test]
fn a_snapshot_has_the_permits_of_each_tier() {
    use tollgate::RestoreError;

    let builder = |premium| Limiter::<str>::builder(Quota::per_hour(1)).tier("premium", [premium]);
    let before = builder(Quota::per_hour(2)).build().unwrap();
    let premium = before.tier("premium").unwrap();
    assert!(before.try_acquire("alice").is_admitted());
    assert!(before.try_acquire(premium.key("bob")).is_admitted());
    let snapshot = before.snapshot();
    let after = builder(Quota::per_hour(3)).restore(&snapshot).unwrap();
    assert_eq!((after.peek("alice").remaining(), after.peek(premium.key("bob")).remaining()), (0, 2));
    assert_eq!(after.peek("bob").remaining(), 1);
    let bucket = builder(Quota::token_bucket(2, 1, Duration::from_secs(1))).restore(&snapshot);
    assert_eq!(bucket.err(), Some(RestoreError::OtherQuotas));
    let without = Limiter::<str>::builder(Quota::per_hour(1)).restore(&snapshot);
    assert_eq!(without.err(), Some(RestoreError::OtherQuotas));
}

#[test]
fn tiers_that_cannot_be_are_refused() {
    let quota = Quota::per_hour(1);
    let error = |names: &[&str]| {
        let builder = Limiter::<str>::builder(quota);
        names.iter().fold(builder, |builder, name| builder.tier(*name, [quota])).build().err()
    };
    assert_eq!(error(&["a", "b"]), None);
    assert_eq!(error(&["a", "b", "a"]), Some(BuildError::RepeatedTierName { first: 0, second: 2 }));
    assert_eq!(error(&["a", " "]), Some(BuildError::EmptyTierName { tier: 1 }));
    let names: Vec<String> = (0..16).map(|tier| tier.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(error(&names[..15]), None);
    assert_eq!(error(&names), Some(BuildError::TooManyTiers { tiers: 16, most: 15 }));
    assert_eq!(Limiter::<str>::builder(quota).tier("a", []).build().err(), Some(BuildError::NoQuota));

    let joint = || JointLimiter::<(String,)>::builder().dimension("user", [quota]);
    let none = joint().tier(1, "a", [quota]).build().err();
    assert_eq!(none, Some(BuildError::NoSuchDimension { dimension: 1, dimensions: 1 }));
    let counting = joint().tier(0, "a", [quota.counting_refused()]).build().err();
    assert_eq!(counting, Some(BuildError::CountingRefusedAlone));
}

#[test]
#[should_panic(expected = "the tier of a request is that of another limiter")]
fn a_tier_of_another_limiter_panics() {
    let other = Limiter::<str>::new(Quota::per_hour(1)).unwrap();
    let _ = other.try_acquire(limiter().tier("premium").unwrap().key("alice"));
}

#[test]
#[should_panic(expected = "the tier of a request is that of another limiter or dimension")]
fn a_tier_of_another_dimension_panics() {
    let builder = JointLimiter::<(String, String)>::builder().dimension("user", [Quota::per_hour(1)]);
    let builder = builder.dimension("path", [Quota::per_hour(9)]).tier(1, "slow", [Quota::per_hour(1)]);
    let limiter = builder.build().unwrap();
    let _ = limiter.try_acquire((limiter.tier(1, "slow").unwrap().key("alice"), "/"));
}
