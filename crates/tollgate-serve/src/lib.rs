#![doc = include_str!("../README.md")]

mod acquire;
mod answer;
mod authorize;
mod connection;
mod counts;
mod error;
mod fields;
mod grpc;
mod guard;
mod hosts;
mod in_process;
mod json;
mod listen;
#[cfg(feature = "redis")]
mod on_store;
mod routes;
mod server;
mod snapshot_file;
mod trouble;
mod under_way;
mod verdict;
mod whole;

pub use error::ServeError;
pub use listen::Listen;
pub use server::{Bound, Server, Stopped};
