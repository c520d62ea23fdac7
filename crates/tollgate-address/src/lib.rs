#![doc = include_str!("../README.md")]

mod client;
mod embedded;
mod error;
mod forwarded;
mod network;
mod node;
mod peer;
mod trusted;

pub use client::ClientAddress;
pub use error::{ClientConfigError, ClientError};
pub use network::ipv6_network;
pub use peer::Peer;
pub use trusted::TrustedProxies;
