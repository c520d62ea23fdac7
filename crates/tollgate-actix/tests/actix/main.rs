//! The middleware in real servers of actix-web, and around services without one.

mod bodies;
mod charges;
mod connections;
#[cfg(feature = "policy")]
mod corpus;
mod errors;
mod exact;
mod from_actix_governor;
mod handlers;
mod in_flight;
mod limits;
mod no_allocation;
mod panics;
#[cfg(feature = "redis")]
mod server;
#[cfg(feature = "wait")]
mod waits;
#[cfg(feature = "redis")]
mod workers_on_a_store;
