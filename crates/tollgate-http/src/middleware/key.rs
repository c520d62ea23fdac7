//! The keys of requests, for any framework: [`Extractor`], and the extractors of this crate.

mod client_ip;
mod extension;
mod extractor;
mod framework;
mod from_fn;
mod header;
mod no_key;
mod path_key;
#[cfg(feature = "policy")]
mod policy_key;
mod tuples;

pub use client_ip::{CLIENT_IN_WORDS, ClientIp};
pub use extractor::{Extractor, Extracts};
pub use framework::{Framework, HasExtension};
pub use header::Header;
#[cfg(feature = "policy")]
pub use policy_key::PolicyKey;

/// The extractors that are written in the same way in all frameworks. The crates for tower and
/// actix-web pass them on.
pub mod extractors {
    pub use super::extension::*;
    pub use super::extractor::OnMissing;
    pub use super::from_fn::*;
    pub use super::no_key::*;
    pub use super::path_key::*;
    pub use super::tuples::JointKeys;
}
