//! Logs in which refused requests count, too.
//!
//! A refused request leaves its stamps behind those that are live. The ring is replaced by one with
//! all of these stamps (INV-RESIZE). It holds the newest requests, admitted or not, and at most 2M,
//! where M is the largest limit of all versions so far.
//!
//! # Why 2M stamps are enough (INV-REFUSED)
//!
//! A decision under a limit of at most M reads the newest M live stamps. They are the same as in a
//! ring that drops nothing:
//!
//! 1. Dropped stamps are older than all in the ring, so they expire first. They matter while live.
//! 2. While one of them is live, nothing is granted as long as the ring has M stamps, which are
//!    live, too.
//! 3. At most M granted permits are live. The ring has 2M stamps when one is dropped (fewer if M is
//!    above half of the largest limit: see `docs/limitations.md`). Later requests make
//!    it no shorter, and a refund removes as many as it refunds. So the ring has at least M.
//! 4. A refund removes the oldest stamps from its own on (INV-REFUND). If its own were dropped,
//!    these are the oldest of the ring, and by 3 the newest M stay.
//!
//! For 3 such a log reserves nothing: a reserved permit and the one that it replaces would both be
//! live under a longer window. And a log counts refused requests from its first version on, or
//! never.
//!
//! A limit above M sees no more than the ring has. Permits that it does not see have as many newer
//! stamps in the ring.

use super::left::AsOf;
use super::view::{Log, View};
use crate::cell::driver::{Charge, Driver};
use crate::decision::{Decision, Status};

impl<'a> Log<'a> {
    /// One attempt to refuse a request that counts.
    pub(super) fn refuse_and_count(self, view: &View<'a>, cost: usize, denied: Decision) -> Option<(Status, Charge)> {
        let (plan, at, time) = (self.plan, view.at, view.time);
        let live = view.live(plan.live_from(time)).min(plan.remembered().saturating_sub(cost));
        let resizing = at.begin_resize(at.head.state().resizing())?;
        let new = self.replacement(resizing, view, live + cost, time)?;
        let (next, later) = (resizing.head.on_new_ring(), new.later);
        let kept = view.last(live).map(|stamp| plan.postpone(stamp, time, later));
        new.ring.write_last(live + cost, kept.chain(core::iter::repeat_n(later, cost)), next.lap());
        // All of the new ring is published, so the next head reads it as it is now.
        let refusal = plan.refusal(new.ring, next, later, cost);
        let log = AsOf { ring: new.ring, head: next, newest: later, time: later, reading: view.reading };
        let left = plan.left(log, 0);
        if !self.offer(resizing, view.reference, later, new.offer) {
            return None;
        }
        let decision = refusal.map_or(denied, |refusal| refusal.denial(view.reading));
        Some((Status { decision, left }, Charge::nothing(at.head)))
    }
}
