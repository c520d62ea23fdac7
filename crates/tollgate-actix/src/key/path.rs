//! The path of a request, decoded and normalised.

use core::fmt;
use core::hash::{Hash, Hasher};

use actix_web::http::Uri;
use tollgate_http::middleware::{hash_path, same_path};

use super::{Head, KeyError, KeyExtractor};

/// The path of the request, without its query. Paths that are the same once normalised are one key:
/// `%61` is `a`, `/a/./b/../c` is `/a/c`, and a slash that is doubled or ends the path does not
/// count.
///
/// **A client can invent such keys**, because it can ask for any path. Prefer
/// [`matched_path`](crate::matched_path), or make the client's address another dimension of a
/// [`JointLimiter`](tollgate::JointLimiter).
///
/// ```
/// use actix_web::test::TestRequest;
/// use tollgate_actix::{Head, KeyExtractor, path};
///
/// let key = |uri: &str| {
///     let request = TestRequest::get().uri(uri).to_http_request();
///     path().extract(&Head::of(&request)).unwrap()
/// };
/// assert_eq!(key("/login"), key("//x/../%6cogin/?attempt=2"));
/// assert_ne!(key("/login"), key("/Login"));
/// ```
#[must_use]
pub const fn path() -> NormalPath {
    NormalPath(())
}

/// The path of the request, decoded and normalised. [`path`] makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NormalPath(());

impl KeyExtractor for NormalPath {
    type Key = PathKey;

    fn extract(&self, head: &Head<'_>) -> Result<PathKey, KeyError> {
        Ok(PathKey { uri: head.uri.clone() })
    }
}

/// The key of a path. It is compared and hashed in its normal form.
#[derive(Clone)]
pub struct PathKey {
    /// The text is shared with the request.
    uri: Uri,
}

impl PartialEq for PathKey {
    fn eq(&self, other: &Self) -> bool {
        same_path(self.uri.path(), other.uri.path())
    }
}

impl Eq for PathKey {}

impl Hash for PathKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_path(self.uri.path(), state);
    }
}

impl fmt::Debug for PathKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PathKey").field(&self.uri.path()).finish()
    }
}

#[cfg(feature = "redis")]
impl tollgate_http::middleware::StoreKey for PathKey {
    fn put(&self, bytes: &mut Vec<u8>) {
        tollgate_http::middleware::put_path(self.uri.path(), bytes);
    }
}
