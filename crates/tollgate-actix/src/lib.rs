#![doc = include_str!("../README.md")]

mod answer;
mod charge;
mod denied;
mod future;
mod gate;
mod key;
mod limit;
mod middleware;
mod settings;
mod shared;

pub use denied::Denied;
pub use future::ResponseFuture;
pub use gate::Gate;
pub use key::{
    ClientIp, Constant, FromExtension, FromHead, Head, Header, JointKeys, KeyError, KeyExtractor, MatchedRoute,
    Missing, NoKey, NormalPath, OnMissing, PathKey, Route, constant, extension, from_head, header, matched_path, path,
};
pub use limit::RateLimit;
pub use middleware::RateLimitMiddleware;
pub use tollgate_http::middleware::ShadowSwitch;
