//! Decisions on several keys at once, one of each dimension.

use super::body::{AtCap, Engine};
use crate::caps::MAX_DIMENSIONS;
use crate::clock::Clock;
use crate::decision::{Admission, Decision, Denial, DenialReason, JointStatus};
use crate::fingerprint::Fingerprint;
use crate::lists::List;
use crate::modes::Modes;
use crate::noted::Noted;
use crate::table::{self, Refundable, TOGETHER};

/// The keys of one request by their dimensions.
pub(crate) type Together = [Option<Fingerprint>; MAX_DIMENSIONS];

/// The results beside the decision, if the caller needs them: charges that can be refunded, and the
/// permits left.
struct Extras<'a> {
    refundable: Option<&'a mut Vec<Refundable>>,
    told: Option<&'a mut JointStatus>,
}

/// The end of the block of each dimension's key, if it is blocked.
type Blocks = [Option<u64>; MAX_DIMENSIONS];

impl<C: Clock, F> Engine<C, F> {
    /// Decides. Charges that can be refunded are added to `refundable`.
    pub(crate) fn decide_together(
        &self,
        keys: &Together,
        cost: u32,
        refundable: Option<&mut Vec<Refundable>>,
    ) -> Decision {
        if cost == 0 {
            return Decision::Admitted(Admission::COUNTED);
        }
        let Some(modes) = &self.modes else {
            let decision = self.ask_together(keys, cost, refundable, &self.clock);
            self.count(decision.is_admitted());
            return decision;
        };
        self.decide_together_in_modes(modes, *keys, cost, Extras { refundable, told: None })
    }

    /// As [`decide_together`](Self::decide_together), with the permits left of each quota.
    pub(crate) fn decide_together_in_full(
        &self,
        keys: &Together,
        cost: u32,
        refundable: Option<&mut Vec<Refundable>>,
    ) -> JointStatus {
        if cost == 0 {
            return self.peek_together(keys, 0);
        }
        let Some(modes) = &self.modes else {
            let status = self.table.acquire_together_status(self.asked(keys, cost), &self.clock, refundable);
            self.count(status.is_admitted());
            return status;
        };
        let mut status = JointStatus::new();
        let decision =
            self.decide_together_in_modes(modes, *keys, cost, Extras { refundable, told: Some(&mut status) });
        status.with_decision(decision)
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
            decisions.extend(batch.into_iter().map(|keys| Ok(self.decide_together(&keys?, 1, None))));
            if count < most {
                return decisions;
            }
        }
    }

    /// The answer to a peek.
    pub(crate) fn peek_together(&self, keys: &Together, cost: u32) -> JointStatus {
        match &self.modes {
            // A request of cost zero is always admitted.
            Some(modes) if cost > 0 => {
                let status = self.peek_together_in_modes(modes, *keys, cost);
                let decision = modes.preview(status.decision);
                status.with_decision(decision)
            }
            _ => self.preview_together(keys, cost, &self.clock),
        }
    }

    #[inline(never)]
    fn peek_together_in_modes(&self, modes: &Modes, mut keys: Together, cost: u32) -> JointStatus {
        if let Some(decision) = by_lists(modes, &mut keys) {
            return JointStatus::new().with_decision(decision);
        }
        let clock = Noted::new(&self.clock);
        let blocks = blocks_of(modes, &keys, &clock);
        let status = self.preview_together(&keys, cost, &clock);
        let decision = told_with(&blocks, status.decision, &clock);
        status.with_decision(decision)
    }

    #[inline(never)]
    fn decide_together_in_modes(&self, modes: &Modes, keys: Together, cost: u32, extras: Extras<'_>) -> Decision {
        let decision = self.decide_by_modes(modes, keys, cost, extras);
        self.count(decision.is_admitted());
        modes.show(decision)
    }

    fn decide_by_modes(&self, modes: &Modes, mut keys: Together, cost: u32, mut extras: Extras<'_>) -> Decision {
        if let Some(decision) = by_lists(modes, &mut keys) {
            return decision;
        }
        let clock = Noted::new(&self.clock);
        let mut blocks = blocks_of(modes, &keys, &clock);
        if blocks.iter().any(Option::is_some) {
            // Peek at the quotas, too: their wait may be longer than the block.
            let status = self.preview_together(&keys, cost, &clock);
            let decision = told_with(&blocks, status.decision, &clock);
            if let Some(told) = extras.told {
                *told = status;
            }
            return decision;
        }
        let decision = match extras.told.take() {
            None => self.ask_together(&keys, cost, extras.refundable, &clock),
            Some(told) => {
                *told = self.table.acquire_together_status(self.asked(&keys, cost), &clock, extras.refundable);
                told.decision
            }
        };
        let Decision::Denied(denial) = decision else { return decision };
        let denied_until = clock.ahead(denial.wait_ns());
        for dimension in denial.violated_quotas() {
            blocks[dimension] = keys[dimension].and_then(|key| modes.penalties(key)?.note_denial(key, &clock));
        }
        if blocks.iter().all(Option::is_none) {
            return decision;
        }
        let denial = denial.after(denied_until.saturating_sub(clock.last()).max(1));
        told_with(&blocks, Decision::Denied(denial), &clock)
    }

    fn ask_together(
        &self,
        keys: &Together,
        cost: u32,
        refundable: Option<&mut Vec<Refundable>>,
        clock: &impl Clock,
    ) -> Decision {
        self.table.acquire_together(keys, cost, self.admits_at_cap(), clock, refundable)
    }

    fn preview_together(&self, keys: &Together, cost: u32, clock: &impl Clock) -> JointStatus {
        self.table.preview_together_status(self.asked(keys, cost), clock)
    }

    fn asked<'a>(&self, keys: &'a Together, cost: u32) -> table::Together<'a> {
        table::Together { keys, cost, admits_without_place: self.admits_at_cap() }
    }

    fn admits_at_cap(&self) -> bool {
        matches!(self.at_cap, AtCap::Admit)
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

fn blocks_of<C: Clock>(modes: &Modes, keys: &Together, clock: &Noted<'_, C>) -> Blocks {
    keys.map(|key| modes.penalties(key?)?.blocked_until(key?, clock))
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
