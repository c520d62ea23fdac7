//! Random quotas, the extreme ones among them, and random requests, the edges among them.

use core::time::Duration;

use proptest::prelude::*;

use crate::quota::{Kind, Quota};
use crate::rule::any::nanos;

pub(super) const YEAR: u64 = 31_557_600_000_000_000;
const MOST: u32 = Quota::MAX_CAPACITY;
/// Where the time of a limiter's cells begins.
pub(super) const LATE_ORIGIN: u64 = (1 << 60) + (1 << 40);

fn permits() -> impl Strategy<Value = u32> {
    prop_oneof![1..20_u32, 1..2000_u32, 1..=MOST, MOST - 9..=MOST, Just(1), Just(MOST), Just(1_000_000_007)]
}

fn period() -> impl Strategy<Value = Duration> {
    let nanos = prop_oneof![
        1..40_u64,
        1..2_000_000_000_u64,
        (0..60_u32, any::<u64>()).prop_map(|(bits, noise)| (1 << bits) | (noise & ((1 << bits) - 1))),
        Just(1),
        Just(YEAR),
        Just(1_000_000_000),
        Just((1 << 31) - 1),
        Just((1 << 60) - 1),
    ];
    nanos.prop_map(Duration::from_nanos)
}

pub(super) fn quota() -> impl Strategy<Value = Quota> {
    let start_percent = proptest::option::of(0..=100_u64);
    let bucket = (permits(), permits(), period(), start_percent).prop_map(|(capacity, refill, per, percent)| {
        let bucket = Quota::token_bucket(capacity, refill, per);
        let start = |percent| u32::try_from(u64::from(capacity) * percent / 100).expect("a part of it");
        percent.map_or(bucket, |percent| bucket.starting_with(start(percent)))
    });
    let meter =
        (permits(), permits(), period()).prop_map(|(capacity, leak, per)| Quota::leaky_bucket(capacity, leak, per));
    let delay = prop_oneof![Just(Duration::ZERO), period(), (1..2000_u64).prop_map(Duration::from_nanos)];
    let queue = (permits(), period(), delay).prop_map(|(leak, per, delay)| Quota::leaky_queue(leak, per, delay));
    let phase = || proptest::option::of(prop_oneof![Just(Duration::ZERO), period()]);
    let window = (permits(), period(), phase()).prop_map(|(limit, window, phase)| {
        let plain = Quota::fixed_window(limit, window);
        phase.map_or(plain, |phase| plain.aligned(phase))
    });
    let counter = (prop_oneof![1..20_u32, 1..=65_535_u32, Just(65_535)], period(), phase());
    let counter = counter.prop_map(|(limit, window, phase)| {
        let plain = Quota::sliding_counter(limit, window);
        phase.map_or(plain, |phase| plain.aligned(phase))
    });
    prop_oneof![3 => bucket, 1 => meter, 3 => queue, 2 => window, 3 => counter]
        .prop_filter("a quota that is allowed", |quota| quota.validate().is_ok())
}

/// How long after the last request the next one comes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Gap {
    /// So many thousandths of one of the quota's own lengths, and some nanoseconds.
    Of { length: usize, thousandths: u64, jitter: i64 },
    /// When the last request that was denied was told to come again, and some nanoseconds.
    AsAdvised { jitter: i64 },
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

#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) gap: Gap,
    pub(super) cost: Cost,
    /// How much later than the decision an account that opens is published, as a gap of the first
    /// kind.
    pub(super) late: Option<(usize, u64)>,
    /// Whether to put the account back by a stride before, so that advances are frequent.
    pub(super) one_stride_ago: bool,
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
    let late = proptest::option::weighted(0.3, (0..6_usize, 0..2500_u64));
    let request = (gap, cost, late, any::<bool>()).prop_map(|(gap, cost, late, one_stride_ago)| Request {
        gap,
        cost,
        late,
        one_stride_ago,
    });
    proptest::collection::vec(request, 1..80)
}

/// The lengths that matter to a quota.
pub(super) fn lengths(quota: Quota) -> [u64; 6] {
    let whole = quota.window_ns();
    let (permit, period) = match quota.kind() {
        Kind::TokenBucket { refill: permits, per }
        | Kind::LeakyBucket { leak: permits, per }
        | Kind::LeakyQueue { leak: permits, per, .. } => (nanos(per) / u64::from(permits), nanos(per)),
        Kind::SlidingCounter { window } => (nanos(window) / u64::from(quota.limit()), nanos(window)),
        _ => (whole / u64::from(quota.limit()), whole),
    };
    let delay = if let Kind::LeakyQueue { max_delay, .. } = quota.kind() { nanos(max_delay) } else { whole / 7 };
    [1000, permit, period, delay, whole / 3, whole]
}
