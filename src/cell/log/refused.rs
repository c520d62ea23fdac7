//! Logs in which refused requests count as well.
//!
//! A request that is refused leaves its stamps all the same, behind those that are live. The ring is replaced by one with all of
//! these stamps, as growth does (see the essay on cells). It holds the newest requests, whatever became of them, and no more than
//! 2M: M is the largest limit that there has been, of the present quotas and those before them.
//!
//! # Why twice the largest limit is enough
//! A decision under a limit of at most M looks at the newest M live stamps. They are the same as in a list that forgets none:
//!
//! 1. The stamps that were left out are older than all in the ring, so they expire first. They matter while they are live.
//! 2. While one of them is live, nothing is granted as long as the ring has M stamps, which are live too.
//! 3. At most M permits that were granted are live, unless windows became longer while permits were reserved ahead ("Known gaps" in
//!    the DESIGN page). When a stamp is left out the ring has 2M. What is added after that makes it no
//!    shorter, and a refund takes out as many as it gives back. So the ring has at least M.
//! 4. A refund takes out the oldest stamps that are no earlier than its own (see `refund.rs`). Where its own were left out
//!    these are the oldest of the ring, and by 3 the newest M stay.
//!
//! For 3 such a log reserves nothing ahead: a permit that is reserved ahead and the one whose place it takes would both be live
//! under a longer window. And a log that counts refused requests was one from its first quotas on.
//!
//! A limit above M sees no more than the ring has. The permits that it does not see have as many newer stamps in the ring.

use super::left::AsOf;
use super::view::{Log, View};
use crate::cell::algorithm::{Algorithm, Attempt, Charged};
use crate::decision::{Decision, Status};

impl<'a> Log<'a> {
    /// One attempt to refuse a request that counts.
    pub(super) fn refuse_and_count(self, view: &View<'a>, needed: usize, denied: Decision) -> Attempt {
        let (limits, at, time) = (self.limits, view.at, view.time);
        let live = view.live(limits.live_from(time)).min(limits.remembered().saturating_sub(needed));
        let Some(growing) = at.begin_resize(at.head.state().growing()) else { return at.lost() };
        let Some(new) = self.replacement(growing, view, live + needed, time) else { return at.lost() };
        let (next, later) = (growing.head.on_new_ring(), new.later);
        let kept = view.last(live).map(|stamp| limits.put_off(stamp, time, later));
        new.ring.write_last(live + needed, kept.chain(core::iter::repeat_n(later, needed)), next.lap());
        // All of the new ring is published, so the next head of the ring sees it as it is now.
        let refusal = limits.refusal(new.ring, next, later, needed);
        let log = AsOf { ring: new.ring, head: next, newest: later, time: later, reading: view.reading };
        let left = limits.left(log, 0);
        if !self.offer(growing, view.reference, later, new.offer) {
            return at.lost();
        }
        let decision = refusal.map_or(denied, |refusal| refusal.denial(view.reading));
        Attempt::Decided(Status { decision, left }, Charged::nothing(at.head))
    }
}
