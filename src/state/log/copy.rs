//! A log's permits from one ring to another: refunds, rebuilds and snapshots.

use super::{Layout, LogPlan, LogState, View};
use crate::state::request::{Place, Seen};
use crate::state::ring::Rings;
use crate::state::word::Word;

impl<L: Layout> LogPlan<L> {
    /// See [`Plan::refund`](crate::state::plan::Plan::refund). `stamp` is that of the permits. `None` if the
    /// word has changed.
    pub(in crate::state) fn refund(&self, seen: Seen<'_>, cost: u32, stamp: u64) -> Option<(Word, u32)> {
        let view = View::of(self.layout, seen);
        let mut permits = L::permits_from(&view, self.live_from(view.lasting(view.state.newest)));
        // If refused requests count, the log remembers the newest.
        let mut known = if self.counts_refused() { self.remembered() } else { u32::MAX };
        let mut refunded = 0;
        for (other, granted) in permits.iter_mut().rev() {
            let taken = if *other == stamp { (*granted).min(cost - refunded).min(known) } else { 0 };
            known = known.saturating_sub(*granted);
            *granted -= taken;
            refunded += taken;
        }
        if refunded == 0 || stamp + self.window() <= view.kept_by() {
            return seen.stands().then_some((seen.word, 0));
        }
        permits.retain(|&(_, granted)| granted > 0);
        seen.place.hint.turn_off();
        Some((copied(seen.place.rings, &view, &permits), refunded))
    }

    /// The word of the log under other quotas in another arena, as far as its permits may ever count.
    /// The word must be frozen.
    pub(in crate::state) fn moved(&self, seen: Seen<'_>, under: &Self, to: &Rings) -> Word {
        let view = View::of(self.layout, seen);
        // What has expired does not come back under a longer window.
        let passed = if under.window() > self.window() { view.kept_by() } else { view.lasting(view.state.newest) };
        copied(to, &view, &L::permits_from(&view, self.live_from(passed)))
    }

    /// The permits that count or may come to count, oldest first: their times, and their numbers.
    /// `None` if the word changed meanwhile.
    #[cfg(feature = "snapshot")]
    pub(in crate::state) fn permits(&self, seen: Seen<'_>) -> Option<Vec<(u64, u32)>> {
        let view = View::of(self.layout, seen);
        let mut permits = L::permits_from(&view, self.live_from(view.kept_by()));
        permits.iter_mut().for_each(|(stamp, _)| *stamp = self.layout.end_of(*stamp));
        seen.stands().then_some(permits)
    }

    /// The word of a log with those of these permits that count, oldest first.
    ///
    /// Times rounded by another clock are rounded up again, by less than a step, but not past the
    /// last stamp that is granted now.
    #[cfg(feature = "snapshot")]
    pub(in crate::state) fn imported(&self, rings: &Rings, permits: &[(u64, u32)], now: u64) -> Word {
        let (passed, step) = self.layout.around(0, now);
        let mut stamps: Vec<(u64, u32)> = Vec::with_capacity(permits.len());
        for &(time, permits) in permits.iter().filter(|&&(_, permits)| permits > 0) {
            let stamp = self.layout.step_of(time).min(step + self.furthest_ahead());
            match stamps.last_mut() {
                Some((last, sum)) if *last >= stamp => *sum = sum.saturating_add(permits),
                _ => stamps.push((stamp, permits)),
            }
        }
        let Some(&(newest, _)) = stamps.last().filter(|(newest, _)| *newest >= self.live_from(passed)) else {
            return Word::NEW;
        };
        let live_from = self.live_from(passed.min(self.layout.begun(newest)));
        stamps.retain(|&(stamp, _)| stamp >= live_from);
        let state = LogState { newest, reserved: newest > step, ..LogState::default() };
        L::pack(L::copied(rings, state, &stamps, 0))
    }

    /// The first time from which the log is no different from that of a new key, but for the stamps
    /// that it may grant. As of this word, if it still stands.
    pub(in crate::state) fn over_at(&self, place: Place<'_>, word: Word) -> u64 {
        let view = View::of(self.layout, Seen { place, word, now: 0 });
        // If all permits with the newest stamp were refunded, this is an earlier one, or none.
        let last = match L::back(&view, 1) {
            0 => view.state.newest,
            last => view.state.newest.max(last + self.window()),
        };
        self.layout.end_of(last)
    }

    /// A time that is no earlier than any stamp of a word has begun. Reserved stamps are left out.
    pub(in crate::state) fn latest(&self, word: Word, reading: u64) -> u64 {
        let LogState { newest, reserved, .. } = L::unpack(word);
        if reserved { reading } else { reading.max(self.layout.end_of(self.layout.begun(newest))) }
    }

    /// The slots that a word takes in another arena, at most.
    pub(in crate::state) fn slots(word: Word) -> usize {
        L::unpack(word).ring.len()
    }
}

/// A word with some of the permits of another, oldest first.
fn copied<L: Layout>(rings: &Rings, view: &View<'_, L>, permits: &[(u64, u32)]) -> Word {
    // The newest stamp stays even if its permits are gone: no later permit is before it, and
    // the key is not forgotten before it expires. A reserved one may be later than every clock.
    let newest = match permits.last() {
        Some(&(kept, _)) if view.is_behind_reserved() => kept,
        None if view.is_behind_reserved() => view.seen.now,
        _ => view.state.newest,
    };
    let state = LogState { newest, reserved: view.state.reserved && newest > view.seen.now, ..LogState::default() };
    L::pack(L::copied(rings, state, permits, 0))
}
