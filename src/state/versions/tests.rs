use super::*;

#[test]
fn equal_quotas_have_one_version() {
    let versions = Versions::new(&[&[Quota::per_second(1)], &[Quota::per_second(1)]]);
    assert_eq!((versions.current(0).number, versions.current(1).number), (0, 0));
    for limit in (1..100).chain(1..100) {
        let version = versions.turn().version(&[Quota::per_second(limit)]);
        assert_eq!(version.number, u64::from(limit) - 1);
        assert_eq!(versions.number(version.number).quotas[0], Quota::per_second(limit));
    }
    versions.set(1, versions.number(7));
    assert_eq!((versions.current(0).most, versions.current(1).most), (1, 8));
}

#[test]
fn a_key_has_its_own_version_until_it_is_taken_away() {
    let versions = Versions::new(&[&[Quota::per_second(1)]]);
    let own = versions.turn().version(&[Quota::per_second(5)]);
    let [one, other] = [0x10, 0x30].map(|tag| Key { tag });
    let plans = versions.plans().with_own(one, Some(&own));
    assert_eq!((plans.of(one).most, plans.of(other).most), (5, 1));
    let plans = plans.with(0, &versions.turn().version(&[Quota::per_second(2)]));
    assert_eq!((plans.of(one).most, plans.of(other).most), (5, 2));
    let plans = plans.with_own(one, None);
    assert_eq!(plans.of(one).most, 2);
    assert!(plans.own.is_none());
}
