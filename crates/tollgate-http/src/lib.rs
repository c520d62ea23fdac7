#![doc = include_str!("../README.md")]

#[cfg(doc)]
#[doc = include_str!("../PITFALLS.md")]
pub mod pitfalls {}

mod grpc;
mod headers;
mod limit;
pub mod middleware;
#[cfg(feature = "client")]
mod pause;
mod policy;
#[cfg(feature = "client")]
#[expect(missing_debug_implementations, reason = "it has the state of keys")]
mod polite;
mod problem;
#[cfg(feature = "axum")]
mod response;
mod seconds;

pub use grpc::{grpc_content_type, write_grpc_message};
pub use headers::Headers;
pub use limit::{ServiceLimit, Usage};
#[cfg(feature = "client")]
pub use pause::Pause;
pub use policy::{Policies, Policy, PolicyError, QuotaUnit};
#[cfg(feature = "client")]
pub use polite::Polite;
pub use problem::{DenialKind, Problem};
pub use seconds::retry_after;
#[doc(inline)]
pub use tollgate_address::{ClientAddress, ClientConfigError, ClientError, Peer, TrustedProxies};
