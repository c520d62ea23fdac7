#![doc = include_str!("../README.md")]

mod answer;
mod answered;
mod charge;
mod client;
mod denied;
mod failed;
mod future;
mod gate;
mod handler;
mod key;
mod limit;
mod middleware;
mod rejection;
mod settings;
mod shared;

pub use answered::AnswerHead;
pub use client::Client;
pub use denied::Denied;
pub use failed::LimitedError;
pub use future::ResponseFuture;
pub use gate::Gate;
pub use handler::{Charge, Fields, Rejected};
pub use key::{
    ClientIp, Constant, FromExtension, FromHead, Head, Header, JointKeys, KeyError, KeyExtractor, MatchedRoute,
    Missing, NoKey, NormalPath, OnMissing, PathKey, Route, constant, extension, from_head, header, matched_path, path,
};
pub use limit::RateLimit;
pub use middleware::RateLimitMiddleware;
pub use rejection::Rejection;
pub use tollgate::{BuildError, DirectLimiter, JointLimiter, Limiter, Quota};
pub use tollgate_http::middleware::{Admitted, AtOnce, ShadowSwitch};
pub use tollgate_http::{
    ClientAddress, ClientConfigError, DenialKind, Headers, Peer, PolicyError, Problem, QuotaUnit, ServiceLimit,
    TrustedProxies,
};
