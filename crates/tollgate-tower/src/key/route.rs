//! The route that axum has matched.

use core::fmt;
use core::hash::{Hash, Hasher};

use axum::extract::MatchedPath;

use tollgate_http::middleware::KeyError;

use super::extractor::KeyExtractor;
use super::head::Head;

/// The path of the route that axum has matched, such as `/users/{id}`. Clients cannot invent such
/// keys. Requests that match no route share one key.
///
/// Give the layer to
/// [`Router::layer`](https://docs.rs/axum/0.8/axum/struct.Router.html#method.layer) or
/// `route_layer`. A layer around the whole router comes before routes are matched.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_tower::{Limiter, Quota, RateLimitLayer, Route, matched_path};
///
/// // 1000 requests a second to each route.
/// let limiter = Arc::new(Limiter::<Route>::new(Quota::per_second(1000))?);
/// let limit = RateLimitLayer::new(limiter).key(matched_path());
/// # let _ = limit;
/// # Ok::<(), tollgate_tower::BuildError>(())
/// ```
#[must_use]
pub const fn matched_path() -> MatchedRoute {
    MatchedRoute(())
}

/// The route that axum has matched. [`matched_path`] makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchedRoute(());

impl KeyExtractor for MatchedRoute {
    type Key = Route;

    fn extract(&self, head: &Head<'_>) -> Result<Route, KeyError> {
        Ok(Route(head.extensions.get().cloned()))
    }
}

/// The key of a route.
#[derive(Clone)]
pub struct Route(Option<MatchedPath>);

impl Route {
    /// The path, with the names of its parameters; `None` for requests that match no route.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_ref().map(MatchedPath::as_str)
    }
}

impl PartialEq for Route {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Route {}

impl Hash for Route {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Route").field(&self.as_str()).finish()
    }
}

#[cfg(feature = "redis")]
impl tollgate_http::middleware::StoreKey for Route {
    /// Nothing of a request that no route matched: the text of a route is never empty.
    fn put(&self, bytes: &mut Vec<u8>) {
        self.as_str().unwrap_or_default().put(bytes);
    }
}
