//! The numbers of a quantised log.
//!
//! Time is divided into *steps* of one resolution q, numbered by their ends: step k ends k * q
//! after an origin. The stamp of a permit is the end of its step: the reading, rounded **up**. A
//! reading at the end of a step belongs to it. The window is S steps long, so a permit of step k is
//! free again at the end of step k + S. After d whole steps exactly the steps after d - S count.

use crate::duration::nanos;
use crate::quota::{Kind, Quota};

/// The time of a clock that reads zero.
const TIME_ZERO: u64 = 1 << 60;

/// A quantised log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StepsPlan {
    /// The most permits that count, and the most that a request may ask for.
    pub(super) limit: u32,
    /// The length of a step, in nanoseconds.
    pub(super) resolution: u64,
    /// The length of the window, in steps.
    pub(super) window: u64,
    /// The start of step 1: a window before the clock's origin, for imports from before a restart.
    origin: u64,
}

impl StepsPlan {
    /// The plan of a validated quota, if it is a quantised log.
    pub(crate) fn of(quota: &Quota) -> Option<Self> {
        let Kind::QuantisedLog { window, resolution } = quota.kind() else { return None };
        let resolution = nanos(resolution).max(1);
        let window = nanos(window) / resolution;
        let origin = TIME_ZERO.saturating_sub(window * resolution);
        Some(Self { limit: quota.limit(), resolution, window, origin })
    }

    /// The whole steps that have passed at `time`, and the step that `time` belongs to, if `newest`
    /// is the newest step of the key.
    ///
    /// The newest step has begun by some clock. A reading from before **counts as its first
    /// moment**. So steps never decrease, and what had expired when a step began counts at no later
    /// decision.
    #[inline]
    pub(super) fn around(&self, newest: u64, time: u64) -> (u64, u64) {
        let elapsed = time.saturating_sub(self.origin);
        // A step of one nanosecond is over when it begins.
        let begun = newest.saturating_sub(u64::from(self.resolution > 1));
        let until_end = newest.wrapping_mul(self.resolution).wrapping_sub(elapsed);
        if until_end < self.resolution {
            // Within the newest step there is no division.
            return (if until_end == 0 { newest } else { begun }, newest);
        }
        let passed = elapsed / self.resolution;
        let step = passed + u64::from(passed * self.resolution < elapsed);
        (passed.max(begun), step.max(newest))
    }

    /// The step that a time belongs to.
    #[cfg(any(feature = "snapshot", test))]
    pub(super) fn step_of(&self, time: u64) -> u64 {
        time.saturating_sub(self.origin).div_ceil(self.resolution)
    }

    /// The stamp of a step's permits.
    pub(super) fn end_of(&self, step: u64) -> u64 {
        self.origin.saturating_add(step.saturating_mul(self.resolution))
    }

    /// The time at which the permits of a step are free again.
    #[inline]
    pub(super) fn free_at(&self, step: u64) -> u64 {
        self.end_of(step.saturating_add(self.window))
    }
}
