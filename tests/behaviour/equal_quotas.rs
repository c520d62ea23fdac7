//! Quotas that are set again unchanged: that costs nothing, however often it is done.

use tollgate::{ChangeError, DirectLimiter, JointLimiter, Limiter, Quota};

const TIMES: u32 = 2_000_000;

#[test]
fn quotas_of_a_key_can_be_set_again_and_again() {
    let limiter = Limiter::<str>::builder(Quota::per_hour(2)).keys_with_quotas(10).build().unwrap();
    limiter.set_quotas_of("alice", &[Quota::per_hour(5)]).unwrap();
    assert!(limiter.try_acquire_n("alice", 5).unwrap().is_admitted());
    let before = limiter.counts().bytes;
    for _ in 0..TIMES {
        limiter.set_quotas_of("alice", &[Quota::per_hour(5)]).unwrap();
    }
    assert_eq!(limiter.counts().bytes, before);
    limiter.set_quotas_of("alice", &[Quota::per_hour(6)]).unwrap();
    assert!(limiter.try_acquire("alice").is_admitted());
    assert!(limiter.try_acquire("alice").is_denied());
}

#[test]
fn quotas_of_all_keys_can_be_set_again_and_again() {
    let limiter = DirectLimiter::new(Quota::per_hour(5)).unwrap();
    let joint = JointLimiter::<(u32,)>::builder().dimension("user", [Quota::per_hour(5)]).build().unwrap();
    let before = (limiter.counts().bytes, joint.counts().bytes);
    for _ in 0..TIMES {
        limiter.set_quotas(&[Quota::per_hour(5)]).unwrap();
        joint.set_quotas(0, &[Quota::per_hour(5)]).unwrap();
    }
    assert_eq!((limiter.counts().bytes, joint.counts().bytes), before);
    limiter.set_quotas(&[Quota::per_hour(6)]).unwrap();
    joint.set_quotas(0, &[Quota::per_hour(6)]).unwrap();
    assert_eq!(
        (limiter.peek().limit(), joint.quotas_of((7,)).unwrap()[0].clone()),
        (6, Some([Quota::per_hour(6)].into()))
    );
}

/// The first call pins the key's quotas, even to those that all keys have.
#[test]
fn a_key_has_its_own_quotas_even_if_they_equal_those_of_all() {
    let limiter = Limiter::<str>::builder(Quota::per_hour(2)).keys_with_quotas(10).build().unwrap();
    limiter.set_quotas_of("alice", &[Quota::per_hour(2)]).unwrap();
    limiter.set_quotas(&[Quota::per_hour(1)]).unwrap();
    assert_eq!((limiter.peek("alice").limit(), limiter.peek("bob").limit()), (2, 1));
}

/// A name is a part of a quota: messages and header fields show it.
#[test]
fn another_name_is_a_change() {
    let limiter = Limiter::<str>::new(Quota::per_hour(2)).unwrap();
    limiter.set_quotas(&[Quota::per_hour(2).named("logins")]).unwrap();
    assert_eq!(limiter.quotas()[0].name(), Some("logins"));
}

#[test]
fn a_limiter_that_was_not_built_for_it_still_says_so() {
    let limiter = Limiter::<str>::new(Quota::per_hour(2)).unwrap();
    assert_eq!(limiter.set_quotas_of("alice", &[Quota::per_hour(2)]), Err(ChangeError::NoneOfItsOwn));
}
