//! The quantised log as a list of permits.

use super::*;

/// Every permit that stands. Nothing is ever dropped, and no step has a number.
#[derive(Clone, Debug)]
pub(super) struct Naive {
    pub(super) given: Given,
    /// The stamps of permits, and their number.
    pub(super) grants: Vec<(u64, u32)>,
    /// The first moment of the newest step.
    pub(super) since: u64,
}

impl Naive {
    pub(super) fn new(given: Given) -> Self {
        Self { given, grants: vec![], since: 0 }
    }

    pub(super) fn window(&self) -> u64 {
        self.given.steps * self.given.resolution
    }

    pub(super) fn live(&self, at: u64) -> u64 {
        let at = at.max(self.since);
        let live = self.grants.iter().filter(|&&(stamp, _)| at < stamp + self.window());
        live.map(|&(_, permits)| u64::from(permits)).sum()
    }

    pub(super) fn fits(&self, at: u64, cost: u32) -> bool {
        cost == 0 || self.live(at) + u64::from(cost) <= u64::from(self.given.limit)
    }

    pub(super) fn remaining(&self, at: u64) -> u32 {
        u32::try_from(u64::from(self.given.limit).saturating_sub(self.live(at))).unwrap()
    }

    /// How long after this time it is so, without other traffic.
    pub(super) fn after(&self, from: u64, is_so: impl Fn(u64) -> bool) -> u64 {
        let ends = self.grants.iter().map(|&(stamp, _)| stamp + self.window());
        let times = ends.chain([from]).filter(|&time| time >= from && is_so(time));
        times.min().expect("it is so once all have expired") - from
    }

    pub(super) fn left(&self, at: u64) -> Left {
        let remaining = self.remaining(at);
        let next_after_ns =
            if self.live(at) == 0 { 0 } else { self.after(at, |time| self.remaining(time) > remaining) };
        let reset_after_ns = self.after(at, |time| self.live(time) == 0);
        Left { limit: self.given.limit, remaining, next_after_ns, reset_after_ns }
    }

    /// Returns the stamp.
    pub(super) fn grant(&mut self, at: u64, cost: u32) -> u64 {
        let resolution = self.given.resolution;
        let stamp = TIME_ZERO + (at.max(self.since) - TIME_ZERO).next_multiple_of(resolution);
        self.grants.push((stamp, cost));
        self.since = self.since.max(stamp - resolution + 1);
        stamp
    }

    pub(super) fn refund(&mut self, at: u64, stamp: u64, cost: u32) -> u32 {
        let is_live = at.max(self.since) < stamp + self.window();
        let cell = self.grants.iter().position(|&grant| is_live && grant == (stamp, cost));
        cell.map_or(0, |cell| self.grants.remove(cell).1)
    }
}
