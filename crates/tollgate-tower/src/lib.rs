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
