//! The allow list and the deny list of a limiter in several dimensions.

use super::limiter::JointLimiter;
use crate::clock::Clock;
use crate::error::JointError;
use crate::fingerprint::Fingerprinter;
use crate::keys::{Dimensions, Keys};
use crate::lists::{List, ListError};

impl<D: Dimensions + ?Sized, C: Clock, F: Fingerprinter> JointLimiter<D, C, F> {
    /// Puts each of these keys on the allow list of its own dimension. Returns whether one of the
    /// keys was not on this list before.
    ///
    /// From then until a key is [taken off](Self::unlist), its dimension is not asked: neither its
    /// quota nor a [`Penalty`](crate::Penalty) applies. If all keys of a request are on the list,
    /// the request is admitted without a charge ([`is_counted`](crate::Admission::is_counted) is
    /// `false`). Only the deny list takes precedence.
    ///
    /// Otherwise as [`Limiter::allow`](crate::Limiter::allow).
    ///
    /// ```
    /// use std::net::IpAddr;
    /// use tollgate::{Absent, JointLimiter, Quota};
    ///
    /// let limiter = JointLimiter::<(String, IpAddr)>::builder()
    ///     .dimension("user", [Quota::per_minute(1)])
    ///     .dimension("address", [Quota::per_minute(10)])
    ///     .list_cap(100)
    ///     .build()?;
    /// let address: IpAddr = [192, 0, 2, 7].into();
    /// // The user is not limited, and the address is.
    /// limiter.allow(("health check", Absent))?;
    /// for _ in 0..10 {
    ///     assert!(limiter.try_acquire(("health check", address))?.is_admitted());
    /// }
    /// assert!(limiter.try_acquire(("health check", address))?.is_denied());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Limiter::allow`](crate::Limiter::allow), and [`ListError::Keys`] when there is no key
    /// or, for a slice, another number of keys than dimensions. Keys are listed in the order of
    /// their dimensions. If a key finds no place, the keys before it stay listed.
    pub fn allow(&self, keys: impl Keys<D>) -> Result<bool, ListError> {
        self.list(List::Allow, keys)
    }

    /// Puts each of these keys on the deny list of its own dimension. Returns whether one of the
    /// keys was not on this list before.
    ///
    /// From then until a key is [taken off](Self::unlist), all requests with it are denied, as by
    /// [`Limiter::deny`](crate::Limiter::deny).
    ///
    /// ```
    /// use tollgate::{Absent, JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String, u64)>::builder();
    /// let builder = builder.dimension("user", [Quota::per_hour(5)]);
    /// let limiter = builder.dimension("tenant", [Quota::per_hour(50)]).list_cap(10).build()?;
    /// limiter.deny(("mallory", Absent))?;
    /// assert!(limiter.try_acquire(("mallory", 7))?.is_denied());
    /// assert!(limiter.try_acquire(("alice", 7))?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`allow`](Self::allow).
    pub fn deny(&self, keys: impl Keys<D>) -> Result<bool, ListError> {
        self.list(List::Deny, keys)
    }

    /// Takes each of these keys off both lists of its own dimension. Returns whether one of the
    /// keys was on a list.
    ///
    /// ```
    /// use tollgate::{JointLimiter, Quota};
    ///
    /// let builder = JointLimiter::<(String,)>::builder().dimension("user", [Quota::per_hour(5)]);
    /// let limiter = builder.list_cap(10).build()?;
    /// limiter.deny(("mallory",))?;
    /// assert!(limiter.unlist(("mallory",))?);
    /// assert!(limiter.try_acquire(("mallory",))?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`JointError`] when there is no key or, for a slice, another number of keys than dimensions.
    pub fn unlist(&self, keys: impl Keys<D>) -> Result<bool, JointError> {
        let keys = self.fingerprints(&keys)?;
        Ok(keys.iter().flatten().fold(false, |any, &key| any | self.engine.take_off_lists(key)))
    }

    fn list(&self, list: List, keys: impl Keys<D>) -> Result<bool, ListError> {
        let keys = self.fingerprints(&keys).map_err(ListError::Keys)?;
        keys.iter().flatten().try_fold(false, |any, &key| Ok(any | self.engine.put_on(list, key)?))
    }
}
