//! The layer in real servers on loopback, asked by real clients.

mod addresses;
mod axum_state;
mod bodies;
mod connect_info;
mod cors;
mod disconnect;
mod exact;
mod from_tower_governor;
mod handlers;
mod http2;
mod in_flight;
mod keys;
#[cfg(feature = "client")]
mod polite;
mod routes;
mod stacks;
mod support;
mod upgrades;
