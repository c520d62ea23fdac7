use super::*;

#[test]
fn equal_quotas_have_one_version() {
    let plans = Plans::new(&[&[Quota::per_second(1)], &[Quota::per_second(2)]], 0);
    assert!(Arc::ptr_eq(&plans.version(&[Quota::per_second(2)]), &plans.all[1]));
    let own = plans.version(&[Quota::per_second(3)]);
    let plans = plans.with_own([(Key { tag: 0x10 }, Some(&own))]);
    assert!(Arc::ptr_eq(&plans.version(&[Quota::per_second(3)]), &own));
    assert_eq!(plans.version(&[Quota::per_second(4)]).most, 4);
}

#[test]
fn a_key_has_its_own_version_until_it_is_taken_away() {
    let plans = Plans::new(&[&[Quota::per_second(1)]], 0);
    let [one, other] = [0x10, 0x30].map(|tag| Key { tag });
    let plans = plans.with_own([(one, Some(&plans.version(&[Quota::per_second(5)])))]);
    assert_eq!((plans.of(one).most, plans.of(other).most), (5, 1));
    let plans = plans.with(0, &plans.version(&[Quota::per_second(2)]));
    assert_eq!((plans.of(one).most, plans.of(other).most), (5, 2));
    let plans = plans.with_own([(one, None)]);
    assert_eq!(plans.of(one).most, 2);
    assert!(plans.own.is_none());
}
