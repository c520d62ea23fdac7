//! The permits left of each quota of a log.
//!
//! Every given quota is listed, even one that another implies. The ring has the stamps for it: the
//! widest quota has the longest window, so a stamp that is live under any quota is live under that
//! one.

use super::plan::{Bound, LogPlan};
use super::ring::Ring;
use crate::cell::words::Head;
use crate::decision::{Left, PerQuota};

/// A log as of one head.
#[derive(Clone, Copy)]
pub(super) struct AsOf<'a> {
    pub(super) ring: Ring<'a>,
    pub(super) head: Head,
    /// The newest stamp.
    pub(super) newest: u64,
    /// The time by which stamps are live.
    pub(super) time: u64,
    /// The clock reading, from which waits are counted.
    pub(super) reading: u64,
}

impl AsOf<'_> {
    /// The stamp so far back from the end; the newest is 1 back.
    #[inline]
    fn back(self, back: usize) -> u64 {
        self.ring.load(self.head.pos() + self.ring.len() - back).time()
    }
}

impl LogPlan {
    /// The permits left of each quota, after `granted` more permits at the time of this log. There
    /// is room for them.
    pub(super) fn left(&self, log: AsOf<'_>, granted: usize) -> PerQuota {
        let mut left = PerQuota::NONE;
        self.write_left(log, granted, &mut left);
        left
    }

    /// The same, written in place.
    #[inline(never)]
    pub(super) fn write_left(&self, log: AsOf<'_>, granted: usize, left: &mut PerQuota) {
        if self.is_alone() {
            left.set_one(self.left_of(&self.widest, log, granted));
        } else {
            self.write_left_of_each(log, granted, left);
        }
    }

    /// The permits left of the only quota if there are none until then.
    #[inline(always)]
    pub(super) fn none_left(&self, log: AsOf<'_>, until: u64) -> Left {
        let bound = &self.widest;
        let reset_after_ns = (log.newest + bound.window).saturating_sub(log.reading);
        let next_after_ns = until.saturating_sub(log.reading);
        Left { limit: bound.limit_shown(), remaining: 0, next_after_ns, reset_after_ns }
    }

    fn write_left_of_each(&self, log: AsOf<'_>, granted: usize, left: &mut PerQuota) {
        left.set(self.given().iter().map(|bound| self.left_of(bound, log, granted)));
    }

    #[inline]
    fn left_of(&self, bound: &Bound, log: AsOf<'_>, granted: usize) -> Left {
        // More may be live than the limit: it may have become less.
        let live = log.ring.live_among(log.head, self.live_in(bound, log.time), bound.limit);
        let live = (live + granted).min(bound.limit);
        if live == 0 {
            return Left::all(bound.limit_shown());
        }
        // When this stamp has expired, one less than the limit counts, or one less than now.
        let next = if live <= granted { log.time } else { log.back(live - granted) };
        let newest = if granted > 0 { log.time } else { log.newest };
        let until_end = |stamp: u64| (stamp + bound.window).saturating_sub(log.reading);
        Left {
            limit: bound.limit_shown(),
            remaining: bound.limit_shown() - shown(live),
            next_after_ns: until_end(next),
            reset_after_ns: until_end(newest),
        }
    }

    /// The permits left of each quota of a log with stamps reserved until then: none
    /// (INV-RESERVED).
    pub(super) fn left_behind(&self, log: AsOf<'_>, until: u64) -> PerQuota {
        PerQuota::of(self.given().iter().map(|bound| {
            let from_now = |time: u64| time.saturating_sub(log.reading);
            // The oldest of as many stamps as the limit, if it is live by then.
            let full = (bound.limit <= log.ring.len()).then(|| log.back(bound.limit));
            let free_at =
                full.filter(|&stamp| stamp >= self.live_in(bound, until)).map_or(0, |stamp| stamp + bound.window);
            Left {
                limit: bound.limit_shown(),
                remaining: 0,
                next_after_ns: from_now(free_at.max(until)),
                reset_after_ns: from_now(until.saturating_add(bound.window)),
            }
        }))
    }

    /// The permits left of each quota of a key with `granted` permits only, which expire together,
    /// one window after a time that is `lead` ahead.
    pub(super) fn left_of_new(&self, granted: usize, lead: u64) -> PerQuota {
        PerQuota::of(self.given().iter().map(|bound| {
            let all = Left::all(bound.limit_shown());
            if granted == 0 {
                return all;
            }
            let (remaining, wait) = (bound.limit.saturating_sub(granted), bound.window + lead);
            Left { remaining: shown(remaining), next_after_ns: wait, reset_after_ns: wait, ..all }
        }))
    }
}

/// A count that is no more than a limit.
fn shown(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
