//! Random meters, the extreme ones among them, and random requests, the edges among them.

use core::time::Duration;

use proptest::prelude::*;

use super::any::AnyAccount;
use crate::quota::Quota;
use crate::state::account::windows::Counter;
use tollgate_kit::oracle::meter::Meter;

/// No reading is later.
pub(super) const END_OF_TIME: u64 = (1 << 62) - (1 << 34) - 1;
/// No reading is earlier.
pub(super) const START_OF_TIME: u64 = 1 << 60;
const YEAR: u64 = 31_557_600_000_000_000;
const MOST: u32 = 1 << 30;

pub(super) fn permits() -> impl Strategy<Value = u32> {
    prop_oneof![1..20_u32, 1..2000_u32, 1..=MOST, MOST - 9..=MOST, Just(1), Just(MOST), Just(1_000_000_007)]
}

pub(super) fn period() -> impl Strategy<Value = u64> {
    prop_oneof![
        1..40_u64,
        1..2_000_000_000_u64,
        (0..60_u32, any::<u64>()).prop_map(|(bits, noise)| (1 << bits) | (noise & ((1 << bits) - 1))),
        Just(1),
        Just(YEAR),
        Just(1_000_000_000),
        Just((1 << 31) - 1),
        Just((1 << 60) - 1),
    ]
}

pub(super) fn origin() -> impl Strategy<Value = u64> {
    prop_oneof![Just(START_OF_TIME + (1 << 40)), Just(END_OF_TIME - (1 << 59)), START_OF_TIME..START_OF_TIME << 1]
}

/// A meter that is allowed.
pub(super) fn meter() -> impl Strategy<Value = Meter> {
    let phase = || prop_oneof![Just(0), period()].prop_map(u128::from);
    let bucket = (permits(), permits(), period(), prop_oneof![Just(100), 0..=100_u64]);
    let bucket = bucket.prop_map(|(capacity, refill, per, percent)| {
        let start = u32::try_from(u64::from(capacity) * percent / 100).expect("a part of it");
        Meter::TokenBucket { capacity, refill, per, start }
    });
    let leaky =
        (permits(), permits(), period()).prop_map(|(capacity, leak, per)| Meter::LeakyBucket { capacity, leak, per });
    let delay = prop_oneof![Just(0), period(), 1..2000_u64];
    let queue =
        (permits(), period(), delay).prop_map(|(leak, per, max_delay)| Meter::LeakyQueue { leak, per, max_delay });
    let window = (permits(), period(), proptest::option::of(phase()))
        .prop_map(|(limit, window, phase)| Meter::FixedWindow { limit, window, phase });
    let counter = (permits(), period(), phase()).prop_map(|(limit, window, phase)| Meter::SlidingCounter {
        limit: limit.min(Quota::MAX_COUNTER_LIMIT),
        window,
        phase,
    });
    prop_oneof![3 => bucket, 1 => leaky, 3 => queue, 2 => window, 3 => counter]
        .prop_filter("allowed", |&meter| is_allowed(meter))
}

/// As [`Quota::validate`].
fn is_allowed(meter: Meter) -> bool {
    match meter {
        Meter::SlidingCounter { window, .. } => window < 1 << 59,
        _ => quota(meter).is_some(),
    }
}

/// The quota that has the meter, if there is one.
pub(super) fn quota(meter: Meter) -> Option<Quota> {
    let quota = tollgate_kit::quota_of!(Quota, meter, Duration::from_nanos);
    quota.validate().is_ok().then_some(quota)
}

pub(super) fn account(meter: Meter, origin: u64) -> AnyAccount {
    match (quota(meter), meter) {
        (Some(quota), _) => AnyAccount::of(quota, origin).expect("an account"),
        (None, Meter::SlidingCounter { limit, window, phase }) => {
            let boundary = origin + u64::try_from(phase).expect("short");
            AnyAccount::Counter(Counter::new(limit, window, Some(boundary)))
        }
        (None, _) => unreachable!("not allowed: {meter:?}"),
    }
}

/// The lengths that matter to a meter: the last is the longest time for which a charge matters.
pub(super) fn lengths(meter: Meter) -> [u64; 6] {
    let (permits, period, whole, delay) = match meter {
        Meter::TokenBucket { capacity, refill: permits, per, .. }
        | Meter::LeakyBucket { capacity, leak: permits, per } => {
            (permits, per, (u128::from(capacity) * u128::from(per)).div_ceil(permits.into()), per / 7)
        }
        Meter::LeakyQueue { leak, per, max_delay } => {
            let until_empty = (u128::from(meter.limit()) * u128::from(per)).div_ceil(leak.into());
            (leak, per, until_empty + u128::from(max_delay), max_delay)
        }
        Meter::FixedWindow { limit, window, .. } => (limit, window, window.into(), window / 7),
        Meter::SlidingCounter { limit, window, .. } => (limit, window, 2 * u128::from(window), window / 7),
        Meter::QuantisedLog { .. } => unreachable!("no account"),
    };
    let whole = u64::try_from(whole).expect("allowed");
    [1000, period / u64::from(permits), period, delay, whole / 3, whole]
}

/// How long after the last request the next one comes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Gap {
    /// So many thousandths of one of the meter's own lengths, and some nanoseconds.
    Of { length: usize, thousandths: u64, jitter: i64 },
    /// When the last request that was denied was told to come again, and some nanoseconds.
    AsAdvised { jitter: i64 },
}

impl Gap {
    pub(super) fn after(self, now: u64, lengths: [u64; 6], advised: u64) -> u64 {
        let (length, jitter) = match self {
            Self::Of { length, thousandths, jitter } => {
                (u128::from(lengths[length]) * u128::from(thousandths) / 1000, jitter)
            }
            Self::AsAdvised { jitter } => (advised.into(), jitter),
        };
        let length = u64::try_from(length).expect("short enough");
        now.saturating_add(length).saturating_add_signed(jitter).max(now)
    }
}

/// How much a request asks for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cost {
    Exactly(u32),
    Limit,
    /// So many thousandths of the limit.
    PartOfLimit(u32),
    /// What remains, and one more.
    Remaining,
    PastRemaining,
}

impl Cost {
    pub(super) fn permits(self, limit: u32, remaining: u32) -> u32 {
        let cost = match self {
            Self::Exactly(cost) => cost,
            Self::Limit => limit,
            Self::PartOfLimit(part) => u32::try_from(u64::from(limit) * u64::from(part) / 1000).expect("a part"),
            Self::Remaining => remaining,
            Self::PastRemaining => remaining + 1,
        };
        cost.clamp(1, limit)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) gap: Gap,
    pub(super) cost: Cost,
}

pub(super) fn requests() -> impl Strategy<Value = Vec<Request>> {
    let gap = prop_oneof![
        3 => (0..6_usize, prop_oneof![0..2500_u64, Just(0), Just(1000)], -2..=2_i64)
            .prop_map(|(length, thousandths, jitter)| Gap::Of { length, thousandths, jitter }),
        2 => (-1..=1_i64).prop_map(|jitter| Gap::AsAdvised { jitter }),
    ];
    let cost = prop_oneof![
        (1..4_u32).prop_map(Cost::Exactly),
        Just(Cost::Limit),
        (0..=1000_u32).prop_map(Cost::PartOfLimit),
        Just(Cost::Remaining),
        Just(Cost::PastRemaining),
    ];
    proptest::collection::vec((gap, cost).prop_map(|(gap, cost)| Request { gap, cost }), 1..80)
}
