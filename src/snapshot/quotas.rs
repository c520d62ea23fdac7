//! Quotas in a snapshot, as numbers.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::nanos;
use crate::quota::{Algorithm, Kind, Quota};

/// A quota as numbers: its kind, limit and window, permits and period, longest delay, start and
/// phase (each plus one).
pub(super) type Numbers = [u64; 8];

/// The numbers that a restored limiter must have. The phase may be another: the clock's origin is
/// another, too. But it tells whether a fixed window is aligned; a sliding counter always is.
pub(super) fn compared([kind, limit, window, permits, per, most, start, phase]: Numbers) -> Numbers {
    let has_phase = kind == number(Algorithm::FixedWindow) && phase > 0;
    [kind, limit, window, permits, per, most, start, has_phase.into()]
}

pub(super) fn numbers(quota: &Quota) -> Numbers {
    let (permits, per, most) = match quota.kind() {
        Kind::Log | Kind::FixedWindow => (0, Duration::ZERO, Duration::ZERO),
        Kind::TokenBucket { refill: permits, per } | Kind::LeakyBucket { leak: permits, per } => {
            (permits, per, Duration::ZERO)
        }
        Kind::LeakyQueue { leak, per, max_delay } => (leak, per, max_delay),
        Kind::WarmUp { rate, per, warm_up } => (rate, per, warm_up),
        Kind::SlidingCounter { window } => (0, window, Duration::ZERO),
        Kind::QuantisedLog { window, resolution } => (0, window, resolution),
    };
    let start = quota.start().map_or(0, |start| u64::from(start) + 1);
    let phase = quota.phase().map_or(0, |phase| phase_of(quota, phase).saturating_add(1));
    let (limit, window) = (quota.limit().into(), nanos(quota.window()));
    [number(quota.algorithm()), limit, window, permits.into(), nanos(per), nanos(most), start, phase]
}

/// The phase in nanoseconds. If that is too large, the one less than a window that means the same.
fn phase_of(quota: &Quota, phase: Duration) -> u64 {
    let window = if let Kind::SlidingCounter { window } = quota.kind() { window } else { quota.window() };
    let phase = phase.as_nanos();
    let rest = || phase.checked_rem(window.as_nanos()).and_then(|rest| u64::try_from(rest).ok());
    u64::try_from(phase).ok().filter(|phase| *phase < u64::MAX).or_else(rest).unwrap_or(0)
}

/// The number that stands for the algorithm. It must never change.
pub(super) const fn number(algorithm: Algorithm) -> u64 {
    algorithm as u64 + 1
}

/// A whole quota of a single key.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct OwnQuota {
    pub(super) numbers: Numbers,
    pub(super) counts_refused: bool,
    pub(super) name: Option<String>,
}

impl OwnQuota {
    pub(super) fn of(quota: &Quota) -> Self {
        Self {
            numbers: numbers(quota),
            counts_refused: quota.is_counting_refused(),
            name: quota.name().map(str::to_owned),
        }
    }

    /// The quota, to be validated. `None` if no constructor makes these numbers.
    pub(super) fn quota(&self) -> Option<Quota> {
        let [kind, limit, window, permits, per, most, start, phase] = self.numbers;
        let small = |number| u32::try_from(number).ok();
        let (limit, permits) = (small(limit)?, small(permits)?);
        let [window, per, most] = [window, per, most].map(Duration::from_nanos);
        let mut quota = match kind {
            1 => Quota::new(limit, window),
            2 => Quota::token_bucket(limit, permits, per),
            3 => Quota::leaky_bucket(limit, permits, per),
            4 => Quota::leaky_queue(permits, per, most),
            5 => Quota::fixed_window(limit, window),
            6 => Quota::sliding_counter(limit, per),
            7 => Quota::quantised_log(limit, per, most),
            8 => Quota::warm_up(limit, permits, per, most),
            _ => return None,
        };
        if let Some(start) = start.checked_sub(1) {
            quota = quota.starting_with(small(start)?);
        }
        if let Some(phase) = phase.checked_sub(1) {
            quota = quota.aligned(Duration::from_nanos(phase));
        }
        if self.counts_refused {
            quota = quota.counting_refused();
        }
        if let Some(name) = &self.name {
            quota = quota.named(name);
        }
        (numbers(&quota) == self.numbers).then_some(quota)
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests;
