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
        if self.may_wait { Ask::Acquire } else { Ask::Reserve { within: 0 } }
    }

    /// The requests of its keys, with their dimensions.
    fn requests(&self) -> impl Iterator<Item = (usize, Request)> {
        let (cost, ask) = (self.cost, self.ask());
        let requests = self.keys.iter().enumerate();
        requests.filter_map(move |(dimension, key)| Some((dimension, Request { key: Key::of((*key)?), cost, ask })))
    }
}

/// A bit for each of some dimensions.
type Dimensions = u8;

/// The dimensions whose keys deny a request: those that have permits, and all.
#[derive(Clone, Copy, Default)]
struct Denied {
    by_known: Dimensions,
    by_any: Dimensions,
}

/// The outcome of one attempt.
enum Outcome {
    Admitted(Decision),
    /// This dimension has no place for its key.
    Full(usize),
    /// A key denies the request, or another thread was faster. These dimensions were passed over.
    Again(Dimensions),
}

/// The answers of some keys and of one more. Of all denials, the one with the longest wait, which
/// names the others.
fn and(all: Decision, dimension: usize, another: Decision) -> Decision {
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
fn no_place(dimension: usize, retry_after_ns: u64) -> Denial {
    Denial::new(retry_after_ns, DenialReason::KeyCap, 0).in_dimension(dimension)
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
        let (mut lost, mut passes_over) = (0, false);
        loop {
            if let Some(told) = told.as_deref_mut() {
                told.clear();
            }
            match self.try_together(asked, passes_over, clock, told.as_deref_mut(), refundable.as_deref_mut()) {
                Outcome::Admitted(decision) => return decision,
                Outcome::Full(dimension) => {
                    let mut status = JointStatus::new();
                    let (decision, denied) = self.look_together(asked, 0, clock, &mut status);
                    // A key that has a place denies the request, so no other needs one.
                    if denied.by_known != 0 {
                        return tell(told, status, decision);
                    }
                    let wanted = asked.requests().filter(|&(_, request)| self.needs_place(request.key, clock)).count();
                    let made = self.make_room(wanted as u64, clock);
                    passes_over = made.is_err() && asked.admits_without_place;
                    if let (Err(wait_ns), false) = (made, passes_over) {
                        let mut status = JointStatus::new();
                        let (denied, _) = self.look_together(asked, 0, clock, &mut status);
                        let decision = and(denied, dimension, Decision::Denied(no_place(dimension, wait_ns)));
                        status.deny_without_place(no_place(dimension, wait_ns));
                        self.count_refused();
                        return tell(told, status, decision);
                    }
                }
                Outcome::Again(passed_over) => {
                    let mut status = JointStatus::new();
                    let (decision, _) = self.look_together(asked, passed_over, clock, &mut status);
                    passes_over = false;
                    if decision.is_denied() {
                        self.open(asked, clock);
                        return tell(told, status, decision);
                    }
                    super::shard::back_off(&mut lost);
                }
            }
        }
    }

    /// One attempt.
    fn try_together(
        &self,
        asked: Together<'_>,
        passes_over: bool,
        clock: &impl Clock,
        mut told: Option<&mut JointStatus>,
        refundable: Option<&mut Vec<Refundable>>,
    ) -> Outcome {
        let with = self.with(clock);
        let mut prepared: [Option<(Key, Prepared)>; MAX_DIMENSIONS] = [const { None }; MAX_DIMENSIONS];
        let mut taken: [Option<Taken<'_>>; MAX_DIMENSIONS] = [const { None }; MAX_DIMENSIONS];
        let (mut admission, mut passed_over) = (Admission::COUNTED, 0);
        let mut left = PerQuota::NONE;
        for (dimension, request) in asked.requests() {
            let tells = told.is_some().then_some(&mut left);
            match self.shard(request.key).prepare(with, request, &mut taken[dimension], tells) {
                Ok(Some(another)) => {
                    admission = admission.and(Admission::delayed(another.delay_ns));
                    prepared[dimension] = Some((request.key, another));
                }
                Err(Full) if passes_over => {
                    passed_over |= 1 << dimension;
                    if told.is_some() {
                        left = self.peek_new(Request { cost: 0, ..request }, clock).left;
                    }
                }
                Err(Full) => return Outcome::Full(dimension),
                Ok(None) => return Outcome::Again(passed_over),
            }
            if let Some(told) = told.as_deref_mut() {
                told.push(dimension, &left, None);
            }
        }
        if passed_over > 0 {
            self.count_refused();
        }
        let prepared = || prepared.iter().flatten();
        let Some((key, first)) = prepared().next() else {
            return Outcome::Admitted(Decision::Admitted(Admission::UNCOUNTED));
        };
        let mut parts = [first.part(self.shard_of(*key)); MAX_DIMENSIONS];
        let mut count = 0;
        for (part, (key, prepared)) in parts.iter_mut().zip(prepared()) {
            *part = prepared.part(self.shard_of(*key));
            count += 1;
        }
        if !self.claim(&mut parts[..count]) {
            return Outcome::Again(passed_over);
        }
        taken.into_iter().flatten().for_each(Taken::keep);
        if let Some(refundable) = refundable {
            let charge = |(key, prepared): &(Key, Prepared)| Refundable {
                key: *key,
                cost: asked.cost,
                charged: prepared.charged,
            };
            refundable.extend(prepared().map(charge));
        }
        Outcome::Admitted(Decision::Admitted(admission))
    }

    fn needs_place(&self, key: Key, clock: &impl Clock) -> bool {
        self.shard(key).is_vacant(self.with(clock), key)
    }

    /// The answers of all keys, one after the other, with the permits left, and the dimensions that
    /// deny. Those that are passed over don't. Charges nothing.
    fn look_together(
        &self,
        asked: Together<'_>,
        passed_over: Dimensions,
        clock: &impl Clock,
        status: &mut JointStatus,
    ) -> (Decision, Denied) {
        status.clear();
        let (mut all, mut denied) = (Decision::Admitted(Admission::UNCOUNTED), Denied::default());
        for (dimension, request) in asked.requests() {
            let known = self.peek_known(request, clock);
            let Status { decision, left } = known.unwrap_or_else(|| self.peek_new(request, clock));
            if passed_over >> dimension & 1 == 1 {
                status.push(dimension, &left, None);
                continue;
            }
            denied.by_any |= u8::from(decision.is_denied()) << dimension;
            denied.by_known |= u8::from(decision.is_denied() && known.is_some()) << dimension;
            status.push(dimension, &left, decision.is_denied().then_some(asked.cost));
            all = and(all, dimension, decision);
        }
        (all, denied)
    }

    /// The answer of [`acquire_together`](Self::acquire_together). Charges nothing.
    pub(crate) fn preview_together(&self, asked: Together<'_>, clock: &impl Clock) -> JointStatus {
        let (mut status, mut passed_over) = (JointStatus::new(), 0);
        loop {
            let (decision, denied) = self.look_together(asked, passed_over, clock, &mut status);
            status.decision = decision;
            if asked.cost == 0 || denied.by_known != 0 {
                return status;
            }
            let new = || asked.requests().filter(|&(_, request)| self.needs_place(request.key, clock));
            let stops = |dimension: usize| denied.by_any >> dimension & 1 == 1;
            let (mut places, mut without) = (self.free_places(), None);
            // In the order in which the request asks, up to the first key that denies it.
            for (dimension, request) in asked.requests().filter(|(dimension, _)| passed_over >> dimension & 1 == 0) {
                if self.needs_place(request.key, clock) {
                    match places.checked_sub(1) {
                        Some(others) => places = others,
                        None => {
                            without = Some(dimension);
                            break;
                        }
                    }
                }
                if stops(dimension) {
                    break;
                }
            }
            let Some(dimension) = without else { return status };
            // A key of the request may give its place up, if its permits have expired. Then look again.
            if let Err(wait_ns) = self.make_room(new().count() as u64, clock) {
                if !asked.admits_without_place {
                    status.deny_without_place(no_place(dimension, wait_ns));
                    return status;
                }
                passed_over |= 1 << dimension;
            }
        }
    }

    /// Opens the accounts of keys that start low, which the request was the first to ask.
    pub(crate) fn open(&self, asked: Together<'_>, clock: &impl Clock) {
        for (_, request) in asked.requests().filter(|(_, request)| request.cost > 0) {
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

fn tell(told: Option<&mut JointStatus>, status: JointStatus, decision: Decision) -> Decision {
    if let Some(told) = told {
        *told = status;
    }
    decision
}
