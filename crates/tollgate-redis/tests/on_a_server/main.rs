//! What a caller sees of a real server, by the server's own clock.

#[path = "../support/mod.rs"]
mod support;

mod cluster;
mod keys;
mod leases;
mod refunds;
mod sharing;
mod together;
mod values;
