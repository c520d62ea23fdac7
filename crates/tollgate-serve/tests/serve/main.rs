//! Servers on loopback, asked by clients that are not built on the same crates.

mod acquire;
mod authz;
mod bad_input;
mod clients;
mod connections;
mod envoy;
mod envoy_grpc;
mod guarded;
mod nginx;
mod processes;
mod stopping;
mod support;
