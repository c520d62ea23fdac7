//! The decision of a limiter with modes. A request is asked of the lists, the blocks of penalties and
//! the quotas, in turn. Shadow mode then turns a denial into an admission.

use super::{Asked, Modes};
use crate::caps::MAX_DIMENSIONS;
use crate::decision::{Decision, Denial, DenialReason, Left, Shadowed, Status};
use crate::fingerprint::Fingerprint;
use crate::lists::List;
use crate::penalty::{Block, Noted, Penalties};
use crate::quota::Quota;
use crate::state::joint::{KeyedRequest, Together};
use crate::state::table::{Charges, Table};
use crate::tier::Tiers;

/// The block of each dimension's key, if it is blocked.
type Blocks = [Option<Block>; MAX_DIMENSIONS];

impl Modes {
    pub(super) fn decide_by_all(
        &self,
        asked: Asked<'_>,
        keyed: KeyedRequest<'_>,
        charges: Option<&mut Charges>,
    ) -> (Status, Decision) {
        let status = self.beside_shadow(asked, keyed, charges);
        let shown = self.show(status.decision, keyed.keys, keyed.request.peeks);
        (status, shown)
    }

    /// The penalties of the key's dimension.
    pub(crate) fn penalties_for(&self, key: Fingerprint, tiers: &Tiers) -> Option<&Penalties> {
        self.penalties_of(tiers.dimension_of(key.group()))
    }

    /// The answer of all dimensions. If only dimensions deny that are in shadow mode by themselves, the
    /// answer of the others, which charge as if those were not there.
    fn beside_shadow(&self, asked: Asked<'_>, keyed: KeyedRequest<'_>, mut charges: Option<&mut Charges>) -> Status {
        if !self.has_any_shadow() {
            return self.by_lists_and_blocks(asked, keyed, charges);
        }
        let mut keys = Together::default();
        let keys = &mut keys[..keyed.keys.len()];
        keys.copy_from_slice(keyed.keys);
        let mut overruled = None;
        // Each round asks fewer keys.
        loop {
            let mut status = self.by_lists_and_blocks(asked, KeyedRequest { keys, ..keyed }, charges.as_deref_mut());
            match (status.decision, overruled) {
                (Decision::Denied(denial), _) if self.leave_shadow(denial, keys) => overruled = Some(denial),
                (Decision::Admitted(admission), Some(denial)) => {
                    if !keyed.request.peeks {
                        self.count_overruled();
                    }
                    status.decision = Decision::Admitted(admission.beside(denial));
                    return status;
                }
                _ => return status,
            }
        }
    }

    /// The answer of the lists or, for the keys on none, of the quotas and the blocks. A denial by
    /// the quotas may begin a block.
    fn by_lists_and_blocks(&self, asked: Asked<'_>, keyed: KeyedRequest<'_>, charges: Option<&mut Charges>) -> Status {
        let KeyedRequest { keys, request, .. } = keyed;
        let (mut unlisted, mut blocks): (Together, Blocks) = Default::default();
        let unlisted = &mut unlisted[..keys.len()];
        unlisted.copy_from_slice(keys);
        let shadowed = self.shadowed(keys);
        if let Some(status) = self.by_lists(asked.table, unlisted, shadowed) {
            return status;
        }
        let (clock, keyed) = (Noted::new(asked.clock), KeyedRequest { keys: unlisted, shadowed, ..keyed });
        for (block, key) in blocks.iter_mut().zip(keyed.keys) {
            *block = key.and_then(|key| self.penalties_for(key, asked.tiers)?.block_of(key, &clock));
        }
        if !request.peeks && blocks.iter().any(Option::is_some) {
            // Ask the quotas, too: their wait may be longer than the block.
            let status = asked.table.refuse(keyed, &clock);
            return with_blocks(status, &blocks, keyed, clock.last(), &clock);
        }
        let status = match request.peeks {
            true => asked.table.preview(keyed, &clock),
            false => asked.table.acquire_status(keyed, &clock, charges),
        };
        let told_at = clock.last();
        let denial = status.denial().filter(|denial| !request.peeks && !denial.never_fits());
        for dimension in denial.into_iter().flat_map(Denial::violated_quotas) {
            let key = keyed.keys[dimension];
            blocks[dimension] = key.and_then(|key| self.penalties_for(key, asked.tiers)?.note_denial(key, &clock));
        }
        with_blocks(status, &blocks, keyed, told_at, &clock)
    }

    /// The answer of the lists to a request with a denied key, or with none but allowed keys.
    /// Otherwise removes the allowed keys, so that their dimensions are not asked.
    fn by_lists(&self, table: &Table, keys: &mut [Option<Fingerprint>], shadowed: Shadowed) -> Option<Status> {
        let lists = self.lists.as_ref()?;
        let mut status = Status::nothing();
        for (dimension, asked) in keys.iter_mut().enumerate() {
            let Some((key, list)) = asked.and_then(|key| Some((key, lists.of(key)?))) else { continue };
            status.left.begin(dimension);
            let quotas = table.quotas_for(key);
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
}

/// The answer of the quotas, told at the reading `told_at`, and of the blocks. A blocked key has no
/// permits until its block ends, and is denied by it, whatever its quota answers, unless the cost
/// is an error. Of all denials the one with the longest wait is told.
fn with_blocks(
    mut status: Status,
    blocks: &Blocks,
    KeyedRequest { request, shadowed, .. }: KeyedRequest<'_>,
    told_at: u64,
    clock: &Noted<'_>,
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
        let denial = match denial.wait_ns() {
            Denial::NEVER => denial,
            wait_ns => denial.after(from_now(told_at.saturating_add(wait_ns))),
        };
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
