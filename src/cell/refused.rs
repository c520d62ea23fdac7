//! Logs in which refused requests count as well.
//!
//! A request that is refused leaves its stamps all the same, in the place of the oldest ones: so the ring holds the newest requests, as
//! many as the limit, whatever became of them. The ring is replaced by one with those stamps (as growth does, see the essay on
//! cells), and what could not be claimed in place because it was live need not be written over.

use super::growth::replacing;
use super::log::View;
use super::plan::{Limits, Refusal};
use super::words::Head;
use super::{Attempt, Cells, Charged, HEAD};
use crate::decision::Status;
use crate::sync::{AtomicU64, Ordering};

impl Cells {
    /// One attempt to refuse a request that counts.
    pub(super) fn refuse_and_count(
        &self,
        limits: &Limits,
        words: &[AtomicU64],
        head: Head,
        view: &View<'_>,
        needed: usize,
        status: Status,
    ) -> Attempt {
        let lost = || Attempt::Lost(Head(words[HEAD].load(Ordering::Acquire)));
        let &View { reference, ring, reading, time, .. } = view;
        let live = ring.live_at(head, limits.live_from(time)).min(limits.limit().saturating_sub(needed));
        let growing = head.with_state(head.state().growing());
        if replacing(words, head, growing).is_none() {
            return lost();
        }
        let next = growing.on_new_ring();
        let (offer, new) = self.new_ring(next.epoch(), (live + needed).max(2), next.lap());
        let Some(later) = self.horizon_for(view, time) else {
            self.drop_unused_ring(offer);
            return lost();
        };
        let kept = (ring.len() - live..ring.len())
            .map(|position| limits.put_off(ring.load(head.pos() + position).time(), time, later));
        new.write_last(live + needed, kept.chain(core::iter::repeat_n(later, needed)), next.lap());
        // All of the new ring is published, so the next head of the ring sees it as it is now.
        let refusal: Option<Refusal> = limits.refusal(new, next, later, needed);
        if !self.offer(words, growing, reference, later, offer) {
            return lost();
        }
        let decision = refusal.map_or(status.decision, |refusal| refusal.denial(reading));
        let reset_after_ns = later.saturating_add(limits.window()).saturating_sub(reading);
        Attempt::Decided(Status { decision, remaining: 0, reset_after_ns, ..status }, Charged::nothing(head))
    }
}
