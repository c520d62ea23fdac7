#![doc = include_str!("../README.md")]

mod answer;
mod answered;
mod body;
mod charge;
mod client;
mod denied;
mod failed;
mod future;
mod handler;
mod key;
mod limit;
mod middleware;
mod rejection;

pub use answered::AnswerHead;
pub use client::Client;
pub use denied::Denied;
pub use failed::LimitedError;
pub use future::ResponseFuture;
pub use handler::{Charge, Fields, Rejected};
#[cfg(feature = "policy")]
pub use key::PolicyKey;
pub use key::{
    Actix, ClientIp, Head, Header, KeyExtractor, MatchedRoute, PathKey, Route, from_head, header, matched_path,
};
pub use limit::RateLimit;
pub use middleware::RateLimitMiddleware;
pub use rejection::Rejection;
pub use tollgate::{BuildError, DirectLimiter, JointLimiter, Limiter, Quota};
#[doc(inline)]
pub use tollgate_http::middleware::extractors::*;
pub use tollgate_http::middleware::{Admitted, AtOnce, Gate, KeyError, Missing, RequestInFlight, ShadowSwitch};
#[cfg(feature = "redis")]
pub use tollgate_http::middleware::{PolicyLimiter, StoreKey};
pub use tollgate_http::{
    ClientAddress, ClientConfigError, DenialKind, Headers, Peer, PolicyError, Problem, QuotaUnit, ServiceLimit,
    TrustedProxies,
};
