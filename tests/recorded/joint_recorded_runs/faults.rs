//! Rounds with a fault, which the check has to notice.

use super::*;

/// A round of one thread on a clock that is moved on between calls, so that every stamp is known.
fn by_hand(mut each: impl FnMut(&JointLimiter<[u32], MockClock>, Keys, u32, usize) -> Call) -> Round {
    let clock = MockClock::new();
    let limiter = limiter(clock.clone());
    let mut numbers = Numbers(7);
    let calls = (0..3000).map(|number| {
        clock.advance(Duration::from_nanos(u64::from(numbers.below(1000))));
        let (keys, cost) = (numbers.keys(0), 1 + numbers.below(COSTS));
        each(&limiter, keys, cost, number)
    });
    let calls = calls.collect();
    Round { calls, peeks: peek(&limiter, 0), reading_error: 0 }
}

fn right() -> Round {
    by_hand(|limiter, keys, cost, _| acquire(limiter, keys, cost))
}

#[test]
fn a_round_that_is_right_has_no_trouble() {
    let (permits, denials) = right().check().expect("nothing is wrong");
    assert!(permits > 1000 && denials > 1000, "{permits} permits, {denials} denials");
}

/// Whether the call asks in that dimension only.
fn is_alone(call: &Call, dimension: usize) -> bool {
    (0..DIMENSIONS).all(|other| call.keys[other].is_some() == (other == dimension))
}

#[test]
fn one_admission_too_many_is_noticed_in_each_dimension() {
    for dimension in 0..DIMENSIONS {
        let mut round = right();
        let denied = round.calls.iter_mut().find(|call| is_alone(call, dimension) && call.denied.is_some());
        denied.expect("each dimension denies").denied = None;
        let trouble = round.check().expect_err("one too many");
        assert!(matches!(trouble, Trouble::Fault(at, _, Fault::OverAdmitted { .. }) if at == dimension), "{trouble:?}");
    }
}

#[test]
fn a_denial_that_nothing_explains_is_noticed() {
    for dimension in 0..DIMENSIONS {
        let mut round = right();
        let by = u8::try_from(dimension).expect("few");
        let denied = Some(Denied { retry_after: 1, dimension: by, quota: 0, violated: 1 << dimension });
        // Of a key that nobody has asked for.
        let mut keys = [None; DIMENSIONS];
        keys[dimension] = Some(9);
        let (before, after) = (round.calls[100].before, round.calls[100].after);
        round.calls.push(Call { keys, cost: 1, before, after, denied });
        let trouble = round.check().expect_err("nothing was in the way");
        assert!(matches!(trouble, Trouble::Fault(at, 0, Fault::Unexplained { .. }) if at == dimension), "{trouble:?}");
    }
}

#[test]
fn a_denial_that_names_a_dimension_too_many_is_noticed() {
    for dimension in 0..DIMENSIONS {
        let mut round = right();
        let others =
            |call: &&mut Call| call.keys[dimension].is_some() && call.denied.is_some() && !call.violates(dimension);
        let call = round.calls.iter_mut().find(others).expect("there are some");
        call.denied.iter_mut().for_each(|by| by.violated |= 1 << dimension);
        let trouble = round.check().expect_err("that dimension was not in the way");
        assert!(matches!(trouble, Trouble::NotInTheWay(at, _) if at == dimension), "{trouble:?}");
    }
    let mut round = right();
    let call =
        round.calls.iter_mut().find(|call| call.keys[1].is_none() && call.denied.is_some()).expect("there are some");
    call.denied.iter_mut().for_each(|by| by.violated |= 2);
    assert!(matches!(round.check(), Err(Trouble::NotAsked(_))));
}

/// Near the end of the round, so that what is wrong is still live when it is checked.
fn is_late(number: usize) -> bool {
    number >= 2500
}

#[test]
fn a_request_that_is_charged_in_all_dimensions_but_one_is_noticed() {
    for dimension in 0..DIMENSIONS {
        let mut planted = false;
        let round = by_hand(|limiter, keys, cost, number| {
            let mut charged = keys;
            let fits = limiter.peek_n(keys.each_ref().map(Option::as_ref), cost).is_ok_and(|it| it.is_admitted());
            if is_late(number) && fits && keys[dimension].is_some() && !planted {
                charged[dimension] = None;
                planted = true;
            }
            Call { keys, ..acquire(limiter, charged, cost) }
        });
        assert!(planted);
        round.check().expect_err("one dimension was not charged");
    }
}

#[test]
fn a_request_that_is_denied_and_charged_in_one_dimension_is_noticed() {
    for dimension in 0..DIMENSIONS {
        let mut planted = false;
        let round = by_hand(|limiter, keys, cost, number| {
            let call = acquire(limiter, keys, cost);
            let mut charged = [None; DIMENSIONS];
            charged[dimension] = keys[dimension];
            if is_late(number) && call.denied.is_some() && charged[dimension].is_some() && !planted {
                planted = acquire(limiter, charged, 1).denied.is_none();
            }
            call
        });
        assert!(planted);
        round.check().expect_err("one dimension was charged");
    }
}
