//! The checker of recorded runs, tried on runs made by hand and on runs of the oracle: it must
//! accept what is right and catch a single permit too many, a single denial too many and advice
//! that is one nanosecond off.

use proptest::prelude::*;
use tollgate_kit::checker::{Event, Expiry, Fault, Limit, Run, Told};
use tollgate_kit::key::Quotas;

use crate::by_hand::{admitted, costs, denied, simulate};

/// Under a limit of 2 in 100 ns.
fn run(events: &[Event]) -> Run {
    Run {
        limits: vec![Limit { permits: 2, window: 100 }],
        events: events.to_vec(),
        reading_error: 0,
        expiry: Expiry::EachOnItsOwn,
    }
}

#[test]
fn accepts_a_run_that_is_right() {
    let events = [admitted(0, 5), admitted(10, 15), denied(20, 25, 80), admitted(100, 105), admitted(110, 112)];
    let summary = run(&events).check().expect("nothing is wrong");
    assert_eq!((summary.permits, summary.denials), (4, 1));
}

#[test]
fn catches_one_permit_too_many_in_a_window() {
    let events = [admitted(0, 5), admitted(10, 15), admitted(90, 99)];
    let fault = Fault::OverAdmitted { key: 0, from: 0, windows: 1, permits: 3, allowed: 2 };
    assert_eq!(run(&events).check(), Err(fault));
    // Had the third come as late as 100, then a window after the first: nothing would be certain.
    let events = [admitted(0, 5), admitted(10, 15), admitted(90, 100)];
    assert!(run(&events).check().is_ok());
}

#[test]
fn catches_one_permit_too_many_at_one_instant_and_the_boundary_is_half_open() {
    let at = |instants: &[u64]| run(&instants.iter().map(|&at| admitted(at, at)).collect::<Vec<_>>()).check();
    assert!(at(&[7, 7]).is_ok());
    assert!(matches!(at(&[7, 7, 7]), Err(Fault::OverAdmitted { .. })));
    assert!(matches!(at(&[7, 7, 106]), Err(Fault::OverAdmitted { .. })));
    assert!(at(&[7, 7, 107, 107]).is_ok());
}

#[test]
fn costs_count_as_many_permits_and_keys_apart() {
    let mut events = [admitted(0, 0), Event { cost: 2, ..admitted(50, 50) }];
    assert!(matches!(run(&events).check(), Err(Fault::OverAdmitted { permits: 3, .. })));
    events[1].key = 1;
    assert!(run(&events).check().is_ok());
}

#[test]
fn an_excess_that_hides_at_the_edges_of_one_window_is_caught_over_several() {
    // Limit 2, but 5 in every 200 ns. Each call takes so long that no single window holds three for
    // certain.
    let events: Vec<Event> = (0..50).map(|number| admitted(number * 40, number * 40 + 50)).collect();
    assert!(matches!(run(&events).check(), Err(Fault::OverAdmitted { windows: 2.., .. })));
    // 2 in every 100 ns, with the same doubt, is right.
    let events: Vec<Event> = (0..50).map(|number| admitted(number * 50, number * 50 + 60)).collect();
    assert!(run(&events).check().is_ok());
}

#[test]
fn catches_a_denial_that_nothing_explains() {
    let one_is_not_enough = [admitted(0, 5), denied(20, 25, 80)];
    assert!(matches!(run(&one_is_not_enough).check(), Err(Fault::Unexplained { live_at_most: 1, .. })));
    let expired = [admitted(0, 5), admitted(10, 15), denied(105, 108, 1)];
    assert!(matches!(run(&expired).check(), Err(Fault::Unexplained { live_at_most: 1, .. })));
    let perhaps_not_yet = [admitted(0, 5), admitted(10, 15), denied(104, 108, 1)];
    assert!(run(&perhaps_not_yet).check().is_ok());
    let granted_later = [admitted(0, 5), denied(20, 25, 80), admitted(26, 30)];
    assert!(matches!(run(&granted_later).check(), Err(Fault::Unexplained { live_at_most: 1, .. })));
    let granted_meanwhile = [admitted(0, 5), denied(20, 25, 80), admitted(25, 30)];
    assert!(run(&granted_meanwhile).check().is_ok());
}

#[test]
fn a_denial_for_want_of_a_place_needs_no_permits() {
    assert!(run(&[Event { told: Told::NoPlace, ..denied(0, 0, 1) }]).check().is_ok());
}

#[test]
fn a_denied_cost_of_two_is_explained_by_a_single_permit() {
    let two = Event { cost: 2, ..denied(20, 20, 80) };
    assert!(run(&[admitted(0, 0), two]).check().is_ok());
    assert!(matches!(run(&[two]).check(), Err(Fault::Unexplained { live_at_most: 0, .. })));
}

#[test]
fn catches_advice_that_is_one_nanosecond_off() {
    let advised = |wait| run(&[admitted(0, 0), admitted(10, 10), denied(20, 20, wait)]).check();
    assert!(advised(80).is_ok());
    assert!(matches!(advised(79), Err(Fault::AdvisedTooEarly { .. })));
    assert!(matches!(advised(81), Err(Fault::AdvisedTooLate { .. })));
    assert!(matches!(advised(0), Err(Fault::AdvisedTooEarly { .. })));
}

#[test]
fn a_reading_error_widens_the_possible_and_no_more() {
    let with_error = |reading_error| Run { reading_error, ..run(&[admitted(0, 0), admitted(0, 0), admitted(96, 96)]) };
    assert!(with_error(2).check().is_ok());
    assert!(matches!(with_error(1).check(), Err(Fault::OverAdmitted { .. })));
}

#[test]
fn in_order_of_claims_excuses_only_stalled_claims() {
    // One call stalls from 0 to 60; the other is granted and done meanwhile.
    let events = [admitted(0, 60), admitted(10, 15), denied(130, 131, 29)];
    let strict = run(&events);
    assert!(matches!(strict.check(), Err(Fault::Unexplained { live_at_most: 1, .. })));
    assert!(Run { expiry: Expiry::InOrderOfClaims, ..strict }.check().is_ok());
    // Also where the call that was granted and done meanwhile had begun before.
    let events = [admitted(0, 15), admitted(10, 60), denied(130, 131, 29)];
    assert!(Run { expiry: Expiry::InOrderOfClaims, ..run(&events) }.check().is_ok());
    // It began only after the other had ended: no excuse.
    let events = [admitted(16, 60), admitted(10, 15), denied(130, 131, 29)];
    let in_order = Run { expiry: Expiry::InOrderOfClaims, ..run(&events) };
    assert!(matches!(in_order.check(), Err(Fault::Unexplained { live_at_most: 1, .. })));
}

fn exactly(limit: u32, window: u64, events: Vec<Event>) -> Run {
    Run { limits: vec![Limit { permits: limit, window }], events, reading_error: 0, expiry: Expiry::EachOnItsOwn }
}

fn told_otherwise(one: &[Event], other: &[Event]) -> bool {
    one.iter().zip(other).any(|(one, other)| one.told != other.told)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// What the oracle does is right; one of its denials turned into an admission is one admission
    /// too many.
    #[test]
    fn accepts_the_oracle_and_not_one_permit_more(
        limit in 1_u32..6,
        window in 1_u64..60,
        requests in prop::collection::vec((0_u64..20, any::<u32>()), 1..150),
        flip in any::<prop::sample::Index>(),
    ) {
        let requests = costs(&requests, limit);
        let mut run = exactly(limit, window, simulate(&Quotas::log(limit, window), &requests));
        prop_assert!(run.check().is_ok(), "{:?}", run.check());
        let mut denials: Vec<&mut Event> = run.events.iter_mut().filter(|event| event.told != Told::Admitted).collect();
        if !denials.is_empty() {
            let position = flip.index(denials.len());
            denials[position].told = Told::Admitted;
            prop_assert!(matches!(run.check(), Err(Fault::OverAdmitted { .. })), "{:?}", run.check());
        }
    }

    /// Where no two requests share a tick (within one their order can't be seen from outside) the
    /// checker says exactly whether a run is that of the oracle: a limiter that allows one permit
    /// more or one less is caught at the first answer that differs.
    #[test]
    fn tells_any_other_limit_from_the_right_one(
        limit in 2_u32..6,
        window in 1_u64..60,
        requests in prop::collection::vec((1_u64..20, any::<u32>()), 1..150),
    ) {
        let requests = costs(&requests, limit - 1);
        let right = simulate(&Quotas::log(limit, window), &requests);
        for other in [limit - 1, limit + 1] {
            let events = simulate(&Quotas::log(other, window), &requests);
            let differs = told_otherwise(&events, &right);
            let verdict = exactly(limit, window, events).check();
            prop_assert_eq!(verdict.is_err(), differs, "under {}: {:?}", other, verdict);
        }
    }
}
