//! The keys of requests, for any framework: [`Extractor`], and the extractors of this crate.

mod client_ip;
mod extension;
mod extractor;
mod framework;
mod from_fn;
mod header;
mod no_key;
mod path_key;
mod tuples;

pub use client_ip::{CLIENT_IN_WORDS, ClientIp};
pub use extension::{Constant, FromExtension, constant, extension};
pub use extractor::{Extractor, Extracts, OnMissing};
pub use framework::{Framework, HasExtension};
pub use from_fn::FromHead;
pub use header::Header;
pub use no_key::NoKey;
pub use path_key::{NormalPath, PathKey, path};
pub use tuples::JointKeys;
