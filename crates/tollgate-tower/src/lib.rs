#![doc = include_str!("../README.md")]

#[cfg(any(doc, doctest))]
#[doc = include_str!("../GUIDE.md")]
pub mod guide {}

mod answer;
mod body;
#[cfg(feature = "axum")]
mod client;
mod future;
mod handler;
mod key;
mod layer;
mod rejection;
mod service;
#[cfg(feature = "client")]
mod throttle;

pub use body::ResponseBody;
#[cfg(feature = "axum")]
pub use client::Client;
pub use future::ResponseFuture;
pub use handler::{Charge, Fields, Rejected};
#[cfg(feature = "policy")]
pub use key::PolicyKey;
pub use key::{ClientIp, Head, Header, KeyExtractor, PathKey, Tower, from_head, header};
#[cfg(feature = "axum")]
pub use key::{MatchedRoute, Route, matched_path};
pub use layer::RateLimitLayer;
pub use rejection::{IntoAnswer, Rejection};
pub use service::RateLimit;
#[cfg(feature = "client")]
pub use throttle::{Throttle, ThrottleError, ThrottleLayer, retry_after};
pub use tollgate::{BuildError, DirectLimiter, JointLimiter, Limiter, Quota};
#[cfg(feature = "client")]
pub use tollgate_http::Pause;
#[doc(inline)]
pub use tollgate_http::middleware::extractors::*;
pub use tollgate_http::middleware::{Admitted, AtOnce, Gate, KeyError, Missing, RequestInFlight, ShadowSwitch};
#[cfg(feature = "redis")]
pub use tollgate_http::middleware::{PolicyLimiter, StoreKey};
pub use tollgate_http::{
    ClientAddress, ClientConfigError, DenialKind, Headers, Peer, PolicyError, Problem, QuotaUnit, ServiceLimit,
    TrustedProxies,
};

/// ```compile_fail,E0277
/// use std::net::IpAddr;
/// use std::sync::Arc;
/// use tollgate_tower::{ClientIp, PolicyLimiter, RateLimitLayer};
///
/// fn more(limiter: Arc<PolicyLimiter<(IpAddr,)>>) {
///     let _ = RateLimitLayer::new(limiter).key((ClientIp::peer(),)).cost_after(|_| 1);
/// }
/// ```
///
/// ```
/// use std::net::IpAddr;
/// use std::sync::Arc;
/// use tollgate_tower::{ClientIp, PolicyLimiter, RateLimitLayer};
///
/// fn refunds(limiter: Arc<PolicyLimiter<(IpAddr,)>>) {
///     let _ = RateLimitLayer::new(limiter).key((ClientIp::peer(),)).refund_when(|_| true);
/// }
/// ```
#[cfg(all(doctest, feature = "redis"))]
struct OnAStoreNoMoreIsCharged;
