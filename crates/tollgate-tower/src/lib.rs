#![doc = include_str!("../README.md")]

mod answer;
mod body;
mod charge;
mod future;
mod gate;
mod key;
mod layer;
mod prepared;
mod service;
mod settings;
mod shadow;
mod shared;

pub use body::ResponseBody;
pub use future::ResponseFuture;
pub use gate::Gate;
pub use key::{
    ClientIp, Constant, FromExtension, FromHead, Head, Header, JointKeys, KeyError, KeyExtractor, Missing, NoKey,
    NormalPath, OnMissing, PathKey, constant, extension, from_head, header, path,
};
#[cfg(feature = "axum")]
pub use key::{MatchedRoute, Route, matched_path};
pub use layer::{KeyCountError, RateLimitLayer};
pub use service::RateLimit;
pub use shadow::ShadowSwitch;
