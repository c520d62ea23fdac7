//! Decisions on several keys at once, one of each dimension.

use super::body::Engine;
use crate::caps::MAX_DIMENSIONS;
use crate::clock::Clock;
use crate::decision::{Admission, Decision, Denial, DenialReason, Status};
use crate::error::CostExceedsLimit;
use crate::fingerprint::Fingerprint;
use crate::lists::List;
use crate::modes::Modes;
use crate::noted::Noted;
use crate::state::joint as table;
use crate::state::table::{Refundable, TOGETHER};

/// The keys of one request by their dimensions.
pub(crate) type Together = [Option<Fingerprint>; MAX_DIMENSIONS];

/// The end of the block of each dimension's key, if it is blocked.
type Blocks = [Option<u64>; MAX_DIMENSIONS];

impl<C: Clock, F> Engine<C, F> {
    /// Whether the quotas of all these keys allow this cost, or a request of any cost has an
    /// answer: a key is on the deny list, the keys with smaller limits are on the allow list, or
    /// the limiter is in shadow mode.
    pub(crate) fn check_together(&self, keys: &Together, cost: u32) -> Result<(), CostExceedsLimit> {
        let mut present = keys.iter().flatten();
        let checked = present.clone().try_for_each(|&key| self.checked(key, cost).map(drop));
        let is_denied = |&key: &Fingerprint| self.modes.get().and_then(|modes| modes.list_of(key)) == Some(List::Deny);
        if checked.is_err() && present.any(is_denied) { Ok(()) } else { checked }
    }

    pub(crate) fn decide_together(&self, keys: &Together, cost: u32) -> Decision {
        if cost == 0 {
            return Decision::Admitted(Admission::COUNTED);
        }
        let Some(modes) = self.modes.get() else {
            let decision = self.table.acquire_together(self.asked(keys, cost, true), &self.clock, None, None);
            self.count(decision.is_admitted());
            return decision;
        };
        let status = self.decide_together_in_modes(modes, *keys, cost, true, |asked, clock| {
            Status::nothing().with_decision(self.table.acquire_together(asked, clock, None, None))
        });
        status.decision
    }

    /// Decides, with the permits left of each quota. Charges that can be refunded are added to
    /// `refundable`.
    pub(crate) fn decide_together_in_full(
        &self,
        keys: &Together,
        cost: u32,
        refundable: Option<&mut Vec<Refundable>>,
    ) -> Status {
        if cost == 0 {
            return self.peek_together(keys, 0, refundable.is_none());
        }
        // Permits that can be refunded are for now: a queue refunds only its last place.
        let may_wait = refundable.is_none();
        let Some(modes) = self.modes.get() else {
            let status = self.ask_together(self.asked(keys, cost, may_wait), &self.clock, refundable);
            self.count(status.is_admitted());
            return status;
        };
        self.decide_together_in_modes(modes, *keys, cost, may_wait, |asked, clock| {
            self.ask_together(asked, clock, refundable)
        })
    }

    fn ask_together(
        &self,
        asked: table::Together<'_>,
        clock: &impl Clock,
        refundable: Option<&mut Vec<Refundable>>,
    ) -> Status {
        let mut status = Status::nothing();
        status.decision = self.table.acquire_together(asked, clock, Some(&mut status.left), refundable);
        status
    }

    /// Decides several requests in order, each for one permit of each of its keys.
    pub(crate) fn decide_many_together<E>(
        &self,
        mut requests: impl Iterator<Item = Result<Together, E>>,
        dimensions: usize,
    ) -> Vec<Result<Decision, E>> {
        let mut decisions = Vec::with_capacity(requests.size_hint().0);
        let most = TOGETHER / dimensions.max(1);
        loop {
            let batch: Vec<_> = requests.by_ref().take(most).collect();
            let keys: Vec<Fingerprint> = batch.iter().flatten().flatten().flatten().copied().collect();
            self.table.prefetch(&keys);
            let count = batch.len();
            decisions.extend(batch.into_iter().map(|keys| Ok(self.decide_together(&keys?, 1))));
            if count < most {
                return decisions;
            }
        }
    }

    /// The answer to a peek.
    pub(crate) fn peek_together(&self, keys: &Together, cost: u32, may_wait: bool) -> Status {
        match self.modes.get() {
            // A request of cost zero is always admitted.
            Some(modes) if cost > 0 => self.peek_together_in_modes(modes, *keys, cost, may_wait),
            _ => self.table.preview_together(self.asked(keys, cost, may_wait), &self.clock),
        }
    }

    #[inline(never)]
    fn peek_together_in_modes(&self, modes: &Modes, mut keys: Together, cost: u32, may_wait: bool) -> Status {
        let asked = keys;
        let decided = by_lists(modes, &mut keys).map(|decision| Status::nothing().with_decision(decision));
        let mut status = match decided.or_else(|| self.by_cost_together(&keys, cost)) {
            Some(status) => status,
            None => {
                let clock = Noted::new(&self.clock);
                self.preview_with(&self.blocks_of(modes, &keys, &clock), self.asked(&keys, cost, may_wait), &clock)
            }
        };
        status.decision = modes.preview(status.decision, &asked);
        status
    }

    /// Decides a request of at least one permit. `ask` has the decision of the quotas.
    #[inline(never)]
    fn decide_together_in_modes(
        &self,
        modes: &Modes,
        keys: Together,
        cost: u32,
        may_wait: bool,
        ask: impl FnOnce(table::Together<'_>, &Noted<'_, C>) -> Status,
    ) -> Status {
        let status = self.decide_by_modes(modes, keys, cost, may_wait, ask);
        let decision = modes.show(status.decision, &keys);
        status.with_decision(decision)
    }

    fn decide_by_modes(
        &self,
        modes: &Modes,
        mut keys: Together,
        cost: u32,
        may_wait: bool,
        ask: impl FnOnce(table::Together<'_>, &Noted<'_, C>) -> Status,
    ) -> Status {
        if let Some(decision) = by_lists(modes, &mut keys) {
            self.count(decision.is_admitted());
            return Status::nothing().with_decision(decision);
        }
        if let Some(status) = self.by_cost_together(&keys, cost) {
            return status;
        }
        let status = self.decide_with_penalties(modes, keys, cost, may_wait, ask);
        self.count(status.is_admitted());
        status
    }

    fn decide_with_penalties(
        &self,
        modes: &Modes,
        keys: Together,
        cost: u32,
        may_wait: bool,
        ask: impl FnOnce(table::Together<'_>, &Noted<'_, C>) -> Status,
    ) -> Status {
        let clock = Noted::new(&self.clock);
        let mut blocks = self.blocks_of(modes, &keys, &clock);
        if blocks.iter().any(Option::is_some) {
            // Peek at the quotas, too: their wait may be longer than the block.
            let asked = self.asked(&keys, cost, may_wait);
            self.table.open(asked, &clock);
            return self.preview_with(&blocks, asked, &clock);
        }
        let status = ask(self.asked(&keys, cost, may_wait), &clock);
        let Decision::Denied(denial) = status.decision else { return status };
        let denied_until = clock.ahead(denial.wait_ns());
        for dimension in denial.violated_quotas() {
            blocks[dimension] = keys[dimension].and_then(|key| self.penalties(modes, key)?.note_denial(key, &clock));
        }
        if blocks.iter().all(Option::is_none) {
            return status;
        }
        let denial = denial.after(denied_until.saturating_sub(clock.last()).max(1));
        let decision = told_with(&blocks, Decision::Denied(denial), &clock);
        with_blocks(status.with_decision(decision), &blocks, &clock)
    }

    /// The denial of a cost above a limit, as [`Engine::by_cost`] of one key.
    fn by_cost_together(&self, keys: &Together, cost: u32) -> Option<Status> {
        let of_key = |(dimension, key): (usize, &Option<Fingerprint>)| {
            Some(self.table.version_for((*key)?).denial_of_cost(cost)?.in_dimension(dimension))
        };
        let denial = keys.iter().enumerate().filter_map(of_key).reduce(Denial::and)?;
        let status = self.table.preview_together(self.asked(keys, 0, true), &self.clock);
        Some(status.with_decision(Decision::Denied(denial)))
    }

    /// The answer of the quotas and the blocks together. Charges nothing.
    fn preview_with(&self, blocks: &Blocks, asked: table::Together<'_>, clock: &Noted<'_, C>) -> Status {
        let status = self.table.preview_together(asked, clock);
        let decision = told_with(blocks, status.decision, clock);
        with_blocks(status.with_decision(decision), blocks, clock)
    }

    fn blocks_of(&self, modes: &Modes, keys: &Together, clock: &Noted<'_, C>) -> Blocks {
        keys.map(|key| self.penalties(modes, key?)?.blocked_until(key?, clock))
    }

    fn asked<'a>(&self, keys: &'a Together, cost: u32, may_wait: bool) -> table::Together<'a> {
        table::Together { keys, cost, admits_without_place: self.at_cap.admits(), may_wait }
    }
}

/// The decision, if the lists decide. Otherwise removes the keys on the allow list, so that their
/// dimensions are not asked.
fn by_lists(modes: &Modes, keys: &mut Together) -> Option<Decision> {
    let lists = modes.lists.as_ref()?;
    let mut denied: Option<Denial> = None;
    for (dimension, place) in keys.iter_mut().enumerate() {
        match place.and_then(|key| lists.of(key)) {
            Some(List::Deny) => {
                let denial = Denial::new(Denial::NEVER, DenialReason::DenyList, 0).in_dimension(dimension);
                denied = Some(denied.map_or(denial, |others| others.and(denial)));
            }
            Some(List::Allow) => *place = None,
            None => {}
        }
    }
    let nothing_asked = || keys.iter().all(Option::is_none).then_some(Decision::Admitted(Admission::UNCOUNTED));
    denied.map(Decision::Denied).or_else(nothing_asked)
}

/// The status with no permits left of the keys that are blocked, until their blocks end.
fn with_blocks<C: Clock>(mut status: Status, blocks: &Blocks, clock: &Noted<'_, C>) -> Status {
    for (dimension, until) in blocks.iter().enumerate().filter_map(|(dimension, until)| Some((dimension, (*until)?))) {
        status.left.block(dimension, until.saturating_sub(clock.last()).max(1));
    }
    status
}

/// The decision of the quotas and the blocks together: of all denials, the one with the longest
/// wait. A blocked key is denied by its block, whatever its quota answers.
fn told_with<C: Clock>(blocks: &Blocks, by_quota: Decision, clock: &Noted<'_, C>) -> Decision {
    // The block may have ended since it was read.
    let from_now = |until: u64| until.saturating_sub(clock.last()).max(1);
    let block = |dimension, wait| Denial::new(wait, DenialReason::Penalty, 0).in_dimension(dimension);
    let blocks_told =
        blocks.iter().enumerate().filter_map(|(dimension, until)| Some(block(dimension, from_now((*until)?))));
    let Some(blocked) = blocks_told.reduce(Denial::and) else { return by_quota };
    let Decision::Denied(denial) = by_quota else { return Decision::Denied(blocked) };
    let both = blocked.and(denial);
    let dimension = both.dimension();
    Decision::Denied(if blocks[dimension].is_some() { block(dimension, both.wait_ns()).and(both) } else { both })
}
