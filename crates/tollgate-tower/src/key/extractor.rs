//! [`KeyExtractor`].

use super::framework::Tower;
use super::head::Head;

tollgate_http::key_extractor! {
    /// Finds the key of a request in its head.
    ///
    /// A tuple of up to eight extractors is an extractor as well. Over a
    /// [`Limiter`](tollgate::Limiter), its keys form one key. Over a
    /// [`JointLimiter`](tollgate::JointLimiter), they are the keys of the dimensions, in order.
    ///
    /// Keys should be cheap to make: an address, an integer, an `Arc<str>`. A key that needs more than
    /// the head, such as the user of a session, belongs in a layer outside this one. That layer puts
    /// the key into the request's extensions for [`extension()`](crate::extension()).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate_tower::{Head, KeyError, KeyExtractor};
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
    /// let request = http::Request::builder().header("host", "Blue.example.com").body(())?;
    /// assert_eq!(tenant.extract(&Head::of(&request)), Ok("blue".to_owned()));
    /// # Ok::<(), http::Error>(())
    /// ```
    in "tollgate_tower" for Tower
}
