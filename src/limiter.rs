//! [`Limiter`]: many keys. [`DirectLimiter`]: none. Here are the methods that take a key, and how a
//! limiter of either kind asks its engine.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use std::sync::Arc;

use crate::clock::{Clock, MonotonicClock};
use crate::decision::{Decision, Status};
use crate::engine::Engine;
use crate::error::CostExceedsLimit;
use crate::fingerprint::{DefaultFingerprinter, Fingerprint, Fingerprinter};
use crate::keys::Tier;
use crate::keys::{AsKey, fingerprint_of};
use crate::lists::{List, ListError};
use crate::no_key::{Key, NoKey};
use crate::quota::Quota;
use crate::quotas::Shown;
use crate::state::request::Request;
use crate::state::table::{Charges, THE_KEY};

/// An exact, lock-free rate limiter for many keys, each with a quota of its own.
///
/// Threads share it by reference or `Arc`.
///
/// `K` is the type of the keys. A request passes the key in any form that hashes as `K` does:
/// `&str` for `String`, `7` for `u64`, `(7, "x")` for `(u64, String)`; see [`AsKey`]. The key is
/// hashed once. A request for a known key allocates nothing, unless its ring of stamps grows or it
/// reserves: then it allocates the list of its charges.
///
/// A limiter is a value of about 0.8 KB. Put it into an `Arc`, a `static` or the state of the
/// application. [`counts`](Self::counts) has the bytes that it takes.
///
/// ```
/// use tollgate::{Limiter, Quota};
///
/// let limiter = Limiter::<String>::new(Quota::per_minute(2))?;
/// assert!(limiter.try_acquire("alice").is_admitted());
/// assert!(limiter.try_acquire("alice").is_admitted());
/// assert!(limiter.try_acquire("alice").is_denied());
/// assert!(limiter.try_acquire("bob").is_admitted());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
pub struct Limiter<K: ?Sized, C = MonotonicClock, F = DefaultFingerprinter> {
    pub(crate) engine: Engine<C, F>,
    pub(crate) key: PhantomData<fn(&K)>,
}

/// A rate limiter without keys, for a service or an outgoing connection as a whole.
///
/// It is a [`Limiter`] whose methods take no key. It is exact, lock-free, and shared by reference or
/// `Arc`, too. It is a value of about 0.6 KB.
///
/// ```
/// use tollgate::{DirectLimiter, Quota};
///
/// let limiter = DirectLimiter::new(Quota::per_second(2))?;
/// assert!(limiter.try_acquire().is_admitted());
/// assert!(limiter.try_acquire_n(2)?.is_denied());
/// assert!(limiter.try_acquire_n(3).is_err(), "more than the limit can never succeed");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type DirectLimiter<C = MonotonicClock> = Limiter<NoKey, C, NoKey>;

impl<K: Hash + ?Sized, C: Clock, F: Fingerprinter> Limiter<K, C, F> {
    /// Takes one permit for `key` now, or denies the request.
    ///
    /// ```
    /// use tollgate::{Decision, Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_minute(1))?;
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// match limiter.try_acquire("alice") {
    ///     Decision::Admitted(_) => println!("go on"),
    ///     Decision::Denied(denial) => println!("wait {:?}", denial.retry_after()),
    /// }
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    ///
    /// This costs one hash, one clock reading and one look-up. A denial charges nothing.
    #[doc(alias = "check_key", alias = "tryConsume", alias = "Allow")]
    pub fn try_acquire(&self, key: impl AsKey<K>) -> Decision {
        let fingerprint = self.fingerprint(&key);
        self.decide(key, fingerprint, 1)
    }

    /// Takes `cost` permits for `key` now, all of them or none. A cost of zero charges nothing and
    /// is always admitted.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_hour(5))?;
    /// assert!(limiter.try_acquire_n("alice", 4)?.is_admitted());
    /// assert!(limiter.try_acquire_n("alice", 2)?.is_denied());
    /// assert!(limiter.try_acquire_n("alice", 6).is_err(), "more than the limit");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CostExceedsLimit`] when `cost` is more than the limit: no wait would help. There is no
    /// such error for a key on a [list](Self::allow), nor in [shadow
    /// mode](crate::LimiterBuilder::shadow).
    pub fn try_acquire_n(&self, key: impl AsKey<K>, cost: u32) -> Result<Decision, CostExceedsLimit> {
        self.acquire_by(key, cost)
    }

    /// Takes one permit for each of these keys, as calls of [`try_acquire`](Self::try_acquire) in
    /// this order would. Each key is decided on its own, and may appear more than once.
    ///
    /// The memory of a few dozen keys is prefetched together. With many keys this takes a fraction
    /// of the time; see `BENCHMARKS.md`.
    ///
    /// ```
    /// use tollgate::{Decision, Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_minute(1))?;
    /// let decisions = limiter.try_acquire_many(["alice", "bob", "alice"]);
    /// let admitted: Vec<bool> = decisions.iter().map(Decision::is_admitted).collect();
    /// assert_eq!(admitted, [true, true, false]);
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use = "decisions that are not looked at limit nothing"]
    pub fn try_acquire_many(&self, keys: impl IntoIterator<Item: AsKey<K>>) -> Vec<Decision> {
        if self.engine.is_observed() {
            return keys.into_iter().map(|key| self.try_acquire(key)).collect();
        }
        self.engine.decide_many(keys.into_iter().map(|key| self.fingerprint(&key)))
    }

    /// As [`try_acquire`](Self::try_acquire), with the permits left of each quota and the time
    /// until more are free, at the same instant and with the same look-up.
    ///
    /// This takes O(log limit) more loads for each quota.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, MockClock, Quota};
    ///
    /// let builder = Limiter::<String>::builder(Quota::per_minute(5));
    /// let limiter = builder.clock(MockClock::new()).build()?;
    /// let status = limiter.try_acquire_status("alice");
    /// assert!(status.is_admitted());
    /// assert_eq!((status.limit(), status.remaining()), (5, 4));
    /// assert_eq!(status.next_after(), Duration::from_secs(60));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn try_acquire_status(&self, key: impl AsKey<K>) -> Status {
        let fingerprint = self.fingerprint(&key);
        self.decide_status(key, fingerprint, 1)
    }

    /// As [`try_acquire_n`](Self::try_acquire_n), with the permits left: see
    /// [`try_acquire_status`](Self::try_acquire_status).
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_hour(5))?;
    /// assert_eq!(limiter.try_acquire_n_status("alice", 3)?.remaining(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_acquire_n`](Self::try_acquire_n).
    pub fn try_acquire_n_status(&self, key: impl AsKey<K>, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.acquire_status_by(key, cost)
    }

    /// Returns the answer that [`try_acquire`](Self::try_acquire) would give now, with the permits
    /// left. Charges nothing.
    ///
    /// At the key cap, a peek at a new key frees cells of expired keys, as a request would.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_hour(1))?;
    /// assert_eq!(limiter.peek("alice").remaining(), 1);
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// assert!(limiter.peek("alice").is_denied());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[doc(alias = "estimateAbilityToConsume")]
    pub fn peek(&self, key: impl AsKey<K>) -> Status {
        self.engine.peek(&[Some(self.fingerprint(&key))], Request::acquire(1))
    }

    /// Returns the answer that [`try_acquire_n`](Self::try_acquire_n) would give now. Charges
    /// nothing, as [`peek`](Self::peek).
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_hour(5))?;
    /// assert!(limiter.try_acquire_n("alice", 3)?.is_admitted());
    /// assert!(limiter.peek_n("alice", 2)?.is_admitted());
    /// assert!(limiter.peek_n("alice", 3)?.is_denied());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_acquire_n`](Self::try_acquire_n).
    pub fn peek_n(&self, key: impl AsKey<K>, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.peek_by(key, cost)
    }

    /// Restores the full quota of the key, as if it were new, and ends a [penalty](crate::Penalty).
    /// Changes no list.
    ///
    /// Returns whether the limiter held permits or a penalty of the key, which may have expired.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::new(Quota::per_hour(1))?;
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// assert!(limiter.forget("alice"));
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// assert!(!limiter.forget("bob"));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[doc(alias = "reset")]
    pub fn forget(&self, key: impl AsKey<K>) -> bool {
        self.engine.forget(self.fingerprint(&key))
    }

    /// Puts the key on the allow list. Returns whether it was not on this list before.
    ///
    /// From then until the key is [taken off](Self::unlist), its requests are admitted without a
    /// charge ([`is_counted`](crate::Admission::is_counted) is `false`), at any cost: neither its
    /// quota nor a [`Penalty`](crate::Penalty) applies. Only the deny list takes precedence.
    ///
    /// The change of a list is lock-free, and so are all decisions at the same time. Permits that
    /// were charged before stay charged. A listing does not expire, and neither
    /// [`forget`](Self::forget) nor [`clear`](Self::clear) ends it. Snapshots do not contain lists.
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
    /// [`ListError`] when the limiter was built without
    /// [`list_cap`](crate::LimiterBuilder::list_cap), or when the lists are full, counting the keys
    /// that other threads are listing. Listing a key again is not an error.
    pub fn allow(&self, key: impl AsKey<K>) -> Result<bool, ListError> {
        self.engine.put_on(List::Allow, self.fingerprint(&key))
    }

    /// Puts the key on the deny list. Returns whether it was not on this list before.
    ///
    /// From then until the key is [taken off](Self::unlist), its requests are denied with
    /// [`DenialReason::DenyList`](crate::DenialReason::DenyList), even if it is on the allow list or
    /// the cost is above its limit. Requests of cost zero are admitted. No wait helps, so
    /// [`retry_after`](crate::Denial::retry_after) is [`Duration::MAX`](core::time::Duration::MAX).
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::builder(Quota::per_minute(1)).list_cap(100).build()?;
    /// assert!(limiter.deny("mallory")?);
    /// assert!(!limiter.deny("mallory")?, "on the list already");
    /// assert!(limiter.try_acquire("mallory").is_denied());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ListError`], as for [`allow`](Self::allow).
    pub fn deny(&self, key: impl AsKey<K>) -> Result<bool, ListError> {
        self.engine.put_on(List::Deny, self.fingerprint(&key))
    }

    /// Takes the key off both lists, so that its quota decides again. Returns whether it was on a
    /// list.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::<String>::builder(Quota::per_minute(1)).list_cap(100).build()?;
    /// limiter.allow("alice")?;
    /// assert!(limiter.unlist("alice"));
    /// assert!(!limiter.unlist("alice"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unlist(&self, key: impl AsKey<K>) -> bool {
        self.engine.take_off_lists(self.fingerprint(&key))
    }

    /// Whether keys may have other quotas than those of all keys: whether the limiter was built with
    /// [`keys_with_quotas`](crate::LimiterBuilder::keys_with_quotas) or a
    /// [`tier`](crate::LimiterBuilder::tier).
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let builder = || Limiter::<String>::builder(Quota::per_minute(2));
    /// assert!(!builder().build()?.keys_may_have_quotas());
    /// assert!(builder().keys_with_quotas(1000).build()?.keys_may_have_quotas());
    /// assert!(builder().tier("pro", [Quota::per_minute(9)]).build()?.keys_may_have_quotas());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub fn keys_may_have_quotas(&self) -> bool {
        self.engine.keys_differ()
    }

    /// The tier with this name; `None` if there is none.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let builder = Limiter::<str>::builder(Quota::per_minute(60));
    /// let limiter = builder.tier("premium", [Quota::per_minute(600)]).build()?;
    /// let premium = limiter.tier("premium").unwrap();
    /// assert!(limiter.try_acquire_n(premium.key("alice"), 600)?.is_admitted());
    /// assert!(limiter.tier("platinum").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tier(&self, name: &str) -> Option<Tier> {
        self.engine.tiers.named(0, name)
    }
}

/// A request of either kind of limiter; one without keys takes `()`. The methods above and those of a
/// [`DirectLimiter`] call these, and so do the crates that ask both kinds.
impl<K: Key + ?Sized, C: Clock, F: Fingerprinter> Limiter<K, C, F> {
    #[doc(hidden)]
    #[inline]
    pub fn acquire_by(&self, key: impl AsKey<K>, cost: u32) -> Result<Decision, CostExceedsLimit> {
        let fingerprint = self.fingerprint(&key);
        let decision = self.decide(key, fingerprint, cost);
        self.engine.fits(&[Some(fingerprint)], cost, decision).map(|()| decision)
    }

    #[doc(hidden)]
    #[inline]
    pub fn acquire_status_by(&self, key: impl AsKey<K>, cost: u32) -> Result<Status, CostExceedsLimit> {
        let fingerprint = self.fingerprint(&key);
        let status = self.decide_status(key, fingerprint, cost);
        self.engine.fits(&[Some(fingerprint)], cost, status.decision).map(|()| status)
    }

    #[doc(hidden)]
    pub fn peek_by(&self, key: impl AsKey<K>, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.engine.peek_within_limits(&[Some(self.fingerprint(&key))], Request::acquire(cost))
    }

    /// The quotas of the key.
    #[doc(hidden)]
    pub fn quotas_by(&self, key: impl AsKey<K>) -> Arc<[Quota]> {
        if self.engine.keys_differ() { self.engine.table.quotas_for(self.fingerprint(&key)) } else { self.quotas() }
    }

    #[inline(always)]
    pub(crate) fn decide(&self, key: impl AsKey<K>, fingerprint: Fingerprint, cost: u32) -> Decision {
        if !self.engine.is_plain() {
            self.decide_with_more(key, fingerprint, cost)
        } else if K::IS_NONE {
            self.engine.decide_single(cost)
        } else {
            self.engine.decide_plain(fingerprint, cost)
        }
    }

    /// Of a limiter that is not plain.
    #[cold]
    #[inline(never)]
    fn decide_with_more(&self, key: impl AsKey<K>, fingerprint: Fingerprint, cost: u32) -> Decision {
        if self.engine.is_observed() {
            self.decide_observed(key, fingerprint, Request::acquire(cost), None).decision
        } else {
            self.engine.decide(fingerprint, cost)
        }
    }

    #[inline(always)]
    pub(crate) fn decide_status(&self, key: impl AsKey<K>, fingerprint: Fingerprint, cost: u32) -> Status {
        self.engine.decide_status_or(fingerprint, cost, |request| self.decide_observed(key, fingerprint, request, None))
    }

    /// Decides a request, and tells the observers.
    #[cold]
    pub(crate) fn decide_observed(
        &self,
        key: impl AsKey<K>,
        fingerprint: Fingerprint,
        request: Request,
        charges: Option<&mut Charges>,
    ) -> Status {
        let shown = |_, mut state: &mut dyn Hasher| key.hash_key(&mut state);
        self.engine.decide_observed(
            &[Some(fingerprint)],
            request,
            charges,
            if K::IS_NONE { None } else { Some(&shown) },
        )
    }

    #[inline]
    pub(crate) fn fingerprint(&self, key: &impl AsKey<K>) -> Fingerprint {
        if K::IS_NONE {
            return THE_KEY;
        }
        self.engine.with_group(fingerprint_of(&self.engine.fingerprinter, key), 0)
    }
}

impl<K: Key + ?Sized, C: fmt::Debug, F> fmt::Debug for Limiter<K, C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct(if K::IS_NONE { "DirectLimiter" } else { "Limiter" });
        shown.field("quotas", &Shown(&self.engine.table.version(0).quotas)).field("clock", &self.engine.clock);
        if !K::IS_NONE {
            shown.field("at_key_cap", &self.engine.at_key_cap());
        }
        shown.finish_non_exhaustive()
    }
}
