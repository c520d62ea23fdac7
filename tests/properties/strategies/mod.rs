//! Random operations, for the tests that compare a limiter with an oracle.
#![allow(dead_code, reason = "every test crate that includes this file uses a different part of it")]

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use tollgate_kit::driver::{Cost, Op, Step};

const HOUR: u64 = 3_600_000_000_000;
pub(crate) const TWENTY_YEARS: u64 = 20 * 365 * 24 * HOUR;

/// Where the clock starts: zero is a reading like any other.
pub(crate) fn starts() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), 0..TWENTY_YEARS]
}

pub(crate) fn costs() -> impl Strategy<Value = Cost> {
    prop_oneof![
        1 => Just(Cost::Zero),
        6 => Just(Cost::One),
        6 => any::<u32>().prop_map(Cost::Some),
        2 => Just(Cost::Limit),
        1 => Just(Cost::PastLimit),
    ]
}

pub(crate) fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Nothing),
        Just(Step::OneNanosecond),
        Just(Step::WindowLessOne),
        Just(Step::Window),
        Just(Step::WindowAndOne),
        any::<u16>().prop_map(Step::Part),
        (0_u16..2000).prop_map(Step::Part),
    ]
}

pub(crate) fn ops(keys: u32) -> impl Strategy<Value = Op> {
    let key = move || 0..keys;
    prop_oneof![
        12 => key().prop_map(|key| Op::AcquireOne { key }),
        12 => (key(), costs()).prop_map(|(key, cost)| Op::Acquire { key, cost }),
        8 => (key(), costs()).prop_map(|(key, cost)| Op::Status { key, cost }),
        3 => key().prop_map(|key| Op::Peek { key }),
        3 => (key(), costs()).prop_map(|(key, cost)| Op::PeekN { key, cost }),
        1 => key().prop_map(|key| Op::Forget { key }),
        8 => steps().prop_map(Op::Advance),
        4 => (key(), costs(), -1_i8..=1).prop_map(|(key, cost, off_by)| Op::AdvanceToRetry { key, cost, off_by }),
    ]
}

/// Mostly not at all.
pub(crate) fn back() -> impl Strategy<Value = Op> {
    prop_oneof![8 => Just(Op::Back(0)), 1 => any::<u16>().prop_map(Op::Back), 1 => Just(Op::BackToZero)]
}

/// With the rare and the nasty: everything forgotten, leaps of up to twenty years, and clocks that
/// go back.
pub(crate) fn nasty_ops(keys: u32) -> impl Strategy<Value = Op> {
    prop_oneof![
        40 => ops(keys),
        1 => Just(Op::Clear),
        1 => (0..TWENTY_YEARS).prop_map(Op::Leap),
        2 => any::<u16>().prop_map(Op::Back),
        1 => (0_u16..200).prop_map(Op::Back),
        1 => Just(Op::BackToZero),
    ]
}

pub(crate) fn cases(cases: u32) -> ProptestConfig {
    // Failures are kept next to this file, so that they are tried first from then on.
    let failure_persistence = Some(Box::new(FileFailurePersistence::WithSource("regressions")) as Box<_>);
    ProptestConfig { cases, failure_persistence, ..ProptestConfig::default() }
}
