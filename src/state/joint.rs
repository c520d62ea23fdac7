//! Requests as the table answers them: of one key, or of one key of each dimension. All keys are
//! charged or none.

use super::cell::Key;
use super::plan::Version;
pub(crate) use super::request::KeyedRequest;
use super::request::{Request, RequestKind};
use super::shard::{Change, Charged, Full, Prepared, back_off};
use super::table::{Charges, Table};
use crate::caps::MAX_DIMENSIONS;
use crate::clock::Clock;
use crate::decision::{Admission, Decision, Denial, DenialReason, PerQuota, Shadowed, Status};
use crate::fingerprint::Fingerprint;
use crate::quota::Quota;

/// The keys of one request by their dimensions.
pub(crate) type Together = [Option<Fingerprint>; MAX_DIMENSIONS];

/// The answers of some keys and of one more. Of all denials, the one with the longest wait, which
/// names the others.
fn and(all: Decision, (dimension, another): (usize, Decision), shadowed: Shadowed) -> Decision {
    match (all, another) {
        (Decision::Admitted(all), Decision::Admitted(another)) => Decision::Admitted(another.and(all)),
        (Decision::Denied(_), Decision::Admitted(_)) => all,
        (Decision::Admitted(_), Decision::Denied(another)) => Decision::Denied(another.in_dimension(dimension)),
        (Decision::Denied(all), Decision::Denied(another)) => {
            Decision::Denied(all.and(another.in_dimension(dimension), shadowed))
        }
    }
}

/// How often a request looks again for a place that others took meanwhile and may give back: two
/// requests of several new keys may keep the last places from each other.
pub(super) const LOOKS_FOR_A_PLACE: u32 = 64;

/// The answer that a request would get.
struct Preview {
    status: Status,
    /// Whether a key found no place.
    is_at_cap: bool,
    /// Whether a key has no permits: the request may begin its account, even if it is denied.
    has_new: bool,
}

impl Table {
    /// Takes the permits of each of the keys, or of none. Writes the permits left to `left`, and
    /// what can be given back to `charges`.
    ///
    /// Keys are asked in the order of their dimensions. Each new one takes a place, up to the first
    /// key that denies the request or finds none. If a quota denies it, quotas alone are named.
    pub(crate) fn acquire(
        &self,
        mut keyed: KeyedRequest<'_>,
        clock: &dyn Clock,
        mut left: Option<&mut PerQuota>,
        mut charges: Option<&mut Charges>,
    ) -> Decision {
        let (mut lost, mut without_place) = (0, 0);
        keyed.request.enters = charges.is_some();
        loop {
            if let Some(left) = left.as_deref_mut() {
                left.clear();
            }
            let last_look = without_place == LOOKS_FOR_A_PLACE;
            let attempt = (self.attempt)(self, &keyed, last_look, clock, left.as_deref_mut(), charges.as_deref_mut());
            if let Ok(Some(decision)) = attempt {
                return decision;
            }
            without_place = LOOKS_FOR_A_PLACE.min(without_place + u32::from(attempt.is_err()));
            // It may have taken rings, and it may wait for a rebuild.
            for (_, key) in keyed.present() {
                self.with(key, clock).keep_up(&self.shard(key).root());
            }
            let Preview { status, is_at_cap, has_new } = self.look(keyed, last_look && attempt.is_err(), clock);
            if let Some(denial) = status.denial() {
                let (may_fit, is_single) = (!denial.never_fits(), keyed.present().nth(1).is_none());
                // Of one key with a place the attempt has the answer, and counts a refused request.
                if !is_single || is_at_cap || !may_fit {
                    // Otherwise the cost is an error.
                    if has_new && (may_fit || keyed.shadowed.has(denial.dimension())) {
                        self.open(keyed, clock);
                    }
                    if is_at_cap && may_fit {
                        self.count_refused();
                    }
                    if let Some(left) = left {
                        *left = status.left;
                    }
                    return status.decision;
                }
            }
            back_off(&mut lost);
        }
    }

    /// One attempt of [`acquire`](Self::acquire), of one key: most new keys need no more. `None` if it has
    /// no answer.
    pub(crate) fn acquire_one(
        &self,
        fingerprint: Fingerprint,
        request: Request,
        clock: &dyn Clock,
    ) -> Option<Decision> {
        self.attempt_of(Key::of(fingerprint), request, clock, None, None).ok()?
    }

    /// The answer of [`acquire`](Self::acquire), with the permits left.
    pub(crate) fn acquire_status(
        &self,
        keyed: KeyedRequest<'_>,
        clock: &dyn Clock,
        charges: Option<&mut Charges>,
    ) -> Status {
        let mut status = Status::nothing();
        let decision = self.acquire(keyed, clock, Some(&mut status.left), charges);
        status.decided(decision, keyed.request.cost)
    }

    /// One attempt of a request of one key. `None` if another thread was faster; an error if the key
    /// found no place.
    pub(super) fn attempt_one(
        &self,
        keyed: &KeyedRequest<'_>,
        last_look: bool,
        clock: &dyn Clock,
        mut left: Option<&mut PerQuota>,
        charges: Option<&mut Charges>,
    ) -> Result<Option<Decision>, Full> {
        debug_assert!(keyed.present().nth(1).is_none(), "a table for several keys has another attempt");
        let Some((_, key)) = keyed.present().next() else { return Ok(Some(Decision::Admitted(Admission::UNCOUNTED))) };
        let attempt = self.attempt_of(key, keyed.request, clock, left.as_deref_mut(), charges);
        if attempt.is_ok() || !keyed.admits_without_place || !last_look && self.make_room(1, clock).is_ok() {
            return attempt;
        }
        self.count_refused();
        if let Some(left) = left {
            self.tell_of_new(key, keyed.request, clock, left);
        }
        Ok(Some(Decision::Admitted(Admission::UNCOUNTED)))
    }

    #[inline(always)]
    fn attempt_of(
        &self,
        key: Key,
        request: Request,
        clock: &dyn Clock,
        left: Option<&mut PerQuota>,
        charges: Option<&mut Charges>,
    ) -> Result<Option<Decision>, Full> {
        let with = self.with(key, clock);
        let Some(mut prepared) = with.prepare(key, request, left)? else { return Ok(None) };
        // The word has changed since the proposal.
        if !prepared.change.swap() {
            return Ok(None);
        }
        let decision = Decision::from(prepared.decision);
        if let Some(charges) = charges.filter(|_| decision.is_admitted()) {
            charges.push(key, request.cost, prepared.charged);
        }
        // The clock may panic here.
        with.keep_up(&prepared.change.arena);
        Ok(Some(decision))
    }

    /// One attempt. `None` if another thread was faster, or one of several keys denies the request; an
    /// error if a key found no place. If there is one key, its word has the answer.
    pub(super) fn attempt_all(
        &self,
        keyed: &KeyedRequest<'_>,
        last_look: bool,
        clock: &dyn Clock,
        mut left: Option<&mut PerQuota>,
        charges: Option<&mut Charges>,
    ) -> Result<Option<Decision>, Full> {
        let mut changes: [Option<Change<'_>>; MAX_DIMENSIONS] = [const { None }; MAX_DIMENSIONS];
        let mut charged = [Charged::default(); MAX_DIMENSIONS];
        let (mut admission, mut denied, mut skips) = (Admission::UNCOUNTED, None, false);
        let is_single = keyed.present().nth(1).is_none();
        for (dimension, key) in keyed.present() {
            if let Some(left) = left.as_deref_mut() {
                left.begin(dimension);
            }
            match self.with(key, clock).prepare(key, keyed.request, left.as_deref_mut()) {
                Ok(another) => {
                    let Some(another) = another else { return Ok(None) };
                    match another.decision.into() {
                        Decision::Admitted(of_key) => admission = of_key.and(admission),
                        Decision::Denied(denial) if is_single => denied = Some(denial.in_dimension(dimension)),
                        // Nothing is charged. The look at all keys names each that denies.
                        Decision::Denied(_) => return Ok(None),
                    }
                    (changes[dimension], charged[dimension]) = (Some(another.change), another.charged);
                }
                Err(Full) if keyed.admits_without_place && (last_look || self.make_room(1, clock).is_err()) => {
                    skips = true;
                    if let Some(left) = left.as_deref_mut() {
                        self.tell_of_new(key, keyed.request, clock, left);
                    }
                }
                Err(Full) => return Err(Full),
            }
        }
        // A word has changed since its proposal. None was swapped, so all are proposed anew.
        if !self.commit(&mut changes) {
            return Ok(None);
        }
        if skips {
            self.count_refused();
        }
        if let Some(charges) = charges.filter(|_| denied.is_none()) {
            for (change, charged) in changes.iter().zip(charged) {
                change.iter().for_each(|change| charges.push(change.key, keyed.request.cost, charged));
            }
        }
        // The clock may panic here.
        for change in changes.iter().flatten() {
            self.with(change.key, clock).keep_up(&change.arena);
        }
        Ok(Some(denied.map_or(Decision::Admitted(admission), Decision::Denied)))
    }

    /// Answers a request that is denied by other than its quotas. They answer as if they alone
    /// decided, but charge nothing. The request counts if refused requests do, and opens the accounts
    /// that start low.
    pub(crate) fn refuse(&self, keyed: KeyedRequest<'_>, clock: &dyn Clock) -> Status {
        let counts = |version: &Version| version.quotas.iter().any(Quota::is_counting_refused);
        if !keyed.keys.iter().flatten().any(|&key| self.version_for(key, counts)) {
            self.open(keyed, clock);
            return self.preview(keyed, clock);
        }
        let refused = KeyedRequest { request: Request { kind: RequestKind::Refused, ..keyed.request }, ..keyed };
        self.acquire_status(refused, clock, None)
    }

    /// Takes one permit of a key, if it has one. Returns whether it did; `None` if there is no place
    /// for the key.
    pub(crate) fn takes_one(&self, key: Fingerprint, clock: &dyn Clock) -> Option<bool> {
        let (request, shadowed) = (Request::acquire(1), Shadowed::default());
        let keyed = KeyedRequest { keys: &[Some(key)], request, admits_without_place: false, shadowed };
        match self.acquire(keyed, clock, None, None) {
            Decision::Admitted(_) => Some(true),
            Decision::Denied(denial) => (denial.reason() == DenialReason::Quota).then_some(false),
        }
    }

    /// The wait of a request for one permit of a key, if it would be denied by its quotas.
    pub(crate) fn denied_for(&self, key: Fingerprint, clock: &dyn Clock) -> Option<u64> {
        let (key, left) = (Key::of(key), &mut { PerQuota::NONE });
        let looked = self.with(key, clock).look(key, |version, seen| version.peek(seen, Request::acquire(1), left));
        match looked?.into() {
            Decision::Admitted(_) => None,
            Decision::Denied(denial) => Some(denial.wait_ns()),
        }
    }

    /// The rest of the key's block, and the number of the block, if it is in a group of blocks and blocked.
    pub(crate) fn block_of(&self, key: Fingerprint, clock: &dyn Clock) -> Option<(u64, u8)> {
        let key = Key::of(key);
        self.with(key, clock).look(key, |version, seen| Some(version.plan.block(seen)))?
    }

    /// The answer of [`acquire`](Self::acquire). Charges nothing. At the key cap it
    /// makes room for new keys, as the request would.
    pub(crate) fn preview(&self, keyed: KeyedRequest<'_>, clock: &dyn Clock) -> Status {
        self.look(keyed, false, clock).status
    }

    /// If it `gives_up`, no new key finds a place, also not one that is free meanwhile.
    fn look(&self, keyed: KeyedRequest<'_>, gives_up: bool, clock: &dyn Clock) -> Preview {
        loop {
            if let Some(preview) = self.try_look(keyed, gives_up, clock) {
                return preview;
            }
        }
    }

    /// One attempt. `None` if it made room: the place may have been that of a key of this request.
    fn try_look(&self, keyed: KeyedRequest<'_>, gives_up: bool, clock: &dyn Clock) -> Option<Preview> {
        let mut all = Preview { status: Status::nothing(), is_at_cap: false, has_new: false };
        let (mut new, mut without_place) = (0, None);
        for (dimension, key) in keyed.present() {
            let left = &mut all.status.left;
            left.begin(dimension);
            let (decision, is_known) = self.with(key, clock).peek(key, keyed.request, left);
            let free = self.free_places();
            all.has_new |= !is_known;
            let is_denied = all.status.decision.is_denied() || without_place.is_some();
            // A key that never gets so many permits takes no place.
            let never_fits = matches!(decision, Decision::Denied(denial) if denial.never_fits());
            let takes_place = !is_known && keyed.request.cost > 0 && !is_denied && !never_fits;
            if takes_place && (gives_up || new >= free) {
                let wait_ns = match gives_up {
                    true => 1,
                    false => self.make_room(new + 1, clock).err().filter(|_| self.free_places() <= free)?,
                };
                all.is_at_cap = true;
                without_place = (!keyed.admits_without_place).then_some((dimension, wait_ns));
                self.tell_of_new(key, keyed.request, clock, left);
                continue;
            }
            new += u64::from(takes_place);
            all.status.decision = and(all.status.decision, (dimension, decision), keyed.shadowed);
        }
        // If quotas deny the request, they alone are named.
        if let Some((dimension, wait_ns)) = without_place.filter(|_| all.status.is_admitted()) {
            all.status.left.change_in(dimension, |left| left.denied(|wait| wait.max(wait_ns)));
            let denied = Decision::Denied(Denial::new(wait_ns, DenialReason::KeyCap, 0));
            all.status.decision = and(all.status.decision, (dimension, denied), keyed.shadowed);
        }
        all.status.left.denied = if all.status.is_denied() { keyed.request.cost } else { 0 };
        Some(all)
    }

    /// Writes the permits left of a new key.
    fn tell_of_new(&self, key: Key, request: Request, clock: &dyn Clock, left: &mut PerQuota) {
        let _ = self.with(key, clock).peek(key, Request { cost: 0, ..request }, left);
    }

    /// Opens the accounts of keys that start low and deny the request, which is the first to ask
    /// them.
    fn open(&self, keyed: KeyedRequest<'_>, clock: &dyn Clock) {
        for (_, key) in keyed.present().filter(|_| keyed.request.cost > 0) {
            // If there is no place, the account begins with a later request.
            let _ = self.open_low(key, keyed.request, clock);
        }
    }

    /// The same for one key.
    fn open_low(&self, key: Key, request: Request, clock: &dyn Clock) -> Result<(), Full> {
        let (with, mut lost) = (self.with(key, clock), 0);
        loop {
            let (decision, is_known) = with.peek(key, request, &mut { PerQuota::NONE });
            if is_known || !matches!(decision, Decision::Denied(denial) if !denial.never_fits()) {
                return Ok(());
            }
            if self.free_places() == 0 {
                let _ = self.make_room(1, clock);
            }
            if let Some(Prepared { decision, mut change, .. }) = with.prepare(key, request, None)? {
                // By another time it is admitted: nothing is charged for that.
                if Decision::from(decision).is_admitted() || change.swap() {
                    return Ok(());
                }
            }
            back_off(&mut lost);
        }
    }
}
