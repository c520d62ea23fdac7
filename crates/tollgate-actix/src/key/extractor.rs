//! [`KeyExtractor`].

use core::hash::Hash;
use std::borrow::Cow;

use tollgate_http::middleware::{KeyError, Missing, OnMissing};

use super::head::Head;

/// Finds the key of a request in its head.
///
/// A tuple of up to eight extractors is an extractor as well. Over a
/// [`Limiter`](tollgate::Limiter), its keys form one key. Over a
/// [`JointLimiter`](tollgate::JointLimiter), they are the keys of the dimensions, in order.
///
/// Keys should be cheap to make: an address, an integer, an `Arc<str>`. A key that needs more than
/// the head, such as the user of a session, belongs in a middleware outside this one. That
/// middleware puts the key into the request's extensions for [`extension()`](crate::extension()).
///
/// ```
/// use std::sync::Arc;
/// use actix_web::test::TestRequest;
/// use tollgate_actix::{Head, KeyError, KeyExtractor};
///
/// /// The tenant: the first label of the host.
/// struct Tenant;
///
/// impl KeyExtractor for Tenant {
///     type Key = String;
///
///     fn extract(&self, head: &Head<'_>) -> Result<String, KeyError> {
///         let host = head.headers.get("host").and_then(|host| host.to_str().ok());
///         let label = host.and_then(|host| host.split('.').next());
///         label.map(str::to_lowercase).ok_or(KeyError::not_sent())
///     }
/// }
///
/// // The extractor can be chosen at run time.
/// let tenant: Arc<dyn KeyExtractor<Key = String>> = Arc::new(Tenant);
/// let request = TestRequest::get().insert_header(("host", "Blue.example.com")).to_http_request();
/// assert_eq!(tenant.extract(&Head::of(&request)), Ok("blue".to_owned()));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not extract a key",
    label = "not an extractor",
    note = "write a closure as `.key(from_head(|head| ..))`; other extractors are `ClientIp`, \
            `header(..)`, `extension(..)` and tuples of extractors"
)]
pub trait KeyExtractor: Send + Sync {
    /// The key.
    type Key: Hash + Clone;

    /// The key of the request with this head.
    ///
    /// # Errors
    ///
    /// [`KeyError`] when there is no key. [`Missing`] is the treatment of such requests.
    fn extract(&self, head: &Head<'_>) -> Result<Self::Key, KeyError>;

    /// Words for the key, which follow "The request needs". The answer to a request with 400 has
    /// them. Without words, as by default, the answer does not tell which key is missing.
    ///
    /// Words never hold a part of a request.
    ///
    /// ```
    /// use tollgate_actix::{KeyExtractor, header};
    ///
    /// assert_eq!(header("x-api-key").wants().as_deref(), Some("the header field x-api-key"));
    /// ```
    fn wants(&self) -> Option<Cow<'_, str>> {
        None
    }

    /// Words for the key, or for the part of it, that has this error in this head.
    #[doc(hidden)]
    fn lacks(&self, _: &Head<'_>, _: KeyError) -> Option<Cow<'_, str>> {
        self.wants()
    }

    /// The same extractor, with its own treatment of a missing key. It comes before that of the
    /// [middleware](crate::RateLimit::on_missing).
    ///
    /// ```
    /// use tollgate_actix::{ClientIp, KeyExtractor, Missing, extension};
    ///
    /// #[derive(Clone)]
    /// struct User(u64);
    ///
    /// // Over a joint limiter: without a user, only the address is asked.
    /// let user = extension(|user: &User| user.0).on_missing(Missing::Skip);
    /// let key = (user, ClientIp::peer());
    /// # let _ = key;
    /// ```
    fn on_missing(self, missing: Missing<Self::Key>) -> OnMissing<Self, Self::Key>
    where
        Self: Sized,
    {
        OnMissing::new(self, missing)
    }
}
