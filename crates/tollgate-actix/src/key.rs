//! The keys of requests: [`KeyExtractor`], and the extractors of this crate.

mod client_ip;
mod extension;
mod extractor;
mod from_fn;
mod head;
mod header;
mod path;
mod route;
mod tuples;

pub use client_ip::ClientIp;
pub use extension::{Constant, FromExtension, constant, extension};
pub use extractor::{KeyExtractor, NoKey, OnMissing};
pub use from_fn::{FromHead, from_head};
pub use head::Head;
pub use header::{Header, header};
pub use path::{NormalPath, PathKey, path};
pub use route::{MatchedRoute, Route, matched_path};
pub use tollgate_http::middleware::{KeyError, Missing};
pub use tuples::JointKeys;
