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
mod json;
mod listen;
mod routes;
mod server;
mod trouble;
mod verdict;

pub use error::ServeError;
pub use listen::Listen;
pub use server::{Bound, Server, Stopped};
