#![doc = include_str!("../README.md")]

mod answer;
mod charge;
mod denied;
mod future;
mod gate;
mod key;
mod limit;
mod middleware;
mod prepared;
mod settings;
mod shadow;
mod shared;

pub use denied::Denied;
pub use future::ResponseFuture;
pub use gate::Gate;
pub use key::{
    ClientIp, Constant, FromExtension, FromHead, Head, Header, JointKeys, KeyError, KeyExtractor, MatchedRoute,
    Missing, NoKey, NormalPath, OnMissing, PathKey, Route, constant, extension, from_head, header, matched_path, path,
};
pub use limit::{KeyCountError, RateLimit};
pub use middleware::RateLimitMiddleware;
pub use shadow::ShadowSwitch;
