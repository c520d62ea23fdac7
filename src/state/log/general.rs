//! The general way of a log: any request, under any number of quotas, with the permits left. A grant
//! may take a new ring.

use super::layout::{Grant, Layout, LogState, View};
use super::plan::{Bound, LogPlan, Refusal};
use crate::decision::{FastDecision, Left, PerQuota};
use crate::state::cell::Word;
use crate::state::request::{Algorithm, CellRef, Proposal, Request, RequestKind, Seen};
use crate::state::ring::Rings;

impl<L: Layout> LogPlan<L> {
    /// How far ahead permits may be reserved, in steps. Further ahead the log would have to remember
    /// more than twice the limit. If refused requests count, nothing is reserved ahead.
    fn furthest_ahead(&self) -> u64 {
        if L::RESERVES && !self.counts_refused() { self.window() } else { 0 }
    }
}

impl<L: Layout> Algorithm for LogPlan<L> {
    fn propose(&self, seen: Seen<'_>, request: Request, left: Option<&mut PerQuota>) -> Proposal {
        self.proposal(seen, request, left)
    }

    #[expect(clippy::cast_possible_truncation, reason = "a log's mark is a stamp")]
    fn refund(&self, seen: Seen<'_>, cost: u32, kept: u32, mark: u128) -> Option<(Word, u32)> {
        self.take_off(seen, cost - kept, mark as u64)
    }

    /// More than the limit at one time denies no more than the limit does. So no charge is of more,
    /// and a word does not come to more than it can hold.
    fn owe(&self, seen: Seen<'_>, cost: u32) -> Word {
        let view = View::of(self.layout, seen);
        let most = if self.counts_refused() {
            // As in `deny_and_count`.
            self.remembered - L::count_from(&view, view.step, self.remembered)
        } else {
            let live = L::count_from(&view, self.live_from(view.lasting(view.state.newest)), L::MOST);
            (self.remembered / 2).min(L::MOST - live)
        };
        let cost = cost.min(most);
        if cost == 0 {
            return seen.word;
        }
        // Before the swap: the wait is longer than the hint tells, and the new stamp may be
        // earlier.
        seen.cell.hint.turn_off();
        self.grant(&view, view.grant(cost, view.step))
    }

    fn first<'a>(&self, seen: Seen<'a>, not_before: u64) -> Seen<'a> {
        let state = LogState { newest: self.layout.step_of(not_before), ..LogState::default() };
        Seen { word: L::pack(state), ..seen }
    }

    fn over_at(&self, cell: CellRef<'_>, word: Word) -> u64 {
        let view = View::of(self.layout, Seen { cell, word, now: 0 });
        // If all permits with the newest stamp were refunded, this is an earlier one, or none.
        let last = match L::back(&view, 1) {
            0 => view.state.newest,
            last => view.state.newest.max(last + self.window()),
        };
        self.layout.end_of(last)
    }

    fn moved(&self, seen: Seen<'_>, under: &Self, to: &Rings) -> Word {
        self.copied_to(seen, under, to)
    }

    fn latest(&self, word: Word, reading: u64) -> u64 {
        let LogState { newest, reserved, .. } = L::unpack(word);
        let begun = self.layout.begun(newest);
        if reserved { reading } else { reading.max(self.layout.end_of(begun) + u64::from(begun < newest)) }
    }

    fn slots(&self, word: Word) -> usize {
        self.layout.slots_of(L::unpack(word).ring.class) as usize
    }

    fn bytes(&self) -> usize {
        self.bytes_of_bounds()
    }
}

impl<L: Layout> LogPlan<L> {
    /// Decides a request, and swaps the word. `None` if another thread was faster.
    #[inline(never)]
    pub(in crate::state) fn decide_generally(
        &self,
        seen: Seen<'_>,
        cost: u32,
        left: Option<&mut PerQuota>,
    ) -> Option<FastDecision> {
        self.decide_here(seen, cost, left)
    }

    /// The same, compiled into the caller.
    #[inline(always)]
    pub(in crate::state) fn decide_here(
        &self,
        seen: Seen<'_>,
        cost: u32,
        left: Option<&mut PerQuota>,
    ) -> Option<FastDecision> {
        let (decision, new, _) = self.proposal(seen, Request::acquire(cost), left).answer()?;
        // As `<dyn Algorithm>::decide`. A grant always changes the word.
        new.is_none_or(|new| seen.cell.word.swap(seen.word, new)).then_some(decision)
    }

    /// The same as [`Algorithm::propose`].
    #[inline(always)]
    fn proposal(&self, seen: Seen<'_>, request: Request, left: Option<&mut PerQuota>) -> Proposal {
        let view = View::of(self.layout, seen);
        if request.kind == RequestKind::Refused {
            return self.deny_and_count(&view, request, left);
        }
        let (stamp, delay_ns) = match self.refusal(&view, request.cost) {
            None => (view.step, 0),
            Some(refusal) => {
                let (wait_ns, within) = (view.until(refusal.until), request.within.min(self.furthest_ahead()));
                if wait_ns > within {
                    return self.deny(&view, request, refusal, wait_ns - within, left);
                }
                (refusal.until, wait_ns)
            }
        };
        let grant = view.grant(request.cost, stamp);
        self.tell(left, &view, (!request.peeks).then_some(grant));
        // No swap checks a peek, so it looks whether the slots were still those of the word.
        if request.peeks && !view.seen.stands() {
            return Proposal::Lost;
        }
        let word = if request.peeks { seen.word } else { self.grant(&view, grant) };
        Proposal::Admit { word, mark: stamp.into(), delay_ns }
    }

    /// The denial of a request, which counts if refused requests do.
    #[inline]
    fn deny(
        &self,
        view: &View<'_, L>,
        request: Request,
        refusal: Refusal,
        wait_ns: u64,
        left: Option<&mut PerQuota>,
    ) -> Proposal {
        if self.counts_refused() {
            return self.deny_and_count(view, request, left);
        }
        self.tell(left, view, None);
        // A denial swaps nothing: a later grant may have written over the slots that it read.
        if !view.seen.stands() {
            return Proposal::Lost;
        }
        if request.cost == 1 && !request.peeks {
            view.seen.cell.hint.publish(self.layout.end_of(refusal.until), refusal.bound);
        }
        Proposal::Deny { wait_ns, quota: self.bounds[refusal.bound].quota, word: None }
    }

    /// A denial whose permits are added to the log. The wait is that of the same request
    /// afterwards.
    #[cold]
    fn deny_and_count(&self, view: &View<'_, L>, request: Request, left: Option<&mut PerQuota>) -> Proposal {
        let grant = view.grant(request.cost, view.step);
        self.tell(left, view, (!request.peeks).then_some(grant));
        let (wait_ns, quota) = self.refused_for(view, grant);
        // Once all that is remembered is of this step, another refusal adds nothing. So the position
        // moves at one reading by no more than is remembered, and the word does not come back.
        let newest = L::count_from(view, grant.stamp, self.remembered);
        let cost = if request.peeks { 0 } else { request.cost.min(self.remembered - newest) };
        if cost == 0 {
            // Nothing is swapped, so the slots belong to the word only if it still stands.
            let denial = Proposal::Deny { wait_ns, quota, word: None };
            return if view.seen.stands() { denial } else { Proposal::Lost };
        }
        Proposal::Deny { wait_ns, quota, word: Some(self.grant_apart(view, Grant { cost, ..grant })) }
    }

    /// Writes the permits left of each quota, after a grant.
    #[inline]
    fn tell(&self, left: Option<&mut PerQuota>, view: &View<'_, L>, grant: Option<Grant>) {
        if let Some(left) = left {
            left.set(self.given().map(|bound| left_of(bound, view, grant)));
        }
    }

    /// The wait of a request like this one after it was refused and counted, and the quota that
    /// denies it for longest.
    fn refused_for(&self, view: &View<'_, L>, grant: Grant) -> (u64, u8) {
        let until = |bound: &Bound| view.back_after(grant, bound.limit + 1 - grant.cost) + bound.window;
        let later = |last, bound| if until(bound) > until(last) { bound } else { last };
        let last = self.bounds.iter().reduce(later).expect("a log has a bound");
        (view.until(until(last)), last.quota)
    }

    /// The quota that denies the request for longest, and until when; `None` if it fits.
    #[inline(always)]
    pub(super) fn refusal(&self, view: &View<'_, L>, cost: u32) -> Option<Refusal> {
        if cost == 0 {
            return None;
        }
        let behind = view.is_behind_reserved();
        let mut refusal: Option<Refusal> = behind.then_some(Refusal { until: view.state.newest, bound: 0 });
        for (number, bound) in self.bounds.iter().enumerate() {
            let until = L::back(view, bound.limit + 1 - cost) + bound.window;
            if until > view.passed && refusal.is_none_or(|other| other.until < until) {
                refusal = Some(Refusal { until, bound: number });
            }
        }
        refusal
    }

    /// The word with a grant, whose stamp is no earlier than the newest.
    #[inline(always)]
    pub(super) fn grant(&self, view: &View<'_, L>, grant: Grant) -> Word {
        let live_from = self.live_from(view.lasting(grant.stamp));
        // A ring of all that is remembered takes the place of its oldest permits.
        let is_longest = self.counts_refused() && view.ring.len() >= self.remembered as usize;
        let free_below = if is_longest { u64::MAX } else { live_from };
        match L::continued(view, grant, live_from, free_below) {
            Some(state) => L::pack(state),
            None => self.grant_in_copy(view, grant, live_from),
        }
    }

    /// The same, compiled once for those that grant seldom.
    #[cold]
    #[inline(never)]
    fn grant_apart(&self, view: &View<'_, L>, grant: Grant) -> Word {
        self.grant(view, grant)
    }

    /// Grants in a new ring, with the stamps that are live.
    #[cold]
    fn grant_in_copy(&self, view: &View<'_, L>, grant: Grant, live_from: u64) -> Word {
        let Grant { cost, stamp, reserved } = grant;
        let older = L::permits_from(view, live_from);
        let mut dropped = 0;
        if self.counts_refused() {
            // As many as fit already: a limit may have been larger.
            let most = self.remembered.max(view.state.run) as usize;
            dropped = (older.len() + cost as usize).saturating_sub(most.max(view.ring.len()));
        }
        let state = LogState { newest: stamp, run: cost, reserved, ..LogState::default() };
        let room = L::most_slots(self.most_live(), self.window());
        L::pack(self.layout.copied(view.seen.cell.rings, state, older.skip(dropped), room))
    }
}

/// The permits left of a quota, after a grant.
fn left_of<L: Layout>(bound: Bound, view: &View<'_, L>, grant: Option<Grant>) -> Left {
    let (cost, newest) = grant.map_or((0, view.state.newest), |grant| (grant.cost, grant.stamp));
    let passed = view.passed.max(view.layout.begun(newest));
    // Those that fit beside the grant decide; a log that counts refused requests may have more.
    let live = cost + L::count_from(view, bound.live_from(passed), bound.limit - cost);
    if live == 0 {
        return Left::all(bound.limit);
    }
    let oldest = if live > cost { L::back(view, live - cost) } else { newest };
    // The permits of the newest stamp may have been refunded.
    let last = if cost > 0 { newest } else { L::back(view, 1) };
    let next = oldest + bound.window;
    let is_behind = grant.map_or(view.is_behind_reserved(), |grant| grant.reserved);
    let (remaining, next) = match (is_behind, bound.limit - live) {
        (true, 0) => (0, next.max(newest)),
        (true, _) => (0, newest),
        (false, remaining) => (remaining, next),
    };
    Left {
        limit: bound.limit,
        remaining,
        next_after_ns: view.until(next),
        reset_after_ns: view.until(last + bound.window),
    }
}
