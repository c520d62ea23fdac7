//! Names of quotas.

use super::bounds::MAX_NAME;
use super::name::Name;
use super::value::Quota;

impl Quota {
    /// The longest name: 32 bytes.
    ///
    /// ```
    /// use tollgate::{Quota, QuotaError};
    ///
    /// let quota = Quota::per_second(10).named(&"n".repeat(Quota::MAX_NAME + 1));
    /// assert_eq!(quota.validate(), Err(QuotaError::NameTooLong { length: 33 }));
    /// ```
    pub const MAX_NAME: usize = MAX_NAME;

    /// This quota, with a name for messages, header fields and policy files. A name changes no
    /// decision. A snapshot treats quotas that differ only in their names as the same.
    ///
    /// A name has 1 to [`MAX_NAME`](Self::MAX_NAME) characters of printable ASCII, without quotes
    /// and backslashes. Any other name is an error when the quota is [validated](Self::validate).
    ///
    /// ```
    /// use tollgate::{Limiter, Quota, QuotaError};
    ///
    /// const SECOND: Quota = Quota::per_second(10).named("user-1s");
    /// const MINUTE: Quota = Quota::per_minute(100).named("user-1m");
    /// let limiter = Limiter::<str>::builder(SECOND).and(MINUTE).build()?;
    /// let (status, quotas) = (limiter.try_acquire_status("alice"), limiter.quotas());
    /// let names = status.quotas().map(|quota| quotas[quota.quota()].name());
    /// assert_eq!(names.collect::<Vec<_>>(), [Some("user-1s"), Some("user-1m")]);
    ///
    /// let error = Quota::per_second(10).named("a \"name\"").validate();
    /// assert_eq!(error, Err(QuotaError::NameCharacter { at: 2 }));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    pub const fn named(self, name: &str) -> Self {
        Self { name: Some(Name::of(name)), ..self }
    }

    /// The name of the quota; `None` if it has no name, or one longer than
    /// [`MAX_NAME`](Self::MAX_NAME).
    ///
    /// ```
    /// use tollgate::Quota;
    ///
    /// assert_eq!(Quota::per_second(10).named("api").name(), Some("api"));
    /// assert_eq!(Quota::per_second(10).name(), None);
    /// ```
    #[must_use]
    pub const fn name(&self) -> Option<&str> {
        match &self.name {
            Some(name) => name.as_str(),
            None => None,
        }
    }
}
