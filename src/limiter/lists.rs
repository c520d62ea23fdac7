//! The allow list and the deny list of a limiter for many keys.

use core::hash::Hash;

use super::keyed::Limiter;
use crate::clock::Clock;
use crate::fingerprint::Fingerprinter;
use crate::keys::AsKey;
use crate::lists::{List, ListError};

impl<K: Hash + ?Sized, C: Clock, F: Fingerprinter> Limiter<K, C, F> {
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
        self.engine.put_on(List::Allow, self.fingerprint(key))
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
        self.engine.put_on(List::Deny, self.fingerprint(key))
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
        self.engine.take_off_lists(self.fingerprint(key))
    }
}
