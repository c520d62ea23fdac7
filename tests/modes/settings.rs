//! What `settings` of a limiter in use changes, and what it refuses. Policies in use are tested in
//! `tollgate-policy`.

use std::time::Duration;

use tollgate::{
    AtKeyCap, BuildError, ChangeError, DenialReason, JointLimiter, Limiter, MockClock, Penalty, PenaltyError, Quota,
};

const HOUR: Duration = Duration::from_secs(3600);

fn limiter() -> Limiter<str, MockClock> {
    Limiter::builder(Quota::per_hour(1)).key_cap(3).clock(MockClock::new()).build().unwrap()
}

/// Two dimensions, and a tier of the first.
fn joint() -> JointLimiter<(u32, u32), MockClock> {
    let builder = JointLimiter::builder().dimension("user", [Quota::per_hour(1)]);
    let builder = builder.dimension("address", [Quota::per_hour(9)]).tier(0, "premium", [Quota::per_hour(5)]);
    builder.clock(MockClock::new()).build().unwrap()
}

#[test]
fn every_percentage_is_told_as_it_was_set() {
    let limiter = limiter();
    for percent in (0..=100).chain([0, 100, 50, 100]) {
        limiter.settings().set_enforced_percent(percent).unwrap();
        assert_eq!(limiter.settings().enforced_percent(), percent);
    }
}

#[test]
fn a_setting_that_can_not_be_used_is_an_error_and_nothing_changes() {
    let limiter = joint();
    let settings = limiter.settings();
    let no_dimension = Err(ChangeError::NoSuchDimension { dimension: 2, dimensions: 2 });
    assert_eq!(settings.check_quotas(2, &[Quota::per_hour(7)]), no_dimension);
    assert_eq!(settings.set_quotas(2, &[Quota::per_hour(7)]), no_dimension);
    assert_eq!(settings.set_penalty(2, Some(Penalty::new(1, HOUR, HOUR))), no_dimension);
    assert_eq!(settings.set_penalty(2, None), no_dimension);
    let premium = limiter.tier(0, "premium").unwrap();
    assert_eq!(limiter.quotas_of((premium.key(7), 7)).unwrap()[0], Some([Quota::per_hour(5)].into()));

    assert_eq!(settings.set_quotas(0, &[]), Err(ChangeError::Unusable(BuildError::NoQuota)));
    let counting = Quota::per_hour(1).counting_refused();
    assert_eq!(settings.set_quotas(0, &[counting]), Err(ChangeError::OtherRefused));
    let never = ChangeError::Unusable(BuildError::Penalty(PenaltyError::ZeroDenials));
    assert_eq!(settings.set_penalty(0, Some(Penalty::new(0, HOUR, HOUR))), Err(never));
    let much = ChangeError::Unusable(BuildError::NoPercentage { percent: 101 });
    assert_eq!(settings.set_enforced_percent(101), Err(much));
    assert_eq!(much.to_string(), "limits can't be enforced for 101 % of the keys: give a number from 0 to 100");

    let reason = || limiter.try_acquire((7, 7)).unwrap().into_result().map_err(|denial| denial.reason());
    assert!(reason().is_ok());
    assert_eq!([reason().err(), reason().err()], [Some(DenialReason::Quota); 2]);
}

#[test]
fn a_check_of_quotas_changes_nothing() {
    let limiter = joint();
    for (dimension, quotas) in [(0, &[Quota::per_hour(7)][..]), (1, &[Quota::per_hour(8), Quota::per_second(2)])] {
        let before = limiter.dimensions().map(|(_, quotas)| quotas).collect::<Vec<_>>();
        assert_eq!(limiter.settings().check_quotas(dimension, quotas), Ok(()));
        assert!(limiter.dimensions().map(|(_, quotas)| quotas).eq(before));
        assert_eq!(limiter.settings().set_quotas(dimension, quotas), Ok(()));
        assert_eq!(*limiter.dimensions().nth(dimension).unwrap().1, *quotas);
    }
}

#[test]
fn each_setting_changes_in_use_and_back() {
    let limiter = limiter();
    let settings = limiter.settings();
    assert_eq!((settings.key_cap(), settings.enforced_percent()), (3, 100));
    let reason = |key: &str| limiter.try_acquire(key).into_result().err().map(|denial| denial.reason());
    assert_eq!([reason("a"), reason("a")], [None, Some(DenialReason::Quota)]);

    settings.set_penalty(0, Some(Penalty::new(2, HOUR, 24 * HOUR))).unwrap();
    assert_eq!([reason("a"), reason("a")], [Some(DenialReason::Quota), Some(DenialReason::Penalty)]);
    settings.set_penalty(0, None).unwrap();
    assert_eq!(reason("a"), Some(DenialReason::Quota));
    settings.set_penalty(0, Some(Penalty::new(1, HOUR, 2 * HOUR))).unwrap();
    assert_eq!(limiter.try_acquire("a").retry_after(), Some(2 * HOUR), "the block goes on");
    settings.set_penalty(0, None).unwrap();

    settings.set_enforced_percent(0).unwrap();
    assert_eq!(reason("a"), None);
    settings.set_enforced_percent(100).unwrap();
    assert_eq!(reason("a"), Some(DenialReason::Quota));

    assert_eq!([reason("b"), reason("c"), reason("d")], [None, None, Some(DenialReason::KeyCap)]);
    settings.set_at_key_cap(AtKeyCap::Admit);
    assert_eq!(reason("d"), None);
    settings.set_at_key_cap(AtKeyCap::Deny);
    assert_eq!(reason("d"), Some(DenialReason::KeyCap));
    let shown = format!("{settings:?}");
    assert_eq!(shown, "LiveSettings { key_cap: 3, enforced_percent: 100, at_key_cap: Deny, .. }");
}

/// A limiter that was built without any mode takes no memory for one that stays off.
#[test]
fn a_setting_that_there_is_costs_nothing() {
    let limiter = limiter();
    let bytes = limiter.counts().bytes;
    limiter.settings().set_enforced_percent(100).unwrap();
    limiter.settings().set_penalty(0, None).unwrap();
    limiter.settings().set_quotas(0, &[Quota::per_hour(1)]).unwrap();
    assert_eq!(limiter.counts().bytes, bytes);
    limiter.settings().set_enforced_percent(99).unwrap();
    assert!(limiter.counts().bytes > bytes, "the count of overruled denials");
}
