//! The layers in front of services in the same process, and in real servers on loopback.

mod common;
#[cfg(feature = "policy")]
mod corpus;
mod grpc;
mod layer;
mod no_allocation;
#[cfg(feature = "redis")]
mod on_a_store;
#[cfg(feature = "policy")]
mod policy_key;
#[cfg(feature = "redis")]
#[cfg(feature = "axum")]
mod served;
#[cfg(feature = "client")]
mod throttle;
