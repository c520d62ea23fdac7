//! A rate as a fraction in lowest terms, and times in units that make it exact.

/// The longest time for which an account may owe permits: 73 years, two of the longest fillings.
const LONGEST: u64 = 1 << 61;

/// `permits` every `period` nanoseconds, without a common divisor: at most 2^30 and 2^60.
///
/// Times are counted in *ticks*: a nanosecond has `permits` ticks, and a permit takes `period`
/// ticks. Both are whole, so no comparison divides. A time below 2^63 ns takes at most 93 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rate {
    permits: u64,
    period: u64,
}

impl Rate {
    pub(super) fn new(permits: u32, period: u64) -> Self {
        let divisor = greatest_common_divisor(permits.into(), period).max(1);
        Self { permits: (u64::from(permits) / divisor).max(1), period: (period / divisor).max(1) }
    }

    /// The bits that the ticks of a time below 2^63 ns may take.
    pub(super) fn time_bits(self) -> u32 {
        u64::BITS - 1 + (u64::BITS - (self.permits - 1).leading_zeros())
    }

    /// A time in ticks.
    #[inline]
    pub(super) fn ticks(self, ns: u64) -> u128 {
        u128::from(ns) * u128::from(self.permits)
    }

    /// The latest time in ticks that a state may name, as of `now`: [`LONGEST`] later.
    pub(super) fn latest(self, now: u64) -> u128 {
        self.ticks(now) + self.ticks(LONGEST)
    }

    /// The nanoseconds from `now` until a time in ticks, rounded up; zero if it has passed.
    #[inline]
    pub(super) fn ns_until(self, ticks: u128, now: u64) -> u64 {
        self.ns_up(ticks.saturating_sub(self.ticks(now)))
    }

    /// A time in ticks moved by so many nanoseconds: at least one, and at most `most`.
    #[cfg(feature = "snapshot")]
    pub(super) fn moved(self, ticks: u128, by: i128, most: u128) -> u128 {
        ticks.saturating_add_signed(by * i128::from(self.permits)).clamp(1, most)
    }

    /// The ticks in which so many permits flow.
    #[inline]
    pub(super) fn ticks_of(self, permits: u32) -> u128 {
        u128::from(permits) * u128::from(self.period)
    }

    /// A time in nanoseconds, rounded up.
    #[inline]
    pub(super) fn ns_up(self, ticks: u128) -> u64 {
        if ticks == 0 { 0 } else { quotient_up(ticks, self.permits) }
    }

    /// A time in nanoseconds, rounded down.
    pub(super) fn ns_down(self, ticks: u128) -> u64 {
        u64::try_from(ticks / u128::from(self.permits)).unwrap_or(u64::MAX)
    }

    /// The permits that flow in so many ticks, rounded up.
    pub(super) fn permits_up(self, ticks: u128) -> u64 {
        if ticks == 0 { 0 } else { quotient_up(ticks, self.period) }
    }

    /// A time in the ticks of another rate, in those of this one, rounded up.
    pub(super) fn same_time(self, other: Self, ticks: u128) -> u128 {
        scaled_up(ticks, self.permits, other.permits)
    }

    /// The ticks in which as many permits flow as in so many ticks of another rate, rounded up.
    pub(super) fn same_permits(self, other: Self, ticks: u128) -> u128 {
        scaled_up(ticks, self.period, other.period)
    }
}

/// Rounded up. A number of 64 bits, the usual case, takes one division.
#[inline(always)]
fn quotient_up(number: u128, by: u64) -> u64 {
    match u64::try_from(number) {
        Ok(number) if by == 1 => number,
        Ok(number) => number.div_ceil(by),
        Err(_) => u64::try_from(number.div_ceil(by.into())).unwrap_or(u64::MAX),
    }
}

/// `number * times / by`, rounded up. The whole part is multiplied apart, so the products fit if
/// the result does.
fn scaled_up(number: u128, times: u64, by: u64) -> u128 {
    let (times, by) = (u128::from(times), u128::from(by));
    (number / by).saturating_mul(times).saturating_add((number % by * times).div_ceil(by))
}

/// Euclid's algorithm.
fn greatest_common_divisor(mut greater: u64, mut less: u64) -> u64 {
    while less != 0 {
        (greater, less) = (less, greater % less);
    }
    greater
}
