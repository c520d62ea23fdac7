//! The path of a request, decoded and normalised.

use core::fmt;
use core::hash::{Hash, Hasher};

use super::super::key_error::KeyError;
use super::super::path::{hash_path, same_path};
use super::extractor::Extractor;
use super::framework::Framework;

/// The path of the request, without its query. Paths that are the same once normalised are one key:
/// `%61` is `a`, `/a/./b/../c` is `/a/c`, and a slash that is doubled or ends the path does not
/// count.
///
/// **A client can invent such keys**, because it can ask for any path. Prefer the route that a
/// router has matched, or make the client's address another dimension of a
/// [`JointLimiter`](tollgate::JointLimiter).
///
/// ```
/// use tollgate_http::middleware::{Extractor, Framework, PathKey, path};
///
/// fn by_path<W: Framework>() -> impl Extractor<W, Key = PathKey<W>> {
///     path()
/// }
/// ```
#[must_use]
pub const fn path() -> NormalPath {
    NormalPath(())
}

/// The path of the request, decoded and normalised. [`path`] makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NormalPath(());

impl<W: Framework> Extractor<W> for NormalPath {
    type Key = PathKey<W>;

    fn extract(&self, head: &W::Head<'_>) -> Result<PathKey<W>, KeyError> {
        Ok(PathKey { uri: W::uri(head).clone() })
    }
}

/// The key of a path. It is compared and hashed in its normal form.
pub struct PathKey<W: Framework> {
    /// The text is shared with the request.
    uri: W::Uri,
}

impl<W: Framework> PathKey<W> {
    fn path(&self) -> &str {
        W::path(&self.uri)
    }
}

impl<W: Framework> Clone for PathKey<W> {
    fn clone(&self) -> Self {
        Self { uri: self.uri.clone() }
    }
}

impl<W: Framework> PartialEq for PathKey<W> {
    fn eq(&self, other: &Self) -> bool {
        same_path(self.path(), other.path())
    }
}

impl<W: Framework> Eq for PathKey<W> {}

impl<W: Framework> Hash for PathKey<W> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_path(self.path(), state);
    }
}

impl<W: Framework> fmt::Debug for PathKey<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PathKey").field(&self.path()).finish()
    }
}

#[cfg(feature = "redis")]
impl<W: Framework> tollgate_redis::StoreKey for PathKey<W> {
    fn put(&self, bytes: &mut Vec<u8>) {
        super::super::path::put_path(self.path(), bytes);
    }
}
