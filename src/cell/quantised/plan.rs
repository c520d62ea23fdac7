//! The plan of a quantised log: its numbers, and its fields in a head.

use super::history::{Block, Steps};
use crate::cell::driver::NewKeys;
#[cfg(feature = "snapshot")]
use crate::cell::export::Export;
use crate::cell::unchanged::Unchanged;
use crate::cell::words::{Head, State, TIME_ZERO};
use crate::decision::{Admission, Decision, Left, PerQuota, Status};
use crate::quota::{Kind, Quota};
use crate::slab::low_half;

/// A quantised log.
///
/// Its heads have these fields below the incarnation:
///
/// ```text
/// { era: 52 - used, used: 20 or as many as the first limit needs }
/// ```
pub(crate) struct QuantisedPlan {
    pub(super) steps: Steps,
    used_bits: u32,
}

/// A later version may have a larger limit.
const LEAST_USED_BITS: u32 = 20;

impl QuantisedPlan {
    /// The plan of a validated quota, if it is a quantised log.
    pub(in crate::cell) fn of(quota: &Quota) -> Option<Self> {
        let Kind::QuantisedLog { window, resolution } = quota.kind() else { return None };
        let nanos = |duration: core::time::Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let resolution = nanos(resolution).max(1);
        let window = nanos(window) / resolution;
        // Steps are counted from a window before the clock's origin, for imports from before a
        // restart.
        let origin = TIME_ZERO.saturating_sub(window.saturating_mul(resolution));
        let steps = Steps { limit: quota.limit(), resolution, window, origin };
        Some(Self { steps, used_bits: (u32::BITS - quota.limit().leading_zeros()).max(LEAST_USED_BITS) })
    }

    /// Whether this version can follow the first.
    pub(in crate::cell) fn can_follow(&self, first: &Self) -> Result<(), Unchanged> {
        if (self.steps.resolution, self.steps.window) != (first.steps.resolution, first.steps.window) {
            return Err(Unchanged::OtherSteps);
        }
        if self.used_bits > first.used_bits { Err(Unchanged::TooLarge) } else { Ok(()) }
    }

    /// Makes room in the head for the limits of another plan.
    pub(in crate::cell) fn make_room_for(&mut self, other: &Self) {
        self.used_bits = self.used_bits.max(other.used_bits);
    }

    /// The most permits of a step that a head has room for: no less than any limit of the key.
    #[inline]
    pub(super) fn most_used(&self) -> u32 {
        u32::MAX >> (u32::BITS - self.used_bits)
    }

    /// The permits used in the newest step.
    #[inline]
    pub(super) fn used(&self, head: Head) -> u32 {
        low_half(head.low_bits()) & self.most_used()
    }

    #[inline]
    pub(super) fn era(&self, head: Head) -> u64 {
        head.low_bits() >> self.used_bits
    }

    /// The head with more permits in the newest step. The limit has room for them.
    #[inline]
    pub(super) fn charged(&self, head: Head, cost: u32) -> Head {
        head.with_low_bits(head.low_bits() + u64::from(cost))
    }

    /// The head of the next era, with so many permits in its newest step.
    fn next(&self, head: Head, used: u32) -> Head {
        let used = u64::from(used & self.most_used());
        head.with_low_bits(((self.era(head) + 1) << self.used_bits) | used)
    }

    /// The head of an open cell in the next era, on a block with this ring parity.
    pub(super) fn opened(&self, head: Head, ring_parity: bool, used: u32) -> Head {
        self.next(Head::new(State::Open, ring_parity, head.incarnation(), 0, 0).with_low_bits(head.low_bits()), used)
    }

    /// The head after a refund in the newest step.
    pub(super) fn refunded(&self, head: Head, permits: u32) -> Head {
        self.next(head, self.used(head).saturating_sub(permits))
    }
}

impl NewKeys for QuantisedPlan {
    fn longest_window(&self) -> u64 {
        self.steps.resolution.saturating_mul(self.steps.window + 1)
    }

    fn first_end(&self, cost: u32, time: u64) -> u64 {
        if cost == 0 { time } else { self.steps.free_at(self.steps.step_of(time)) }
    }

    fn first_status(&self, _cost: u32, charged: u32, time: u64, lead: u64) -> Status {
        let limit = self.steps.limit;
        let left = if charged == 0 {
            Left::all(limit)
        } else {
            let free_at = self.steps.free_at(self.steps.step_of(time.saturating_add(lead)));
            let none = Left::none_for(limit, free_at.saturating_sub(time));
            Left { remaining: limit.saturating_sub(charged), ..none }
        };
        Status { decision: Decision::Admitted(Admission::COUNTED), left: PerQuota::one(left) }
    }

    #[cfg(feature = "snapshot")]
    fn can_have(&self, kept: &Export) -> bool {
        matches!(kept, Export::Steps(steps) if self.can_have_steps(steps))
    }

    /// One entry per step that may count beside the newest.
    fn largest_block(&self) -> usize {
        usize::try_from(self.steps.window).map_or(usize::MAX, |window| window + Block::HEADER)
    }
}
