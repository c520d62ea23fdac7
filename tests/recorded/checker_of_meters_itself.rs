//! The checker of runs under a token bucket and a fixed window, tried on runs made by hand and on
//! runs of the oracle: it must accept what is right and catch a single permit too many, a single
//! denial too many and advice that is one nanosecond off.

use proptest::prelude::*;
use tollgate_kit::checker::meters::Fault;
use tollgate_kit::checker::{Event, Told};
use tollgate_kit::key::Quotas;
use tollgate_kit::oracle::meter::Meter;

use crate::by_hand::{admitted, costs, denied, simulate};

/// Two permits, and one more every ten nanoseconds.
const BUCKET: Meter = Meter::TokenBucket { capacity: 2, refill: 1, per: 10, start: 2 };
const WINDOW: Meter = Meter::FixedWindow { limit: 2, window: 10, phase: None };
const ALIGNED: Meter = Meter::FixedWindow { limit: 2, window: 10, phase: Some(0) };

#[test]
fn a_bucket_that_is_right_is_accepted() {
    let events =
        [admitted(0, 0), admitted(3, 3), denied(4, 4, 6), admitted(10, 10), denied(10, 12, 10), admitted(20, 20)];
    assert_eq!(BUCKET.check(&events, 0), Ok(4));
}

#[test]
fn one_permit_too_many_for_a_bucket_is_caught_and_the_refill_is_exact() {
    let at = |times: &[u64]| BUCKET.check(&times.iter().map(|&time| admitted(time, time)).collect::<Vec<_>>(), 0);
    assert!(at(&[0, 0, 10, 20]).is_ok());
    assert!(matches!(at(&[0, 0, 9]), Err(Fault::OverAdmitted { permits: 3, .. })));
    assert!(matches!(at(&[0, 0, 10, 19]), Err(Fault::OverAdmitted { permits: 4, .. })));
    // A long interval, of which no short one has too much: 8 in 59 ns.
    assert!(matches!(at(&[0, 5, 10, 20, 30, 40, 50, 59]), Err(Fault::OverAdmitted { permits: 8, .. })));
    assert!(at(&[0, 5, 10, 20, 30, 40, 50, 60]).is_ok());
    let doubt = [admitted(0, 0), admitted(0, 0), admitted(5, 10)];
    assert!(BUCKET.check(&doubt, 0).is_ok());
    assert!(matches!(
        BUCKET.check(&[admitted(0, 0), admitted(0, 0), admitted(5, 9)], 0),
        Err(Fault::OverAdmitted { .. })
    ));
    assert!(BUCKET.check(&[admitted(0, 0), admitted(0, 0), admitted(8, 8)], 1).is_ok(), "two readings, one off each");
    let other_key = Event { key: 1, ..admitted(0, 0) };
    assert!(BUCKET.check(&[admitted(0, 0), admitted(0, 0), other_key], 0).is_ok());
}

#[test]
fn a_buckets_denial_that_nothing_explains_is_caught() {
    assert_eq!(BUCKET.check(&[admitted(0, 0), denied(0, 0, 10)], 0), Err(Fault::Unexplained(denied(0, 0, 10))));
    let full_again = [admitted(0, 0), admitted(0, 0), denied(10, 10, 1)];
    assert_eq!(BUCKET.check(&full_again, 0), Err(Fault::Unexplained(full_again[2])));
    let meanwhile = [admitted(0, 0), denied(5, 8, 5), admitted(6, 7)];
    assert!(BUCKET.check(&meanwhile, 0).is_ok());
    let afterwards = [admitted(0, 0), denied(5, 8, 5), admitted(9, 9)];
    assert_eq!(BUCKET.check(&afterwards, 0), Err(Fault::Unexplained(afterwards[1])));
}

#[test]
fn a_windows_faults_are_caught() {
    let run = |window: Meter, events: &[Event]| window.check(events, 0);
    let two = [admitted(5, 5), admitted(7, 7)];
    let with = |event: Event| [two[0], two[1], event];
    for window in [WINDOW, ALIGNED] {
        assert_eq!(run(window, &two), Ok(2));
        assert!(run(window, &[two[0], denied(8, 8, 2)]).is_err(), "one is not enough");
    }
    assert!(run(WINDOW, &with(denied(8, 8, 7))).is_ok());
    assert!(run(ALIGNED, &with(denied(8, 8, 2))).is_ok());
    for wait in [0, 1, 3, 6, 8] {
        assert!(run(ALIGNED, &with(denied(8, 8, wait))).is_err(), "{wait}");
        assert!(run(WINDOW, &with(denied(8, 8, wait))).is_err(), "{wait}");
    }
    assert!(matches!(run(ALIGNED, &with(admitted(9, 9))), Err(Fault::OverAdmitted { permits: 3, .. })));
    assert!(run(ALIGNED, &with(admitted(9, 10))).is_ok());
    // Two windows can end and begin within an interval of less than one: four permits, but not
    // five.
    let many = |count: usize| run(WINDOW, &vec![admitted(5, 5); count]);
    assert!(many(4).is_ok() && matches!(many(5), Err(Fault::OverAdmitted { permits: 5, .. })));
}

fn off_by_one(event: Event, more: bool) -> Event {
    let Told::Denied { retry_after, quota } = event.told else { panic!("{event:?}") };
    let retry_after = if more { retry_after + 1 } else { retry_after - 1 };
    Event { told: Told::Denied { retry_after, quota }, ..event }
}

/// Plants each fault at one of the denials: admitted after all, and told a nanosecond more or less.
fn each_fault_is_caught(
    events: &[Event],
    flip: prop::sample::Index,
    check: impl Fn(&[Event]) -> bool,
) -> Result<(), TestCaseError> {
    prop_assert!(check(events));
    let denials: Vec<usize> = (0..events.len()).filter(|&event| events[event].told != Told::Admitted).collect();
    if !denials.is_empty() {
        let at = denials[flip.index(denials.len())];
        let with = |event: Event| [&events[..at], &[event], &events[at + 1..]].concat();
        prop_assert!(!check(&with(Event { told: Told::Admitted, ..events[at] })), "admitted: {:?}", events[at]);
        prop_assert!(!check(&with(off_by_one(events[at], true))), "told more: {:?}", events[at]);
        prop_assert!(!check(&with(off_by_one(events[at], false))), "told less: {:?}", events[at]);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn accepts_a_bucket_and_not_one_permit_more(
        capacity in 1_u32..6,
        refill in 1_u32..4,
        per in 1_u64..40,
        requests in prop::collection::vec((1_u64..20, any::<u32>()), 1..120),
        flip in any::<prop::sample::Index>(),
    ) {
        let meter = Meter::TokenBucket { capacity, refill, per, start: capacity };
        let events = simulate(&Quotas::Meter(meter), &costs(&requests, capacity));
        each_fault_is_caught(&events, flip, |events| meter.check(events, 0).is_ok())?;
    }

    #[test]
    fn accepts_an_aligned_window_and_not_one_permit_more(
        limit in 1_u32..6,
        window in 2_u64..60,
        requests in prop::collection::vec((1_u64..20, any::<u32>()), 1..120),
        flip in any::<prop::sample::Index>(),
    ) {
        let meter = Meter::FixedWindow { limit, window, phase: Some(0) };
        let events = simulate(&Quotas::Meter(meter), &costs(&requests, limit));
        each_fault_is_caught(&events, flip, |events| meter.check(events, 0).is_ok())?;
    }

    /// Where a window begins is not to be seen from outside, so that one permit too many need not
    /// be.
    #[test]
    fn accepts_a_window(
        limit in 1_u32..6,
        window in 1_u64..60,
        requests in prop::collection::vec((0_u64..20, any::<u32>()), 1..120),
    ) {
        let meter = Meter::FixedWindow { limit, window, phase: None };
        let events = simulate(&Quotas::Meter(meter), &costs(&requests, limit));
        let checked = meter.check(&events, 0);
        prop_assert!(checked.is_ok(), "{:?}", checked);
    }
}
