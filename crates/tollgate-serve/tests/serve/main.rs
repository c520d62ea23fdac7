//! Servers on loopback, asked by clients that are not built on the same crates.

mod acquire;
mod authz;
mod bad_input;
mod clients;
mod connections;
#[cfg(feature = "redis")]
mod corpus;
mod envoy;
mod envoy_grpc;
mod guarded;
mod held;
mod in_flight;
#[cfg(feature = "redis")]
mod limited;
mod metrics;
mod networks;
mod nginx;
#[cfg(feature = "redis")]
mod on_store;
mod pages;
mod place;
mod processes;
mod rules;
mod stopping;
mod support;
