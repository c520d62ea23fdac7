//! A log's permits from one ring to another: refunds, rebuilds and snapshots.

use super::{Layout, LogPlan, LogState, View};
#[cfg(feature = "snapshot")]
use crate::state::cell::TIME_ZERO;
use crate::state::cell::Word;
use crate::state::request::Seen;
use crate::state::ring::Rings;

impl<L: Layout> LogPlan<L> {
    /// See [`Algorithm::refund`](crate::state::request::Algorithm::refund). `stamp` is that of the
    /// permits.
    pub(super) fn take_off(&self, seen: Seen<'_>, cost: u32, stamp: u64) -> Option<(Word, u32)> {
        let view = View::of(self.layout, seen);
        let mut permits: Vec<_> = L::permits_from(&view, self.live_from(view.lasting(view.state.newest))).collect();
        // If refused requests count, the log remembers the newest.
        let mut known = if self.counts_refused { self.remembered } else { u32::MAX };
        let mut refunded = 0;
        for (other, granted) in permits.iter_mut().rev() {
            let taken = if *other == stamp { (*granted).min(cost - refunded).min(known) } else { 0 };
            known = known.saturating_sub(*granted);
            *granted -= taken;
            refunded += taken;
        }
        if refunded == 0 || stamp + self.window() <= view.kept_by() {
            // Later grants may have written over the slots since the word was loaded.
            return seen.stands().then_some((seen.word, 0));
        }
        permits.retain(|&(_, granted)| granted > 0);
        // Before the swap: under the word to come, a request may fit earlier than the hint tells.
        seen.cell.hint.turn_off();
        Some((copied(self.layout, seen.cell.rings, &view, &permits), refunded))
    }

    /// The word of the log under other quotas in another arena, as far as its permits may ever count.
    /// The word must be frozen.
    pub(super) fn copied_to(&self, seen: Seen<'_>, under: &Self, to: &Rings) -> Word {
        let view = View::of(self.layout, seen);
        // What has expired does not come back under a longer window.
        let passed = if under.window() > self.window() { view.kept_by() } else { view.lasting(view.state.newest) };
        copied(under.layout, to, &view, &L::permits_from(&view, self.live_from(passed)).collect::<Vec<_>>())
    }

    /// The permits that count or may come to count, oldest first: their times, and their numbers.
    /// `None` if the word changed meanwhile.
    #[cfg(feature = "snapshot")]
    pub(in crate::state) fn permits(&self, seen: Seen<'_>) -> Option<Vec<(u64, u32)>> {
        let view = View::of(self.layout, seen);
        let permits = L::permits_from(&view, self.live_from(view.kept_by()));
        let permits = permits.map(|(stamp, permits)| (self.layout.end_of(stamp), permits)).collect();
        seen.stands().then_some(permits)
    }

    /// The word of a log with those of these permits that count, oldest first.
    ///
    /// Times rounded by another clock are rounded up again, by less than a step, but not past the
    /// stamp that is granted now. A reserved permit keeps its time, however short the window is and
    /// although a log that counts refused requests reserves none: otherwise a request is granted a
    /// permit in a window with it.
    #[cfg(feature = "snapshot")]
    pub(in crate::state) fn imported(&self, rings: &Rings, permits: &[(u64, u32)], now: u64) -> Word {
        let (passed, step) = self.layout.around(0, now);
        // It was reserved under a window of any length, which is less than the time zero.
        let latest = step + if L::RESERVES { TIME_ZERO } else { 0 };
        let granted = permits.iter().filter(|&&(_, permits)| permits > 0);
        let mut stamps: Vec<_> =
            granted.map(|&(time, permits)| (self.layout.step_of(time).min(latest), permits)).collect();
        let Some(&(newest, _)) = stamps.last().filter(|(newest, _)| *newest >= self.live_from(passed)) else {
            return Word::NEW;
        };
        let live_from = self.live_from(passed.min(self.layout.begun(newest)));
        stamps.retain(|&(stamp, _)| stamp >= live_from);
        packed(self.layout, rings, newest, newest > step, &stamps)
    }
}

/// A word with some of the permits of another, oldest first.
fn copied<L: Layout>(layout: L, rings: &Rings, view: &View<'_, L>, permits: &[(u64, u32)]) -> Word {
    // The newest stamp stays even if its permits are gone: no later permit is before it, and
    // the key is not forgotten before it expires. A reserved one may be later than every clock.
    let newest = match permits.last() {
        Some(&(kept, _)) if view.is_behind_reserved() => kept,
        None if view.is_behind_reserved() => view.seen.now,
        _ => view.state.newest,
    };
    packed(layout, rings, newest, view.state.reserved && newest > view.seen.now, permits)
}

/// A word with these permits, oldest first: those of the newest stamp in the word, others in a new
/// ring.
fn packed<L: Layout>(layout: L, rings: &Rings, newest: u64, reserved: bool, permits: &[(u64, u32)]) -> Word {
    let (older, last) = permits.split_at(permits.partition_point(|&(stamp, _)| stamp < newest));
    // A word that has changed may seem to have more than there can be.
    let run = last.iter().fold(0_u32, |sum, &(_, permits)| sum.saturating_add(permits));
    let state = LogState { newest, run, reserved, ..LogState::default() };
    L::pack(layout.copied(rings, state, older.iter().copied(), 0))
}
