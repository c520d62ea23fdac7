//! What a limiter with [`Modes`] does: the lists come first, then the block, then the quota; and in shadow mode nobody is denied.

use core::hash::Hash;

use super::keyed::Limiter;
use super::wants::Wants;
use crate::clock::Clock;
use crate::decision::{Admission, Decision, Denial, DenialReason, Status};
use crate::fingerprint::{Fingerprint, Fingerprinter};
use crate::keys::AsKey;
use crate::lists::{List, ListError};
use crate::modes::Modes;
use crate::noted::Noted;
use crate::penalty::Penalties;
use crate::reservation::Lents;

impl<K: Hash + ?Sized, C: Clock, F: Fingerprinter> Limiter<K, C, F> {
    /// Puts the key on the allow list: from when this returns until it is [taken off](Self::unlist), its requests are admitted without
    /// being charged ([`is_counted`](Admission::is_counted) is `false`), whatever its quota and a [`Penalty`](crate::Penalty) say.
    /// Only the deny list comes before. Says whether the key was not on this list yet.
    ///
    /// Lock-free, as are all the others while it runs. What the key was charged before stays charged. Lists last as long as the
    /// limiter: no time, no [`forget`](Self::forget) and no [`clear`](Self::clear) changes them, and they are not in a snapshot.
    ///
    /// ```
    /// use tollgate::{DenialReason, Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::builder(Quota::per_minute(1)).list_cap(100).build()?;
    /// limiter.allow("health check")?;
    /// limiter.deny("mallory")?;
    /// assert!((0..10).all(|_| limiter.try_acquire("health check").is_admitted()));
    /// let denial = limiter.try_acquire("mallory").into_result().unwrap_err();
    /// assert_eq!(denial.reason(), DenialReason::DenyList);
    ///
    /// limiter.unlist("mallory");
    /// assert!(limiter.try_acquire("mallory").is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ListError`] when the limiter was built without [`list_cap`](crate::LimiterBuilder::list_cap), or as many keys are listed as that
    /// allows (or are just being listed by other threads). A key that is on the list already is no error.
    pub fn allow(&self, key: impl AsKey<K>) -> Result<bool, ListError> {
        self.list(List::Allow, self.fingerprint(key))
    }

    /// Puts the key on the deny list: from when this returns until it is [taken off](Self::unlist), its requests are denied with
    /// [`DenialReason::DenyList`], also if it is on the allow list. (Not those of cost zero, which ask for nothing.) As no wait helps,
    /// [`retry_after`](Denial::retry_after) is [`Duration::MAX`](core::time::Duration::MAX). Says whether the key was not on this
    /// list yet.
    ///
    /// # Errors
    ///
    /// [`ListError`], as for [`allow`](Self::allow).
    pub fn deny(&self, key: impl AsKey<K>) -> Result<bool, ListError> {
        self.list(List::Deny, self.fingerprint(key))
    }

    /// Takes the key off both lists, so that its quota decides again. Says whether it was on one.
    pub fn unlist(&self, key: impl AsKey<K>) -> bool {
        let lists = self.modes.as_ref().and_then(|modes| modes.lists.as_ref());
        lists.is_some_and(|lists| lists.take_off(self.fingerprint(key)))
    }

    fn list(&self, list: List, key: Fingerprint) -> Result<bool, ListError> {
        let lists = self.modes.as_ref().and_then(|modes| modes.lists.as_ref());
        lists.ok_or(ListError::NoLists)?.put(list, key)
    }

    /// A request of at least one permit.
    #[inline(never)]
    pub(super) fn decide_in_modes(&self, modes: &Modes, key: Fingerprint, cost: u32, wants: &mut Wants) -> Status {
        let status = match (self.by_list(modes, key), &modes.penalties) {
            (Some(status), _) => status,
            (None, Some(penalties)) => self.decide_with_penalty(penalties, key, cost, wants),
            (None, None) => self.decide_by_quota(key, cost, wants, &self.clock).0,
        };
        self.count(status.is_admitted());
        match &modes.shadow {
            Some(shadow) if !status.is_admitted() => {
                shadow.count();
                Status { decision: status.decision.overrule(), ..status }
            }
            _ => status,
        }
    }

    /// What such a request would be told.
    pub(super) fn look_in_modes(&self, modes: &Modes, key: Fingerprint, cost: u32) -> Status {
        let clock = Noted::new(&self.clock);
        let status = self.by_list(modes, key).unwrap_or_else(|| {
            let until = modes.penalties.as_ref().and_then(|penalties| penalties.blocked_until(key, &clock));
            let status = self.preview_quota(key, cost, &clock);
            until.map_or(status, |until| Told::now(status, &clock).and_blocked(until, &clock))
        });
        match modes.shadow {
            Some(_) => Status { decision: status.decision.overrule(), ..status },
            None => status,
        }
    }

    fn by_list(&self, modes: &Modes, key: Fingerprint) -> Option<Status> {
        let limit = self.revision().most;
        let never = Denial::new(Denial::NEVER, DenialReason::DenyList, 0);
        Some(match modes.lists.as_ref()?.of(key)? {
            List::Deny => {
                Status { decision: Decision::Denied(never), limit, remaining: 0, reset_after_ns: Denial::NEVER }
            }
            List::Allow => {
                let decision = Decision::Admitted(Admission::UNCOUNTED);
                Status { decision, limit, remaining: limit, reset_after_ns: 0 }
            }
        })
    }

    fn decide_with_penalty(&self, penalties: &Penalties, key: Fingerprint, cost: u32, wants: &mut Wants) -> Status {
        let clock = Noted::new(&self.clock);
        if let Some(until) = penalties.blocked_until(key, &clock) {
            // The quota is asked too: its wait may be the longer one.
            return Told::now(self.preview_quota(key, cost, &clock), &clock).and_blocked(until, &clock);
        }
        let (status, by_own_quota) = self.decide_by_quota(key, cost, wants, &clock);
        if status.is_admitted() || !by_own_quota {
            return status;
        }
        let told = Told::now(status, &clock);
        penalties.note_denial(key, &clock).map_or(status, |until| told.and_blocked(until, &clock))
    }

    /// The quota's decision, and whether it is by the key's own permits.
    fn decide_by_quota(&self, key: Fingerprint, cost: u32, wants: &mut Wants, clock: &impl Clock) -> (Status, bool) {
        match wants {
            Wants::Decision => match self.table.decide_at_once(key, cost, clock) {
                Some(at_once) => (Status::bare(at_once.into()), true),
                None => self.ask_quota(key, cost, clock),
            },
            Wants::Numbers => self.ask_quota(key, cost, clock),
            Wants::ToBeLent { within, lents } => {
                let (status, lent) = self.ask_quota_to_lend(key, cost, *within, clock);
                let by_own_quota = matches!(lent, Lents::One(_));
                *lents = lent;
                (status, by_own_quota)
            }
        }
    }
}

/// What the quota said, in times that do not depend on when it was.
struct Told {
    status: Status,
    denied_until: u64,
    reset_at: u64,
}

impl Told {
    fn now<C: Clock>(status: Status, clock: &Noted<'_, C>) -> Self {
        let denied_until = clock.denied_until(&status).unwrap_or(0);
        Self { status, denied_until, reset_at: clock.ahead(status.reset_after_ns) }
    }

    /// What a key is told that is blocked until then.
    fn and_blocked<C: Clock>(self, until: u64, clock: &Noted<'_, C>) -> Status {
        // A wait of nothing is left if the thread was held up for as long as the key is blocked.
        let from_now = |time: u64| time.saturating_sub(clock.last()).max(1);
        let retry_after_ns = from_now(until.max(self.denied_until));
        Status {
            decision: Decision::Denied(Denial::new(retry_after_ns, DenialReason::Penalty, 0)),
            remaining: 0,
            reset_after_ns: from_now(until.max(self.reset_at)),
            ..self.status
        }
    }
}
