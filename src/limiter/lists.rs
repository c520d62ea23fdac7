//! The lists of a limiter for many keys.

use core::hash::Hash;

use super::keyed::Limiter;
use crate::clock::Clock;
use crate::fingerprint::Fingerprinter;
use crate::keys::AsKey;
use crate::lists::{List, ListError};

impl<K: Hash + ?Sized, C: Clock, F: Fingerprinter> Limiter<K, C, F> {
    /// Puts the key on the allow list. Returns whether it was not on this list yet.
    ///
    /// From when this returns until the key is [taken off](Self::unlist), its requests are admitted
    /// without a charge ([`is_counted`](crate::Admission::is_counted) is `false`), whatever its
    /// quota and a [`Penalty`](crate::Penalty) say. Only the deny list comes before.
    ///
    /// The change of a list is lock-free, and so are all decisions while it runs. Permits that the
    /// key was charged before stay charged. Lists last as long as the limiter: no time, no
    /// [`forget`](Self::forget) and no [`clear`](Self::clear) changes them, and they are not in a
    /// snapshot.
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
    /// [`list_cap`](crate::LimiterBuilder::list_cap), or as many keys are listed as that allows (or
    /// are just being listed by other threads). A key that is on the list already is no error.
    pub fn allow(&self, key: impl AsKey<K>) -> Result<bool, ListError> {
        self.engine.put_on(List::Allow, self.fingerprint(key))
    }

    /// Puts the key on the deny list. Returns whether it was not on this list yet.
    ///
    /// From when this returns until the key is [taken off](Self::unlist), its requests are denied
    /// with [`DenialReason::DenyList`](crate::DenialReason::DenyList), also if it is on the allow
    /// list. Requests of cost zero ask for nothing and are admitted. As no wait helps,
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

    /// Takes the key off both lists, so that its quota decides again. Returns whether it was on
    /// one.
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
