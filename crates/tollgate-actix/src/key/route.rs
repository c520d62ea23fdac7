//! The route that the service matches.

use tollgate_http::middleware::KeyError;

use super::extractor::KeyExtractor;
use super::head::Head;

/// The pattern of the route that a request matches, such as `/users/{id}`. Clients cannot invent
/// such keys. Requests that match no route share one key.
///
/// It is found from the path of the request and the routes of the service, so the middleware can
/// wrap the whole service.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_actix::{Limiter, Quota, RateLimit, Route, matched_path};
///
/// // 1000 requests a second to each route.
/// let limiter = Arc::new(Limiter::<Route>::new(Quota::per_second(1000))?);
/// let limit = RateLimit::new(limiter).key(matched_path());
/// # let _ = limit;
/// # Ok::<(), tollgate_actix::BuildError>(())
/// ```
#[must_use]
pub const fn matched_path() -> MatchedRoute {
    MatchedRoute(())
}

/// The route that a request matches. [`matched_path`] makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchedRoute(());

impl KeyExtractor for MatchedRoute {
    type Key = Route;

    fn extract(&self, head: &Head<'_>) -> Result<Route, KeyError> {
        Ok(Route(head.request.match_pattern()))
    }
}

/// The key of a route.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Route(Option<String>);

impl Route {
    /// The pattern, with the names of its parameters; `None` for requests that match no route.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

#[cfg(feature = "redis")]
impl tollgate_http::middleware::StoreKey for Route {
    /// Nothing of a request that no route matched: the pattern of a route is never empty, because
    /// no path is.
    fn put(&self, bytes: &mut Vec<u8>) {
        self.as_str().unwrap_or_default().put(bytes);
    }
}
