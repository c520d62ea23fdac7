//! A function of the head as an extractor.

use core::fmt;
use core::hash::Hash;
use std::borrow::Cow;

use super::{Head, KeyError, KeyExtractor};

/// The key that a function returns for the head.
///
/// ```
/// use actix_web::http::Method;
/// use actix_web::test::TestRequest;
/// use tollgate_actix::{Head, KeyExtractor, from_head};
///
/// let method = from_head(|head| Ok(head.method.clone()));
/// let request = TestRequest::put().to_http_request();
/// assert_eq!(method.extract(&Head::of(&request)), Ok(Method::PUT));
/// ```
pub const fn from_head<T, K>(function: T) -> FromHead<T>
where
    T: Fn(&Head<'_>) -> Result<K, KeyError> + Send + Sync,
    K: Hash + Clone,
{
    FromHead { function, words: None }
}

/// A function of the head as an extractor. [`from_head`] makes it.
#[derive(Clone, Copy)]
pub struct FromHead<T> {
    function: T,
    words: Option<&'static str>,
}

impl<T> FromHead<T> {
    /// The same extractor, with [words](KeyExtractor::wants) for the key.
    ///
    /// ```
    /// use tollgate_actix::{KeyError, from_head};
    ///
    /// let tenant = from_head(|head| {
    ///     let tenant = head.uri.path().strip_prefix("/tenants/").ok_or(KeyError::not_sent())?;
    ///     tenant.parse::<u32>().map_err(|_| KeyError::malformed())
    /// });
    /// // "The request needs the number of a tenant in the path."
    /// let tenant = tenant.naming("the number of a tenant in the path");
    /// # let _ = tenant;
    /// ```
    #[must_use]
    pub fn naming(self, words: &'static str) -> Self {
        Self { words: Some(words), ..self }
    }
}

impl<T, K> KeyExtractor for FromHead<T>
where
    T: Fn(&Head<'_>) -> Result<K, KeyError> + Send + Sync,
    K: Hash + Clone,
{
    type Key = K;

    fn extract(&self, head: &Head<'_>) -> Result<K, KeyError> {
        (self.function)(head)
    }

    fn wants(&self) -> Option<Cow<'_, str>> {
        self.words.map(Cow::from)
    }
}

impl<T> fmt::Debug for FromHead<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromHead").finish_non_exhaustive()
    }
}
