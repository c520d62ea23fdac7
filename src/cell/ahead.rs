//! Permits of a log that are reserved: their stamps lie ahead.
//!
//! # How it works
//! A request that does not fit now fits at some later time: it is the moment that a denial tells. Whoever reserves takes the
//! permits as of that moment, by replacing the ring with one that has their stamps (as growth does, see the essay on cells), and
//! the cell is *ahead*. A cell that is ahead denies whoever's clock is before its newest stamp: **nobody overtakes what is
//! reserved**. Once the clock has reached it, the next claim makes the cell open again.
//!
//! # Why it is exact
//! 1. The stamps are what a limiter would have granted whose clock had reached that moment, so the argument of the essay on cells holds for
//!    them: no window has more than its limit.
//! 2. Nobody is admitted before the newest stamp, so what is granted later has later stamps, and what goes on is what the stamps
//!    say. But for a clock that lags: a cell that is not ahead takes the newest stamp for the time, as ever.
//! 3. What is reserved may be given back, and then what it took the place of must still be there. So the new ring keeps all that is
//!    live now, beside what is live then: up to twice the limit. For that, and because a queue has to end somewhere, nobody
//!    reserves more than one window ahead.
//!
//! # Why the horizon does not move ahead
//! Were it raised to a stamp that lies ahead, every new key would start there. It has to be as late as what was claimed *in place*,
//! in a ring that changes hands, and as the time by which stamps were left out of a new ring (see
//! `give_back.rs`): a ring with stamps ahead does not say how late it is. In the ring of a cell that is ahead nothing was: it came with what is reserved, and the first
//! claim in place makes the cell open. So three states tell rings apart that are being replaced: *growing*, an open cell's, by a
//! ring with nothing ahead; *going ahead*, an open cell's, by a ring with stamps ahead; *growing ahead*, the ring of a cell that is ahead.

use super::log::View;
use super::memory::Cell;
use super::plan::{Limits, Refusal, admitted};
use super::words::Head;
use super::{Attempt, Cells, Charged};
use crate::decision::{Admission, Decision, Status};

/// The longest ring that a head can tell the places of.
const LONGEST: usize = 1 << 24;

impl Cells {
    /// One attempt to take permits that do not fit now, if they do within so many nanoseconds.
    #[expect(clippy::too_many_arguments, reason = "what is known of one cell, and what is asked of it")]
    pub(super) fn reserve_ahead(
        &self,
        limits: &Limits,
        cell: &Cell,
        head: Head,
        view: &View<'_>,
        refusal: Refusal,
        needed: usize,
        within: u64,
    ) -> Attempt {
        let lost = || Attempt::Lost(cell.head());
        let &View { reference, ring, newest, reading, .. } = view;
        let within = within.min(limits.window());
        // A stamp must not be earlier than the horizon.
        let shown = view.live_at(head);
        let now = shown.max(view.horizon);
        let refusal = refusal.no_sooner_than(now);
        let live = ring.live_at(head, limits.live_from(shown));
        let kept = || (ring.len() - live..ring.len()).map(|position| ring.load(head.pos() + position).time());
        // By a clock that lags behind the horizon some may be live that would have to be put off, and the moment with them.
        let lags = shown < now && kept().any(|stamp| limits.put_off(stamp, shown, now) != stamp);
        let (at, slots) = (refusal.until(), live + needed);
        let is_never = lags || slots > LONGEST;
        if is_never || at.saturating_sub(reading) > within {
            let (limit, remaining) = limits.none();
            let reset_after = newest.time().saturating_add(limits.window()).saturating_sub(reading);
            let status = admitted(limit, remaining, reset_after);
            let decision = if is_never { refusal.denial(reading) } else { refusal.denial_within(reading, within) };
            let denied = Attempt::Decided(Status { decision, ..status }, Charged::nothing(head));
            return if view.stands(cell, head) { denied } else { lost() };
        }
        let growing = head.with_state(head.state().going_ahead());
        if cell.begin_resize(head, growing).is_none() {
            return lost();
        }
        let next = growing.on_new_ring();
        let (offer, new) = self.new_ring(next.epoch(), slots.max(2), next.lap());
        if self.horizon_for(view, now).is_none() {
            self.drop_unused_ring(offer);
            return lost();
        }
        new.write_last(slots, kept().chain(core::iter::repeat_n(at, needed)), next.lap());
        if !self.offer(cell, growing, reference, now, offer) {
            return lost();
        }
        let (limit, remaining) = limits.none();
        let status = admitted(limit, remaining, at.saturating_add(limits.window()).saturating_sub(reading));
        let decision = Decision::Admitted(Admission::delayed(at.saturating_sub(reading)));
        Attempt::Decided(Status { decision, ..status }, Charged { head, mark: at })
    }
}
