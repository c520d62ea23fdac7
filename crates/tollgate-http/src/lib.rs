#![doc = include_str!("../README.md")]

#[cfg(doc)]
#[doc = include_str!("../PITFALLS.md")]
pub mod pitfalls {}

mod client;
mod grpc;
mod headers;
mod limit;
pub mod middleware;
mod policy;
mod problem;
#[cfg(feature = "axum")]
mod response;
mod seconds;

pub use client::{ClientAddress, ClientConfigError, ClientError, Peer, TrustedProxies};
pub use grpc::{grpc_content_type, write_grpc_message};
pub use headers::Headers;
pub use limit::{ServiceLimit, Usage};
pub use policy::{Policies, Policy, PolicyError, QuotaUnit};
pub use problem::{DenialKind, Problem};
pub use seconds::retry_after;
