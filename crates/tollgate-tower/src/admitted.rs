//! [`Admitted`]: the decision, as handlers see it.

use core::time::Duration;

use tollgate_http::Usage;

/// The decision about an admitted request, which
/// [`tell_handlers`](crate::RateLimitLayer::tell_handlers) puts into its extensions.
///
/// ```
/// # #[cfg(feature = "axum")]
/// # fn main() -> Result<(), tollgate_tower::BuildError> {
/// use std::sync::Arc;
/// use axum::{Extension, Router, routing::get};
/// use tollgate_tower::{Admitted, DirectLimiter, Quota, RateLimitLayer};
///
/// async fn hello(Extension(admitted): Extension<Admitted>) -> String {
///     format!("{} of {} left", admitted.remaining(), admitted.limit())
/// }
///
/// let limiter = Arc::new(DirectLimiter::new(Quota::per_second(100))?);
/// let limit = RateLimitLayer::new(limiter).tell_handlers(true);
/// let app: Router = Router::new().route("/", get(hello)).layer(limit);
/// # let _ = app;
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "axum"))]
/// # fn main() {}
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admitted {
    limit: u32,
    usage: Usage,
}

impl Admitted {
    pub(crate) const fn new(limit: u32, usage: Usage) -> Self {
        Self { limit, usage }
    }

    /// The limit of the tightest quota.
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// The permits left of that quota, after this request.
    #[must_use]
    pub const fn remaining(&self) -> u32 {
        self.usage.remaining
    }

    /// The time until one more of them is free.
    #[must_use]
    pub const fn next_after(&self) -> Duration {
        self.usage.next_after
    }
}
