//! Joint requests: one key of each dimension, all of them charged or none.

use super::key::Key;
use super::places::Taken;
use super::plan::Ask;
use super::shard::{Full, Prepared, Request};
use super::table::{Refundable, Table};
use crate::caps::MAX_DIMENSIONS;
use crate::clock::Clock;
use crate::decision::{Admission, Decision, Denial, DenialReason, PerQuota, Status};
use crate::fingerprint::Fingerprint;

/// A joint request.
#[derive(Clone, Copy)]
pub(crate) struct Together<'a> {
    /// The keys by dimension. An absent one is not asked.
    pub(crate) keys: &'a [Option<Fingerprint>],
    /// The permits asked of each.
    pub(crate) cost: u32,
    /// Whether a key without a place is skipped.
    pub(crate) admits_without_place: bool,
    /// Whether the admission may have a delay.
    pub(crate) may_wait: bool,
}

impl Together<'_> {
    fn ask(&self) -> Ask {
        if self.may_wait { Ask::acquire(self.cost) } else { Ask::reserve(self.cost, 0) }
    }

    /// The requests of its keys, with their dimensions.
    fn requests(&self) -> impl Iterator<Item = (usize, Request)> {
        let ask = self.ask();
        let requests = self.keys.iter().enumerate();
        requests.filter_map(move |(dimension, key)| Some((dimension, Request { key: Key::of((*key)?), ask })))
    }
}

/// The answers of some keys and of one more. Of all denials, the one with the longest wait, which
/// names the others.
fn and(all: Decision, (dimension, another): (usize, Decision)) -> Decision {
    match (all, another) {
        (Decision::Admitted(all), Decision::Admitted(another)) => Decision::Admitted(another.and(all)),
        (Decision::Denied(_), Decision::Admitted(_)) => all,
        (Decision::Admitted(_), Decision::Denied(another)) => Decision::Denied(another.in_dimension(dimension)),
        (Decision::Denied(all), Decision::Denied(another)) => {
            Decision::Denied(all.and(another.in_dimension(dimension)))
        }
    }
}

/// The answer that a joint request would get.
struct Preview {
    status: Status,
    /// Whether a key found no place.
    is_at_cap: bool,
    /// Whether a key has no permits: the request may begin its account, even if it is denied.
    has_new: bool,
}

impl Table {
    /// Takes the permits of each of the keys, or of none. Writes the permits left to `told`, and
    /// what refunds need to `refundable`.
    ///
    /// Keys are asked in the order of their dimensions. Each new one takes a place, up to the first
    /// key that denies the request or finds none. If a quota denies it, quotas alone are named.
    pub(crate) fn acquire_together(
        &self,
        asked: Together<'_>,
        clock: &impl Clock,
        mut told: Option<&mut PerQuota>,
        mut refundable: Option<&mut Vec<Refundable>>,
    ) -> Decision {
        let mut lost = 0;
        loop {
            if let Some(told) = told.as_deref_mut() {
                *told = PerQuota::NONE;
            }
            if let Some(admission) = self.try_together(asked, clock, told.as_deref_mut(), refundable.as_deref_mut()) {
                return Decision::Admitted(admission);
            }
            let Preview { status, is_at_cap, has_new } = self.look_together(asked, clock);
            let decision = status.decision;
            if decision.is_denied() {
                if has_new {
                    self.open(asked, clock);
                }
                if is_at_cap {
                    self.count_refused();
                }
                if let Some(told) = told {
                    *told = status.left;
                }
                return decision;
            }
            super::shard::back_off(&mut lost);
        }
    }

    /// One attempt. `None` if a key denies the request or finds no place, or another thread was
    /// faster.
    fn try_together(
        &self,
        asked: Together<'_>,
        clock: &impl Clock,
        mut told: Option<&mut PerQuota>,
        refundable: Option<&mut Vec<Refundable>>,
    ) -> Option<Admission> {
        let with = self.with(clock);
        let mut prepared: [Option<(Key, Prepared)>; MAX_DIMENSIONS] = [const { None }; MAX_DIMENSIONS];
        let mut taken: [Option<Taken<'_>>; MAX_DIMENSIONS] = [const { None }; MAX_DIMENSIONS];
        let (mut admission, mut skips) = (Admission::UNCOUNTED, false);
        for (dimension, request) in asked.requests() {
            if let Some(told) = told.as_deref_mut() {
                told.begin(dimension);
            }
            let (shard, place) = (self.shard(request.key), &mut taken[dimension]);
            match shard.prepare(with, request, place, &prepared, told.as_deref_mut()) {
                Ok(another) => {
                    let another = another?;
                    let Decision::Admitted(another_admission) = another.decision.into() else { return None };
                    admission = another_admission.and(admission);
                    prepared[dimension] = Some((request.key, another));
                }
                Err(Full) if asked.admits_without_place && self.make_room(1, clock).is_err() => {
                    skips = true;
                    if let Some(told) = told.as_deref_mut() {
                        self.tell_of_new(request, clock, told);
                    }
                }
                Err(Full) => return None,
            }
        }
        if skips {
            self.count_refused();
        }
        let prepared = || prepared.iter().flatten();
        let Some((key, first)) = prepared().next() else { return Some(admission) };
        let mut parts = [first.part(self.shard_of(*key)); MAX_DIMENSIONS];
        let mut count = 0;
        for (part, (key, prepared)) in parts.iter_mut().zip(prepared()) {
            *part = prepared.part(self.shard_of(*key));
            count += 1;
        }
        if !self.claim(&mut parts[..count]) {
            return None;
        }
        taken.into_iter().flatten().for_each(Taken::keep);
        if let Some(refundable) = refundable {
            let charge = |(key, prepared): &(Key, Prepared)| Refundable {
                key: *key,
                cost: asked.cost,
                charged: prepared.charged(),
            };
            refundable.extend(prepared().map(charge));
        }
        Some(admission)
    }

    /// The answer of [`acquire_together`](Self::acquire_together). Charges nothing. At the key cap it
    /// makes room for new keys, as the request would.
    pub(crate) fn preview_together(&self, asked: Together<'_>, clock: &impl Clock) -> Status {
        self.look_together(asked, clock).status
    }

    fn look_together(&self, asked: Together<'_>, clock: &impl Clock) -> Preview {
        loop {
            if let Some(preview) = self.try_look_together(asked, clock) {
                return preview;
            }
        }
    }

    /// One attempt. `None` if it made room: the place may have been that of a key of this request.
    fn try_look_together(&self, asked: Together<'_>, clock: &impl Clock) -> Option<Preview> {
        let mut all = Preview { status: Status::nothing(), is_at_cap: false, has_new: false };
        let (mut new, mut without_place) = (0, None);
        for (dimension, request) in asked.requests() {
            let left = &mut all.status.left;
            left.begin(dimension);
            let (known, free) = (self.peek_known(request, clock, left), self.free_places());
            all.has_new |= known.is_none();
            let is_denied = all.status.decision.is_denied() || without_place.is_some();
            let takes_place = known.is_none() && asked.cost > 0 && !is_denied;
            if takes_place && new >= free {
                let wait_ns = self.make_room(new + 1, clock).err().filter(|_| self.free_places() <= free)?;
                all.is_at_cap = true;
                without_place = (!asked.admits_without_place).then_some((dimension, wait_ns));
                self.tell_of_new(request, clock, left);
                continue;
            }
            new += u64::from(takes_place);
            let decision = known.unwrap_or_else(|| self.peek_new(request, clock, left));
            if decision.is_denied() {
                left.violate(asked.cost);
            }
            all.status.decision = and(all.status.decision, (dimension, decision));
        }
        // If quotas deny the request, they alone are named.
        if let Some((dimension, wait_ns)) = without_place.filter(|_| all.status.is_admitted()) {
            all.status.left.block(dimension, wait_ns);
            let denied = Decision::Denied(Denial::new(wait_ns, DenialReason::KeyCap, 0));
            all.status.decision = and(all.status.decision, (dimension, denied));
        }
        Some(all)
    }

    /// Writes the permits left of a new key.
    fn tell_of_new(&self, Request { key, ask }: Request, clock: &impl Clock, left: &mut PerQuota) {
        let _ = self.peek_new(Request { key, ask: Ask { cost: 0, ..ask } }, clock, left);
    }

    /// Opens the accounts of keys that start low and deny the request, which is the first to ask
    /// them.
    pub(crate) fn open(&self, asked: Together<'_>, clock: &impl Clock) {
        for (_, request) in asked.requests().filter(|(_, request)| request.ask.cost > 0) {
            self.open_low(request, clock);
        }
    }

    /// The same for one key.
    pub(super) fn open_low(&self, request: Request, clock: &impl Clock) {
        let shard = self.shard(request.key);
        if shard.is_vacant(self.with(clock), request.key)
            && self.peek_new(request, clock, &mut { PerQuota::NONE }).is_denied()
        {
            if self.free_places() == 0 {
                let _ = self.make_room(1, clock);
            }
            shard.open(self.with(clock), request);
        }
    }
}
