//! A rate as a fraction in lowest terms, with exact conversions between permits and nanoseconds.

use super::account::saturated;

/// `permits` every `period` nanoseconds, without a common divisor: at most 2^30 and 2^60.
///
/// Flow is counted in units of 1/period of a permit, so that no comparison divides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rate {
    permits: u64,
    period: u64,
}

/// How far an anchor moves at once: `permits` flow in exactly `ns`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stride {
    pub(crate) permits: u64,
    pub(crate) ns: u64,
}

/// The fewest permits of a stride. This crate's own tests want accounts that advance often.
const SHORTEST: u64 = if cfg!(test) { 1 << 10 } else { 1 << 18 };

impl Rate {
    pub(crate) fn new(permits: u32, period: u64) -> Self {
        let divisor = greatest_common_divisor(permits.into(), period).max(1);
        Self { permits: u64::from(permits) / divisor, period: period / divisor }
    }

    /// The flow in so many nanoseconds.
    #[inline]
    pub(crate) fn flow(self, ns: u64) -> u128 {
        u128::from(ns) * u128::from(self.permits)
    }

    /// So many permits, in the unit of [`flow`](Self::flow).
    #[inline]
    pub(crate) fn volume(self, permits: u64) -> u128 {
        u128::from(permits) * u128::from(self.period)
    }

    /// The permits that hold so much, rounded up.
    pub(crate) fn permits_of(self, volume: u128) -> u64 {
        quotient_up(volume, self.period.max(1))
    }

    /// The nanoseconds after which so many permits have flowed, and not one sooner.
    pub(crate) fn time_for(self, permits: u64) -> u64 {
        quotient_up(self.volume(permits), self.permits.max(1))
    }

    /// The most nanoseconds in which no more than so many permits flow.
    pub(crate) fn time_within(self, permits: u64) -> u64 {
        saturated(self.volume(permits) / u128::from(self.permits.max(1)))
    }

    /// A stride of whole nanoseconds that is at least one limit, and leaves room in 32 bits for
    /// twice the limit.
    ///
    /// Long strides are good for receipts, which outlive one advance. The bits that `used` does not
    /// need tell eras apart, but a head has at least 20 for it. So a stride is at least 2^18
    /// permits, and takes no more bits than a stride of one limit.
    ///
    /// With a limit and a rate of at most 2^30 it is less than their sum, 2^31. If `ns` does not
    /// fit in 64 bits, that much time can't pass, and the stride is never taken.
    pub(crate) fn stride(self, limit: u32) -> Stride {
        let repeats = u64::from(limit).max(SHORTEST).div_ceil(self.permits.max(1));
        Stride { permits: repeats.saturating_mul(self.permits), ns: repeats.saturating_mul(self.period) }
    }
}

/// Rounded up. A volume of 64 bits, the usual case, takes one division.
#[inline]
fn quotient_up(volume: u128, by: u64) -> u64 {
    match u64::try_from(volume) {
        Ok(volume) => volume.div_ceil(by),
        Err(_) => saturated(volume.div_ceil(by.into())),
    }
}

/// Euclid's algorithm.
fn greatest_common_divisor(mut greater: u64, mut less: u64) -> u64 {
    while less != 0 {
        (greater, less) = (less, greater % less);
    }
    greater
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MOST: u32 = 1 << 30;

    #[test]
    fn a_rate_is_kept_in_lowest_terms() {
        assert_eq!(Rate::new(60, 60_000_000_000), Rate { permits: 1, period: 1_000_000_000 });
        assert_eq!(Rate::new(3, 1_000_000_000), Rate { permits: 3, period: 1_000_000_000 });
        assert_eq!(Rate::new(MOST, 1 << 40), Rate { permits: 1, period: 1 << 10 });
        assert_eq!(Rate::new(MOST, 1), Rate { permits: MOST.into(), period: 1 });
    }

    #[test]
    fn times_are_rounded_up() {
        let thirds = Rate::new(3, 10);
        assert_eq!([0, 1, 2, 3, 4].map(|permits| thirds.time_for(permits)), [0, 4, 7, 10, 14]);
        assert_eq!([0, 1, 10, 11].map(|volume| thirds.permits_of(volume)), [0, 1, 1, 2]);
    }

    proptest! {
        #[test]
        fn a_stride_is_exact_and_leaves_room_for_the_limit(
            limit in prop_oneof![1..=MOST, Just(1), Just(MOST), MOST - 9..=MOST],
            permits in prop_oneof![1..=MOST, Just(1), Just(MOST), MOST - 9..=MOST],
            period in prop_oneof![1..1_u64 << 60, 1..1000_u64, Just((1 << 60) - 1)],
        ) {
            let rate = Rate::new(permits, period);
            let stride = rate.stride(limit);
            prop_assert!(stride.permits >= u64::from(limit));
            prop_assert!(stride.permits + 2 * u64::from(limit) <= 1 << 32);
            if stride.ns < u64::MAX {
                prop_assert_eq!(rate.flow(stride.ns), rate.volume(stride.permits));
                prop_assert_eq!(u128::from(stride.ns) * u128::from(permits), u128::from(stride.permits) * u128::from(period));
            }
        }
    }
}
