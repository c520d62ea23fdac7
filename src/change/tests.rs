use super::*;
use crate::Limiter;

#[test]
fn there_is_no_end_to_changes() {
    let limiter = Limiter::<String>::new(Quota::per_hour(3)).unwrap();
    assert!(limiter.try_acquire("alice").is_admitted());
    for change in 0..5_000 {
        let limit = 4 + change % 1_000;
        assert_eq!(limiter.set_quotas(&[Quota::per_hour(limit)]), Ok(()), "change {change}");
    }
    assert_eq!(limiter.set_quotas(&[Quota::per_hour(5)]), Ok(()));
    assert_eq!((&*limiter.quotas(), limiter.peek("alice").remaining()), (&[Quota::per_hour(5)][..], 4));
}
