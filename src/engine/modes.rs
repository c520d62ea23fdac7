//! Decisions on one key of a limiter with [`Modes`]. The lists are asked first, then the largest
//! cost, the block and the quota. Shadow mode then turns a denial into an admission.

use super::body::Engine;
use crate::clock::Clock;
use crate::decision::{Admission, Decision, Denial, DenialReason, Left, Status};
use crate::fingerprint::Fingerprint;
use crate::lists::{List, ListError, Lists};
use crate::modes::Modes;
use crate::noted::Noted;
use crate::penalty::Penalties;
use crate::reservation::Charges;
use crate::state::plan::Ask;

impl<C: Clock, F> Engine<C, F> {
    /// The lists, if there are any.
    fn lists(&self) -> Option<&Lists> {
        self.modes.get()?.lists.as_ref()
    }

    pub(crate) fn put_on(&self, list: List, key: Fingerprint) -> Result<bool, ListError> {
        self.lists().ok_or(ListError::NoLists)?.put(list, key)
    }

    pub(crate) fn take_off_lists(&self, key: Fingerprint) -> bool {
        self.lists().is_some_and(|lists| lists.take_off(key))
    }

    /// Decides a request of at least one permit.
    #[inline(never)]
    pub(super) fn decide_in_modes(&self, modes: &Modes, key: Fingerprint, ask: Ask) -> (Status, Charges) {
        let show = |status: Status| Status { decision: modes.show(status.decision, &[Some(key)]), ..status };
        let listed = self.by_list(modes, key).map(|status| (status, Charges::Nothing));
        if let (None, Some(status)) = (&listed, self.by_cost(key, ask.cost)) {
            return (show(status), Charges::Nothing);
        }
        let (status, charges) =
            listed.unwrap_or_else(|| self.decide_with_penalty(self.penalties(modes, key), key, ask));
        self.count(status.is_admitted());
        (show(status), charges)
    }

    /// The answer to a peek.
    pub(super) fn peek_in_modes(&self, modes: &Modes, key: Fingerprint, ask: Ask) -> Status {
        let clock = Noted::new(&self.clock);
        let status = self.by_list(modes, key).or_else(|| self.by_cost(key, ask.cost)).unwrap_or_else(|| {
            let until = self.penalties(modes, key).and_then(|penalties| penalties.blocked_until(key, &clock));
            let status = self.preview_quota(key, ask, &clock);
            let told = Told::of(&status, &clock);
            if let Some(until) = until { told.blocked(status, until, &clock) } else { status }
        });
        Status { decision: modes.preview(status.decision, &[Some(key)]), ..status }
    }

    fn by_list(&self, modes: &Modes, key: Fingerprint) -> Option<Status> {
        let quotas = self.table.quotas_for(key);
        let never = Denial::new(Denial::NEVER, DenialReason::DenyList, 0);
        Some(match modes.list_of(key)? {
            List::Deny => {
                Status::by_other(Decision::Denied(never), &quotas, |limit| Left::none_for(limit, Denial::NEVER))
            }
            List::Allow => Status::by_other(Decision::Admitted(Admission::UNCOUNTED), &quotas, Left::all),
        })
    }

    /// The denial of a cost above the limit, which is not counted as a decision. Without shadow mode
    /// such a request is an error, unless its key was taken off a list, or its limit lowered, since
    /// the cost was checked.
    fn by_cost(&self, key: Fingerprint, cost: u32) -> Option<Status> {
        let denial = self.table.version_for(key).denial_of_cost(cost)?;
        let status = self.table.peek(key, Ask::acquire(0), &self.clock);
        Some(status.decided(Decision::Denied(denial), cost))
    }

    /// A blocked key gets the answer to a peek.
    fn decide_with_penalty(&self, penalties: Option<&Penalties>, key: Fingerprint, ask: Ask) -> (Status, Charges) {
        let clock = Noted::new(&self.clock);
        if let Some(until) = penalties.and_then(|penalties| penalties.blocked_until(key, &clock)) {
            // Ask the quota, too: its wait may be longer than the block.
            let refused = self.table.refuse(key, ask.cost, &clock);
            let status = refused.unwrap_or_else(|| self.preview_quota(key, ask, &clock));
            return (Told::of(&status, &clock).blocked(status, until, &clock), Charges::Nothing);
        }
        match (self.ask_quota(key, ask, &clock), penalties) {
            // The key's own permits deny it, and not the key cap.
            ((status, Charges::One(none)), Some(penalties)) if status.is_denied() => {
                let told = Told::of(&status, &clock);
                let until = penalties.note_denial(key, &clock);
                let status = if let Some(until) = until { told.blocked(status, until, &clock) } else { status };
                (status, Charges::One(none))
            }
            (answer, _) => answer,
        }
    }
}

/// The times of the quota's answer.
struct Told {
    denied_until: u64,
    /// The reading from which the waits of the status count.
    told_at: u64,
}

impl Told {
    fn of<C: Clock>(status: &Status, clock: &Noted<'_, C>) -> Self {
        Self { denied_until: clock.denied_until(status).unwrap_or(0), told_at: clock.last() }
    }

    /// The answer to a key that is blocked until then.
    fn blocked<C: Clock>(self, mut status: Status, until: u64, clock: &Noted<'_, C>) -> Status {
        // The block may have ended since it was read.
        let from_now = |time: u64| time.saturating_sub(clock.last()).max(1);
        let retry_after_ns = from_now(until.max(self.denied_until));
        let told_after = |wait_ns: u64| from_now(until.max(self.told_at.saturating_add(wait_ns)));
        status.left.change(|left| Left {
            remaining: 0,
            // The remaining permits are free once the block has ended.
            next_after_ns: told_after(if left.remaining > 0 { 0 } else { left.next_after_ns }),
            reset_after_ns: told_after(left.reset_after_ns),
            ..left
        });
        status.decided(Decision::Denied(Denial::new(retry_after_ns, DenialReason::Penalty, 0)), 1)
    }
}
