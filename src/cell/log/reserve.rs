//! Reservations of a log: permits whose stamps are later than the clock.
//!
//! A request that does not fit now fits at the moment that its denial tells. A reservation takes
//! the permits as of that moment: it replaces the ring with one that has their stamps (INV-RESIZE),
//! and the cell is *reserved*. Such a cell denies each clock before its newest stamp
//! (INV-RESERVED). Once the clock has reached it, the next claim makes the cell open.
//!
//! # Why it is exact
//!
//! 1. A limiter whose clock had reached that moment would have granted the same stamps, so
//!    INV-COUNT holds for them.
//! 2. No permit is granted before the newest stamp, so later grants have later stamps (INV-ORDER).
//!    A lagging clock counts as the newest stamp, as in any log.
//! 3. A reservation may be cancelled. Then the permits whose place it took must still be there. So
//!    the new ring keeps stamps that are live now beside those live then: up to twice the limit.
//!    For this reason, and because a queue must end, a reservation reaches at most one window
//!    ahead.
//!
//! # Why a reservation does not raise the timestamp floor
//!
//! Raised to a reserved stamp, the floor would make every new key start there. It must be as late
//! as claims *in place* in a ring that is freed, and as the time by which a resize left stamps out.
//! A ring with reserved stamps tells neither. But nothing was claimed in place in the ring of a
//! reserved cell: the ring came with the reservation, and the first claim in place makes the
//! cell open. So three states tell the resizes apart: *resizing* (an open cell, nothing reserved),
//! *resizing to reserved* (an open cell, a ring with reserved stamps), *resizing reserved* (the
//! ring of a reserved cell).

use super::left::AsOf;
use super::plan::Refusal;
use super::view::{Log, View};
use crate::cell::driver::{Charge, Driver};
use crate::decision::{Admission, Decision, Status};

/// The longest ring whose positions fit in a head.
const LONGEST: usize = 1 << 24;

impl<'a> Log<'a> {
    /// One attempt to reserve permits that fit within so many nanoseconds, or the answer to it.
    pub(super) fn reserve(
        self,
        view: &View<'a>,
        refusal: Refusal,
        cost: usize,
        within: u64,
        charges: bool,
    ) -> Option<(Status, Charge)> {
        let (plan, at, reading) = (self.plan, view.at, view.reading);
        let within = within.min(plan.window());
        // No stamp is earlier than the timestamp floor (INV-FLOOR).
        let shown = view.live_at();
        let now = shown.max(view.timestamp_floor);
        let refusal = refusal.no_sooner_than(now);
        let live = view.live(plan.live_from(shown));
        // Live stamps by a clock behind the floor would be postponed, and this moment with them.
        let lags = shown < now && view.last(live).any(|stamp| plan.postpone(stamp, shown, now) != stamp);
        let (moment, slots) = (refusal.until, live + cost);
        let is_never = lags || slots > LONGEST;
        if is_never || moment.saturating_sub(reading) > within {
            let decision = if is_never { refusal.denial(reading) } else { refusal.denial_within(reading, within) };
            return self.told(view, decision);
        }
        let decision = Decision::Admitted(Admission::delayed(moment.saturating_sub(reading)));
        if !charges {
            return self.told(view, decision);
        }
        let resizing = at.begin_resize(at.head.state().resizing_to_reserved())?;
        let new = self.replacement(resizing, view, slots, now)?;
        let stamps = view.last(live).chain(core::iter::repeat_n(moment, cost));
        new.ring.write_last(slots, stamps, resizing.head.on_new_ring().lap());
        let log = AsOf { ring: new.ring, head: resizing.head.on_new_ring(), newest: moment, time: moment, reading };
        let left = if reading < moment { plan.left_behind(log, moment) } else { plan.left(log, 0) };
        if !self.offer(resizing, view.reference, now, new.offer) {
            return None;
        }
        Some((Status { decision, left }, Charge { head: at.head, mark: moment }))
    }
}
