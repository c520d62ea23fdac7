//! The treatment of a request without a key.

use super::KeyError;

/// The treatment of a request without a key.
///
/// A request whose key is [malformed](KeyError::malformed) is rejected in any case.
///
/// ```
/// use tollgate_http::middleware::{KeyError, Missing};
///
/// let without_key = || Err(KeyError::not_sent());
/// assert_eq!(Missing::<&str>::Reject.resolve(without_key()), Err(KeyError::not_sent()));
/// assert_eq!(Missing::Share("anonymous").resolve(without_key()), Ok(Some("anonymous")));
/// assert_eq!(Missing::<&str>::Skip.resolve(without_key()), Ok(None));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Missing<K> {
    /// The answer is 500 if the server should have provided the key, and 400 if the client should
    /// have sent it.
    #[default]
    Reject,
    /// All such requests share this key.
    Share(K),
    /// The request is not limited. Over a joint limiter, only the dimension is not asked.
    Skip,
}

impl<K> Missing<K> {
    /// The same for a key by reference.
    #[must_use]
    pub fn as_ref(&self) -> Missing<&K> {
        match self {
            Self::Reject => Missing::Reject,
            Self::Share(key) => Missing::Share(key),
            Self::Skip => Missing::Skip,
        }
    }

    /// The same for a part of the key.
    #[must_use]
    pub fn map<T>(self, part: impl FnOnce(K) -> T) -> Missing<T> {
        match self {
            Self::Reject => Missing::Reject,
            Self::Share(key) => Missing::Share(part(key)),
            Self::Skip => Missing::Skip,
        }
    }

    /// The key to ask with; `None` if the request is not limited.
    ///
    /// ```
    /// use tollgate_http::middleware::{KeyError, Missing};
    ///
    /// let missing = Missing::Share("anonymous");
    /// assert_eq!(missing.resolve(Ok("alice")), Ok(Some("alice")));
    /// assert_eq!(missing.resolve(Err(KeyError::not_sent())), Ok(Some("anonymous")));
    /// assert!(missing.resolve(Err(KeyError::malformed())).is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// `found`, where the request is to be rejected.
    pub fn resolve(&self, found: Result<K, KeyError>) -> Result<Option<K>, KeyError>
    where
        K: Clone,
    {
        match (found, self) {
            (Ok(key), _) => Ok(Some(key)),
            (Err(error), _) if error.is_skipped() => Ok(None),
            (Err(error), Self::Share(key)) if error.is_open() => Ok(Some(key.clone())),
            (Err(error), Self::Skip) if error.is_open() => Ok(None),
            (Err(error), _) => Err(error),
        }
    }

    /// The key of an extractor that has this answer to a missing key. It comes before the
    /// middleware's own answer.
    ///
    /// # Errors
    ///
    /// [`KeyError`] when there is no key to ask with.
    pub fn settle(&self, found: Result<K, KeyError>) -> Result<K, KeyError>
    where
        K: Clone,
    {
        match self.resolve(found) {
            Ok(Some(key)) => Ok(key),
            Ok(None) => Err(KeyError::skipped()),
            Err(error) => Err(error.closed()),
        }
    }
}

impl<K: Clone> Missing<&K> {
    /// As [`resolve`](Self::resolve), for a key that was found by value.
    ///
    /// # Errors
    ///
    /// `found`, where the request is to be rejected.
    pub fn resolve_part(self, found: Result<K, KeyError>) -> Result<Option<K>, KeyError> {
        self.map(K::clone).resolve(found)
    }
}
