//! Windows of the calendar, through the limiter and against the naive oracle, around changes of
//! daylight saving: the same operations at the same times must get the same answers, to the nanosecond.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{Calendar, Limiter, Quota, ReserveError, Zone};
use tollgate_kit::clocks::AnchoredClock;
use tollgate_kit::oracle::calendar::{Naive, starts};

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3600 * SECOND;
const DAY: u64 = 24 * HOUR;

/// Zones, and a day near a change of their clocks, in seconds since 1970.
const CHANGES: [(&str, u64); 9] = [
    // Days of 23 and 25 hours.
    ("Europe/Berlin", 1_711_846_800),
    ("Europe/Berlin", 1_729_990_800),
    ("America/New_York", 1_710_054_000),
    // At midnight, and a minute after it.
    ("America/Sao_Paulo", 1_541_300_400),
    ("America/St_Johns", 1_289_097_060),
    // By half an hour; at +12:45.
    ("Australia/Lord_Howe", 1_712_415_600),
    ("Pacific/Chatham", 1_712_412_000),
    // The 30 December 2011 was skipped.
    ("Pacific/Apia", 1_325_239_200),
    ("Asia/Kathmandu", 1_700_000_000),
];

#[derive(Debug, Clone, Copy)]
enum Op {
    /// Goes on by so much, to the next boundary, or to just before it.
    Advance(u64),
    Boundary,
    BeforeBoundary,
    Back(u64),
    Ask(u32),
    Peek(u32),
    Reserve(u32),
    /// Gives back the reservation of this place, counted from the last.
    Refund(usize),
    Change(u32),
}

fn ops(goes_back: bool) -> impl Strategy<Value = Vec<Op>> {
    let steps = || prop_oneof![0..3_u64, 0..HOUR, 0..3 * DAY, 0..40 * DAY];
    let cost = || prop_oneof![4 => 1..3_u32, 1 => 1..9_u32];
    let special = if goes_back {
        steps().prop_map(Op::Back).boxed()
    } else {
        let change = (4..9_u32).prop_map(Op::Change);
        prop_oneof![2 => cost().prop_map(Op::Reserve), 2 => (0..3_usize).prop_map(Op::Refund), 1 => change].boxed()
    };
    let op = prop_oneof![
        3 => steps().prop_map(Op::Advance),
        2 => Just(Op::Boundary),
        1 => Just(Op::BeforeBoundary),
        8 => cost().prop_map(Op::Ask),
        1 => cost().prop_map(Op::Peek),
        4 => special,
    ];
    prop::collection::vec(op, 1..60)
}

fn check((name, around): (&str, u64), per: Calendar, limit: u32, days: u64, ops: &[Op]) -> Result<(), TestCaseError> {
    let zone = Zone::named(name).unwrap();
    let starts = starts(per.name(), name);
    let end_of_list = *starts.last().unwrap() - 40 * DAY;
    let mut now = around * SECOND - days * DAY;
    let clock = AnchoredClock::made_at(now);
    let quota = |limit| Quota::calendar(limit, per, zone);
    let limiter = Limiter::<u32>::builder(quota(limit)).clock(clock.clone()).build().unwrap();
    let (origin, mut naive, mut receipts, mut limit) = (now, Naive::new(limit, starts.clone()), vec![], limit);
    for &op in ops {
        let next = starts[starts.partition_point(|start| *start <= now)];
        now = match op {
            Op::Advance(by) => now + by,
            Op::Boundary => next,
            Op::BeforeBoundary => next - 1,
            // A clock reads nothing before its origin.
            Op::Back(by) => now.saturating_sub(by).max(origin),
            _ => now,
        }
        .min(end_of_list);
        clock.set(now);
        match op {
            Op::Ask(cost) | Op::Peek(cost) if cost <= limit => {
                let expected = naive.wait(now, cost);
                let (wait, remaining) = if matches!(op, Op::Peek(_)) {
                    let status = limiter.peek_n(1, cost).unwrap();
                    (status.retry_after(), None)
                } else {
                    let status = limiter.try_acquire_n_status(1, cost).unwrap();
                    if expected.is_none() {
                        naive.grant(now, cost);
                    }
                    (status.retry_after(), Some(status.remaining()))
                };
                prop_assert_eq!(wait, expected.map(Duration::from_nanos), "{:?} at {}", op, now);
                prop_assert!(remaining.is_none_or(|remaining| remaining == naive.remaining(now)));
            }
            Op::Reserve(cost) if cost <= limit => match limiter.reserve(1, cost, Duration::ZERO) {
                Ok(reservation) => {
                    prop_assert_eq!(naive.wait(now, cost), None);
                    naive.grant(now, cost);
                    receipts.push((reservation.commit(), (now, cost)));
                }
                Err(ReserveError::Denied(denial)) => {
                    prop_assert_eq!(Some(denial.retry_after()), naive.wait(now, cost).map(Duration::from_nanos));
                }
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            },
            Op::Refund(place) if place < receipts.len() => {
                let (receipt, granted) = receipts.remove(receipts.len() - 1 - place);
                prop_assert_eq!(limiter.refund(receipt).unwrap(), naive.refund(now, granted), "at {}", now);
            }
            // No less than what may have been granted.
            Op::Change(other) if other >= limit => {
                limiter.set_quotas(&[quota(other)]).unwrap();
                naive.set_limit(other);
                limit = other;
            }
            _ => {}
        }
        let (peek, remaining) = (limiter.peek(1), naive.remaining(now));
        prop_assert_eq!(peek.remaining(), remaining, "after {:?} at {}", op, now);
    }
    Ok(())
}

fn calendars() -> impl Strategy<Value = Calendar> {
    prop::sample::select(Calendar::ALL.to_vec())
}

fn changes() -> impl Strategy<Value = (&'static str, u64)> {
    prop::sample::select(CHANGES.to_vec())
}

proptest! {
    #![proptest_config(crate::strategies::cases(400))]

    #[test]
    fn windows_of_the_calendar(change in changes(), per in calendars(), limit in 1..6_u32, days in 0..40_u64, ops in ops(false)) {
        check(change, per, limit, days, &ops)?;
    }

    #[test]
    fn windows_of_the_calendar_by_a_clock_that_goes_back(
        change in changes(),
        per in calendars(),
        limit in 1..6_u32,
        days in 0..40_u64,
        ops in ops(true),
    ) {
        check(change, per, limit, days, &ops)?;
    }
}
