//! Penalties for properties: those of the oracle, and the same ones of the library.

use std::ops::Range;
use std::time::Duration;

use proptest::prelude::*;
use tollgate::Penalty;

use crate::naive;

/// Some are fixed, and the blocks of others grow.
pub(crate) fn penalties<L: Strategy<Value = u64>>(
    denials: Range<usize>,
    lengths: impl Fn() -> L,
) -> impl Strategy<Value = naive::Penalty> {
    let growth = prop::option::of((1_u64..5, lengths(), lengths()));
    (denials, lengths(), lengths(), growth).prop_map(|(denials, within, blocked_for, growth)| naive::Penalty {
        denials,
        within,
        blocked_for,
        // Up to the third block or so, and now and then more.
        growth: growth
            .map(|(factor, times, quiet_for)| (factor, blocked_for * (times % 20 + 1) + times % 3, quiet_for)),
    })
}

/// The same penalty.
pub(crate) fn of_library(penalty: naive::Penalty) -> Penalty {
    let (nanos, number) = (Duration::from_nanos, |count: u64| u32::try_from(count).expect("few"));
    let denials = number(penalty.denials as u64);
    let fixed = Penalty::new(denials, nanos(penalty.within), nanos(penalty.blocked_for));
    match penalty.growth {
        Some((factor, longest, quiet_for)) => fixed.growing(number(factor), nanos(longest), nanos(quiet_for)),
        None => fixed,
    }
}
