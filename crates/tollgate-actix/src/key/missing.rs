//! What happens to a request without a key.

use super::{Head, KeyError, KeyExtractor};

/// What happens to a request without a key.
///
/// A limit has [one for all](crate::RateLimit::on_missing) and an extractor can have
/// [its own](KeyExtractor::on_missing). A request whose key is
/// [malformed](KeyError::malformed) is rejected in any case.
///
/// ```
/// use std::net::{IpAddr, Ipv4Addr};
/// use std::sync::Arc;
/// use tollgate::{Limiter, Quota};
/// use tollgate_actix::{ClientIp, Missing, RateLimit};
///
/// let limiter = Arc::new(Limiter::<IpAddr>::new(Quota::per_second(10))?);
/// let limit = RateLimit::new(limiter)
///     .key(ClientIp::peer())
///     .on_missing(Missing::Share(Ipv4Addr::UNSPECIFIED.into()));
/// # let _ = limit;
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Missing<K> {
    /// It is answered with 500 if the server should have provided the key, and with 400 if the
    /// client should have sent it.
    #[default]
    Reject,
    /// All such requests have this key together.
    Share(K),
    /// It is not limited. Over a joint limiter, the dimension is not asked.
    Skip,
}

impl<K> Missing<K> {
    pub(super) fn as_ref(&self) -> Missing<&K> {
        match self {
            Self::Reject => Missing::Reject,
            Self::Share(key) => Missing::Share(key),
            Self::Skip => Missing::Skip,
        }
    }

    pub(super) fn map<T>(self, part: impl FnOnce(K) -> T) -> Missing<T> {
        match self {
            Self::Reject => Missing::Reject,
            Self::Share(key) => Missing::Share(part(key)),
            Self::Skip => Missing::Skip,
        }
    }

    /// The key to ask for; `None` where none is asked.
    pub(crate) fn resolve(&self, found: Result<K, KeyError>) -> Result<Option<K>, KeyError>
    where
        K: Clone,
    {
        self.as_ref().resolve_part(found)
    }
}

impl<K: Clone> Missing<&K> {
    pub(super) fn resolve_part(self, found: Result<K, KeyError>) -> Result<Option<K>, KeyError> {
        match (found, self) {
            (Ok(key), _) => Ok(Some(key)),
            (Err(error), _) if error.is_skipped() => Ok(None),
            (Err(error), Missing::Share(key)) if error.is_open() => Ok(Some(key.clone())),
            (Err(error), Missing::Skip) if error.is_open() => Ok(None),
            (Err(error), _) => Err(error),
        }
    }
}

/// An extractor with its own answer to a missing key. Made by [`KeyExtractor::on_missing`].
#[derive(Debug, Clone)]
pub struct OnMissing<X: KeyExtractor> {
    extractor: X,
    missing: Missing<X::Key>,
}

impl<X: KeyExtractor> OnMissing<X> {
    pub(super) const fn new(extractor: X, missing: Missing<X::Key>) -> Self {
        Self { extractor, missing }
    }
}

impl<X: KeyExtractor<Key: Send + Sync>> KeyExtractor for OnMissing<X> {
    type Key = X::Key;

    fn extract(&self, head: &Head<'_>) -> Result<X::Key, KeyError> {
        match self.missing.resolve(self.extractor.extract(head)) {
            Ok(Some(key)) => Ok(key),
            Ok(None) => Err(KeyError::skipped()),
            Err(error) => Err(error.closed()),
        }
    }
}
