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
//! `refund.rs`): a ring with stamps ahead does not say how late it is. In the ring of a cell that is ahead nothing was: it came with what is reserved, and the first
//! claim in place makes the cell open. So three states tell rings apart that are being replaced: *growing*, an open cell's, by a
//! ring with nothing ahead; *going ahead*, an open cell's, by a ring with stamps ahead; *growing ahead*, the ring of a cell that is ahead.

use super::left::AsOf;
use super::limits::Refusal;
use super::view::{Log, View};
use crate::cell::algorithm::{Algorithm, Attempt, Charged};
use crate::decision::{Admission, Decision, Status};

/// The longest ring that a head can tell the places of.
const LONGEST: usize = 1 << 24;

impl<'a> Log<'a> {
    /// One attempt to take permits that do not fit now, if they do within so many nanoseconds.
    pub(super) fn reserve_ahead(self, view: &View<'a>, refusal: Refusal, needed: usize, within: u64) -> Attempt {
        let (limits, at, reading) = (self.limits, view.at, view.reading);
        let within = within.min(limits.window());
        // A stamp must not be earlier than the horizon.
        let shown = view.live_at();
        let now = shown.max(view.horizon);
        let refusal = refusal.no_sooner_than(now);
        let live = view.live(limits.live_from(shown));
        // By a clock that lags behind the horizon some may be live that would have to be put off, and the moment with them.
        let lags = shown < now && view.last(live).any(|stamp| limits.put_off(stamp, shown, now) != stamp);
        let (moment, slots) = (refusal.until(), live + needed);
        let is_never = lags || slots > LONGEST;
        if is_never || moment.saturating_sub(reading) > within {
            let decision = if is_never { refusal.denial(reading) } else { refusal.denial_within(reading, within) };
            return self.told(view, decision);
        }
        let Some(growing) = at.begin_resize(at.head.state().going_ahead()) else { return at.lost() };
        let Some(new) = self.replacement(growing, view, slots, now) else { return at.lost() };
        let stamps = view.last(live).chain(core::iter::repeat_n(moment, needed));
        new.ring.write_last(slots, stamps, growing.head.on_new_ring().lap());
        let log = AsOf { ring: new.ring, head: growing.head.on_new_ring(), newest: moment, time: moment, reading };
        let left = if reading < moment { limits.left_behind(log, moment) } else { limits.left(log, 0) };
        if !self.offer(growing, view.reference, now, new.offer) {
            return at.lost();
        }
        let decision = Decision::Admitted(Admission::delayed(moment.saturating_sub(reading)));
        Attempt::Decided(Status { decision, left }, Charged { head: at.head, mark: moment })
    }
}
