//! Joint requests: one key of each dimension, all of them charged or none.

use super::key::Key;
use super::places::Taken;
use super::plan::Ask;
use super::shard::{Full, Prepared, Request};
use super::table::{Refundable, Table};
use crate::caps::MAX_DIMENSIONS;
use crate::clock::Clock;
use crate::decision::{Admission, Decision, Denial, DenialReason, JointStatus, PerQuota, Status};
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

/// A bit for each of some dimensions.
type Dimensions = u8;

fn contains(dimensions: Dimensions, dimension: usize) -> bool {
    dimensions >> dimension & 1 == 1
}

/// Those of some dimensions that come after the first so many.
fn after_first(count: u64, dimensions: Dimensions) -> Dimensions {
    (0..count.min(MAX_DIMENSIONS as u64)).fold(dimensions, |rest, _| rest & rest.wrapping_sub(1))
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

/// The denial for want of a place.
fn no_place(retry_after_ns: u64) -> Denial {
    Denial::new(retry_after_ns, DenialReason::KeyCap, 0)
}

impl Table {
    /// Takes the permits of each of the keys, or of none. Writes the permits left to `told`, and
    /// what refunds need to `refundable`.
    pub(crate) fn acquire_together(
        &self,
        asked: Together<'_>,
        clock: &impl Clock,
        mut told: Option<&mut JointStatus>,
        mut refundable: Option<&mut Vec<Refundable>>,
    ) -> Decision {
        let (mut lost, mut without_place) = (0, 0);
        loop {
            if let Some(told) = told.as_deref_mut() {
                told.clear();
            }
            let (told_to, refundable) = (told.as_deref_mut(), refundable.as_deref_mut());
            if let Some(decision) = self.try_together(asked, without_place, clock, told_to, refundable) {
                return decision;
            }
            let (status, wanting);
            (status, wanting, without_place) = self.look_together(asked, clock);
            let decision = status.decision;
            if decision.is_denied() {
                // The accounts of new keys that deny it begin.
                for (_, request) in asked.requests().filter(|&(dimension, _)| contains(wanting, dimension)) {
                    self.open_low(request, clock);
                }
                if without_place != 0 {
                    self.count_refused();
                }
                if let Some(told) = told {
                    *told = status;
                }
                return decision;
            }
            super::shard::back_off(&mut lost);
        }
    }

    /// One attempt. It skips the keys without a place. `None` if a key denies the request or finds
    /// no place, or another thread was faster.
    fn try_together(
        &self,
        asked: Together<'_>,
        without_place: Dimensions,
        clock: &impl Clock,
        mut told: Option<&mut JointStatus>,
        refundable: Option<&mut Vec<Refundable>>,
    ) -> Option<Decision> {
        let with = self.with(clock);
        let mut prepared: [Option<(Key, Prepared)>; MAX_DIMENSIONS] = [const { None }; MAX_DIMENSIONS];
        let mut taken: [Option<Taken<'_>>; MAX_DIMENSIONS] = [const { None }; MAX_DIMENSIONS];
        let (mut admission, mut skips) = (Admission::COUNTED, false);
        let mut left = PerQuota::NONE;
        for (dimension, request) in asked.requests() {
            let tells = told.is_some().then_some(&mut left);
            match self.shard(request.key).prepare(with, request, &mut taken[dimension], &prepared, tells) {
                Ok(Some(another)) => {
                    let Decision::Admitted(another_admission) = another.decision.into() else { return None };
                    admission = admission.and(another_admission);
                    prepared[dimension] = Some((request.key, another));
                }
                Err(Full) if contains(without_place, dimension) => {
                    skips = true;
                    if told.is_some() {
                        left = self.peek_new(Request { ask: Ask { cost: 0, ..request.ask }, ..request }, clock).left;
                    }
                }
                Err(Full) | Ok(None) => return None,
            }
            if let Some(told) = told.as_deref_mut() {
                told.push(dimension, &left, None);
            }
        }
        if skips {
            self.count_refused();
        }
        let prepared = || prepared.iter().flatten();
        let Some((key, first)) = prepared().next() else {
            return Some(Decision::Admitted(Admission::UNCOUNTED));
        };
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
        Some(Decision::Admitted(admission))
    }

    /// The answer of [`acquire_together`](Self::acquire_together). Charges nothing.
    pub(crate) fn preview_together(&self, asked: Together<'_>, clock: &impl Clock) -> JointStatus {
        self.look_together(asked, clock).0
    }

    /// The answer to a request, the dimensions whose keys want a place, and those of them that find
    /// none. At the key cap it makes room for new keys, as far as it can.
    fn look_together(&self, asked: Together<'_>, clock: &impl Clock) -> (JointStatus, Dimensions, Dimensions) {
        let mut without_place = 0;
        loop {
            let (mut status, mut decisions, wanting) = self.look_at_each(asked, without_place, clock);
            let (wanted, free) = (u64::from(wanting.count_ones()), self.free_places());
            let no_room = if wanted <= free { None } else { Some(self.make_room(wanted, clock)) };
            let places = self.free_places();
            match no_room {
                // A place that became free may have been that of a key of this request.
                Some(made) if made.is_ok() || places > free => continue,
                Some(_) if asked.admits_without_place => {
                    without_place |= after_first(places, wanting);
                    continue;
                }
                Some(Err(wait_ns)) => {
                    without_place = after_first(places, wanting);
                    if !decisions.iter().flatten().any(Decision::is_denied) {
                        // The first of them denies the request.
                        without_place &= without_place.wrapping_neg();
                    }
                    for (dimension, decision) in decisions.iter_mut().enumerate() {
                        if contains(without_place, dimension) {
                            *decision = Some(Decision::Denied(no_place(wait_ns)));
                            status.deny_without_place(dimension, wait_ns);
                        }
                    }
                }
                _ => {}
            }
            let of_each = |(dimension, decision): (usize, Option<Decision>)| Some((dimension, decision?));
            status.decision = decisions.into_iter().enumerate().filter_map(of_each).fold(status.decision, and);
            return (status, wanting, without_place);
        }
    }

    /// The answers of the quotas of each key, as if there were a place for it, and the dimensions
    /// whose keys want one. Those are the new keys. If keys deny the request, they are the new keys
    /// among these, whose accounts begin. Keys that are skipped are asked for nothing.
    fn look_at_each(
        &self,
        asked: Together<'_>,
        skipped: Dimensions,
        clock: &impl Clock,
    ) -> (JointStatus, [Option<Decision>; MAX_DIMENSIONS], Dimensions) {
        let mut status = JointStatus::new();
        let mut decisions = [None; MAX_DIMENSIONS];
        let (mut new, mut denying) = (0, 0);
        for (dimension, request) in asked.requests() {
            let known = self.peek_known(request, clock);
            let Status { decision, left, .. } = known.unwrap_or_else(|| self.peek_new(request, clock));
            if contains(skipped, dimension) {
                status.push(dimension, &left, None);
                continue;
            }
            new |= u8::from(known.is_none() && asked.cost > 0) << dimension;
            denying |= u8::from(decision.is_denied()) << dimension;
            status.push(dimension, &left, decision.is_denied().then_some(asked.cost));
            decisions[dimension] = Some(decision);
        }
        (status, decisions, if denying == 0 { new } else { new & denying })
    }

    /// Opens the accounts of keys that start low, which the request was the first to ask.
    pub(crate) fn open(&self, asked: Together<'_>, clock: &impl Clock) {
        for (_, request) in asked.requests().filter(|(_, request)| request.ask.cost > 0) {
            self.open_low(request, clock);
        }
    }

    /// The same for one key.
    pub(super) fn open_low(&self, request: Request, clock: &impl Clock) {
        let shard = self.shard(request.key);
        if shard.is_vacant(self.with(clock), request.key) && self.peek_new(request, clock).is_denied() {
            shard.open(self.with(clock), request);
        }
    }
}
