//! Requests of one key, or of one key of each dimension. In turn they are asked of the lists, the
//! blocks of penalties, and the quotas. Shadow mode then turns a denial into an admission.

use super::Engine;
use crate::caps::{AtKeyCap, MAX_DIMENSIONS};
use crate::clock::Clock;
use crate::decision::{Decision, Denial, DenialReason, Left, Shadowed, Status};
use crate::error::CostExceedsLimit;
use crate::fingerprint::Fingerprint;
use crate::lists::{List, ListError, Lists};
use crate::modes::Modes;
use crate::observer::{Feed, ObservedRequest, overrules};
use crate::penalty::{Block, Noted};
use crate::quota::Quota;
use crate::state::joint::KeyedRequest;
use crate::state::request::Request;
use crate::state::table::Refundable;

/// The keys of one request by their dimensions.
pub(crate) type Together = [Option<Fingerprint>; MAX_DIMENSIONS];

/// The block of each dimension's key, if it is blocked.
type Blocks = [Option<Block>; MAX_DIMENSIONS];

impl<C: Clock, F> Engine<C, F> {
    /// Decides a request, and tells the observers. Charges that can be refunded are added to
    /// `refundable`. `shown` are the keys as observers see them, if there are any.
    #[inline(never)]
    pub(crate) fn decide_observed(
        &self,
        keys: &[Option<Fingerprint>],
        request: Request,
        refundable: Option<&mut Vec<Refundable>>,
        shown: Option<&dyn Feed>,
    ) -> Status {
        let status = match keys {
            [Some(key)] if refundable.is_none() => self.decide_status(*key, request.cost),
            _ => self.decide_fully(keys, request, refundable),
        };
        if self.is_observed() && request.cost > 0 {
            // The observers see what the caller makes of a denial.
            let overruled = (status.is_denied() && overrules()).then(|| {
                let mut overruled = status.clone();
                overruled.decision = status.decision.overrule();
                overruled
            });
            let shown_status = overruled.as_ref().unwrap_or(&status);
            let result = self.fits(keys, request.cost, shown_status.decision).map(|()| shown_status);
            let quota = |denial: Denial| {
                let key = (*keys.get(denial.dimension())?)?;
                self.table.version_for(key, |version| version.quotas.get(denial.quota()).copied())
            };
            self.observers.tell(
                &ObservedRequest { shown, keys, names: &self.names, cost: request.cost },
                result,
                quota,
            );
        }
        status
    }

    /// Whether the cost is within all limits.
    ///
    /// # Errors
    /// If that is why the quotas deny the request, and neither a list nor shadow mode answers it.
    #[inline]
    pub(crate) fn fits(
        &self,
        keys: &[Option<Fingerprint>],
        cost: u32,
        decision: Decision,
    ) -> Result<(), CostExceedsLimit> {
        match decision {
            Decision::Denied(denial) if denial.never_fits() => self.limit_below(keys, cost, denial),
            _ => Ok(()),
        }
    }

    #[cold]
    fn limit_below(&self, keys: &[Option<Fingerprint>], cost: u32, denial: Denial) -> Result<(), CostExceedsLimit> {
        let limit = keys[denial.dimension()].map(|key| self.table.version_for(key, |version| version.most));
        match limit {
            Some(limit) if limit < cost => Err(CostExceedsLimit::new(cost, limit)),
            // It has been raised meanwhile.
            _ => Ok(()),
        }
    }

    /// Decides a request, with the permits left.
    pub(super) fn decide_fully(
        &self,
        keys: &[Option<Fingerprint>],
        request: Request,
        refundable: Option<&mut Vec<Refundable>>,
    ) -> Status {
        // It charges nothing, so it goes past counts and penalties.
        if request.cost == 0 {
            return self.peek(keys, request);
        }
        // Without lists, penalties and shadow mode the quotas alone decide.
        let Some(modes) = self.modes.get() else {
            let status = self.by_quotas(self.keyed(keys, request), &self.clock, refundable);
            self.count(status.decision);
            return status;
        };
        let mut status = self.beside_shadow(modes, keys, request, refundable);
        if !request.peeks {
            self.count(status.decision);
        }
        status.decision = modes.show(status.decision, keys, request.peeks);
        status
    }

    /// The answer of all dimensions. If only dimensions deny that are in shadow mode by themselves, the
    /// answer of the others, which charge as if those were not there.
    fn beside_shadow(
        &self,
        modes: &Modes,
        keys: &[Option<Fingerprint>],
        request: Request,
        mut refundable: Option<&mut Vec<Refundable>>,
    ) -> Status {
        if !modes.has_any_shadow() {
            return self.by_modes(modes, keys, request, refundable);
        }
        let mut asked = Together::default();
        let asked = &mut asked[..keys.len()];
        asked.copy_from_slice(keys);
        let mut overruled = None;
        // Each round asks fewer keys.
        loop {
            let mut status = self.by_modes(modes, asked, request, refundable.as_deref_mut());
            match (status.decision, overruled) {
                (Decision::Denied(denial), _) if modes.leave_shadow(denial, asked) => overruled = Some(denial),
                (Decision::Admitted(admission), Some(denial)) => {
                    if !request.peeks {
                        modes.count_overruled();
                    }
                    status.decision = Decision::Admitted(admission.beside(denial));
                    return status;
                }
                _ => return status,
            }
        }
    }

    /// The answer that such a request would get.
    pub(crate) fn peek(&self, keys: &[Option<Fingerprint>], request: Request) -> Status {
        // A request of cost zero is always admitted.
        match self.modes.get().filter(|_| request.cost > 0) {
            Some(_) => self.decide_fully(keys, request.peek(), None),
            None => self.table.preview(self.keyed(keys, request), &self.clock),
        }
    }

    /// Counts a decision. A cost above a limit is none.
    #[inline]
    pub(super) fn count(&self, decision: Decision) {
        if let Some(tally) = &self.tally {
            if !matches!(decision, Decision::Denied(denial) if denial.never_fits()) {
                tally.count(decision.is_admitted());
            }
        }
    }

    /// The answer of the lists or, for the keys on none, of the quotas and the blocks. A denial by
    /// the quotas may begin a block.
    fn by_modes(
        &self,
        modes: &Modes,
        keys: &[Option<Fingerprint>],
        request: Request,
        refundable: Option<&mut Vec<Refundable>>,
    ) -> Status {
        let (mut unlisted, mut blocks): (Together, Blocks) = Default::default();
        let unlisted = &mut unlisted[..keys.len()];
        unlisted.copy_from_slice(keys);
        let shadowed = modes.shadowed(keys);
        if let Some(status) = self.by_lists(modes, unlisted, shadowed) {
            return status;
        }
        let (clock, keyed) = (Noted::new(&self.clock), KeyedRequest { shadowed, ..self.keyed(unlisted, request) });
        for (block, key) in blocks.iter_mut().zip(keyed.keys) {
            *block = key.and_then(|key| self.penalties(modes, key)?.block_of(key, &clock));
        }
        if !request.peeks && blocks.iter().any(Option::is_some) {
            // Ask the quotas, too: their wait may be longer than the block.
            let status = self.table.refuse(keyed, &clock);
            return with_blocks(status, &blocks, keyed, clock.last(), &clock);
        }
        let (status, told_at) = (self.by_quotas(keyed, &clock, refundable), clock.last());
        let denial = status.denial().filter(|denial| !request.peeks && !denial.never_fits());
        for dimension in denial.into_iter().flat_map(Denial::violated_quotas) {
            let key = keyed.keys[dimension];
            blocks[dimension] = key.and_then(|key| self.penalties(modes, key)?.note_denial(key, &clock));
        }
        with_blocks(status, &blocks, keyed, told_at, &clock)
    }

    /// The answer of the quotas.
    fn by_quotas(
        &self,
        keyed: KeyedRequest<'_>,
        clock: &impl Clock,
        refundable: Option<&mut Vec<Refundable>>,
    ) -> Status {
        if keyed.request.peeks {
            return self.table.preview(keyed, clock);
        }
        let mut status = Status::nothing();
        let decision = self.table.acquire(keyed, clock, Some(&mut status.left), refundable);
        status.decided(decision, keyed.request.cost)
    }

    /// The answer of the lists to a request with a denied key, or with none but allowed keys.
    /// Otherwise removes the allowed keys, so that their dimensions are not asked.
    fn by_lists(&self, modes: &Modes, keys: &mut [Option<Fingerprint>], shadowed: Shadowed) -> Option<Status> {
        let lists = modes.lists.as_ref()?;
        let mut status = Status::nothing();
        for (dimension, asked) in keys.iter_mut().enumerate() {
            let Some((key, list)) = asked.and_then(|key| Some((key, lists.of(key)?))) else { continue };
            status.left.begin(dimension);
            let quotas = self.table.quotas_for(key);
            let limits = quotas.iter().map(Quota::limit);
            match list {
                List::Deny => {
                    status.left.set(limits.map(|limit| Left::none_for(limit, Denial::NEVER)));
                    let denial = Denial::new(Denial::NEVER, DenialReason::DenyList, 0).in_dimension(dimension);
                    let all = status.denial().map_or(denial, |others| others.and(denial, shadowed));
                    status = status.decided(Decision::Denied(all), 1);
                }
                List::Allow => {
                    status.left.set(limits.map(Left::all));
                    *asked = None;
                }
            }
        }
        (status.is_denied() || keys.iter().all(Option::is_none)).then_some(status)
    }

    pub(super) fn keyed<'a>(&self, keys: &'a [Option<Fingerprint>], request: Request) -> KeyedRequest<'a> {
        let admits_without_place = self.at_key_cap() == AtKeyCap::Admit;
        KeyedRequest { keys, request, admits_without_place, shadowed: Shadowed::default() }
    }

    /// The charges of a request of no permits, which can be settled. Keys on the allow list have
    /// none.
    pub(crate) fn charges_of_none(&self, keys: &[Option<Fingerprint>]) -> impl Iterator<Item = Refundable> {
        let is_allowed = |key: Fingerprint| self.lists().is_some_and(|lists| lists.of(key) == Some(List::Allow));
        keys.iter().flatten().filter(move |&&key| !is_allowed(key)).map(|&key| Refundable::of_none(key))
    }

    fn lists(&self) -> Option<&Lists> {
        self.modes.get()?.lists.as_ref()
    }

    pub(crate) fn put_on(&self, list: List, key: Fingerprint) -> Result<bool, ListError> {
        self.lists().ok_or(ListError::NoLists)?.put(list, key)
    }

    pub(crate) fn take_off_lists(&self, key: Fingerprint) -> bool {
        self.lists().is_some_and(|lists| lists.take_off(key))
    }
}

/// The answer of the quotas, told at the reading `told_at`, and of the blocks. A blocked key has no
/// permits until its block ends, and is denied by it, whatever its quota answers, unless the cost
/// is an error. Of all denials the one with the longest wait is told.
fn with_blocks<C: Clock>(
    mut status: Status,
    blocks: &Blocks,
    KeyedRequest { request, shadowed, .. }: KeyedRequest<'_>,
    told_at: u64,
    clock: &Noted<'_, C>,
) -> Status {
    let is_error = |denial: Denial| denial.never_fits() && !shadowed.has(denial.dimension());
    if blocks.iter().all(Option::is_none) || status.denial().is_some_and(is_error) {
        return status;
    }
    // A block may have ended since it was read.
    let from_now = |until: u64| until.saturating_sub(clock.last()).max(1);
    let by_block = |dimension, block: Block, wait_ns| {
        Denial::new(wait_ns, DenialReason::Penalty, block.number).in_dimension(dimension)
    };
    let blocked = || blocks.iter().enumerate().filter_map(|(dimension, block)| Some((dimension, (*block)?)));
    for (dimension, Block { until, .. }) in blocked() {
        let later = |wait_ns: u64| from_now(until.max(told_at.saturating_add(wait_ns)));
        status.left.change_in(dimension, |left| {
            left.denied(|wait_ns| if wait_ns == Denial::NEVER { wait_ns } else { later(wait_ns) })
        });
    }
    let by_quotas = status.denial().map(|denial| {
        if denial.never_fits() {
            return denial;
        }
        let denial = denial.after(from_now(told_at.saturating_add(denial.wait_ns())));
        // A wait for a place is told as such, because it may not be the last one.
        match blocks[denial.dimension()].filter(|_| denial.reason() == DenialReason::Quota) {
            Some(block) => by_block(denial.dimension(), block, denial.wait_ns()).and(denial, shadowed),
            None => denial,
        }
    });
    let by_blocks = blocked().map(|(dimension, block)| by_block(dimension, block, from_now(block.until)));
    match by_quotas.into_iter().chain(by_blocks).reduce(|all, other| all.and(other, shadowed)) {
        Some(denial) => status.decided(Decision::Denied(denial), request.cost),
        None => status,
    }
}
