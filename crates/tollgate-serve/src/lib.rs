#![doc = include_str!("../README.md")]

mod acquire;
mod answer;
mod ask;
mod authorize;
mod connection;
mod counts;
mod error;
mod fields;
mod grpc;
mod guard;
mod held;
mod hosts;
mod json;
mod limiter;
mod listen;
mod release;
mod routes;
mod server;
mod snapshot_file;
mod trouble;
mod under_way;
mod whole;

pub use error::ServeError;
pub use listen::Listen;
pub use server::{Bound, Server, Stopped};
