//! The keys of requests: [`KeyExtractor`], and what the extractors are in the types of actix-web.

mod extractor;
mod framework;
mod head;
mod of_actix;
mod route;

pub use extractor::KeyExtractor;
pub use framework::Actix;
pub use head::Head;
#[cfg(feature = "policy")]
pub use of_actix::PolicyKey;
pub use of_actix::{ClientIp, Header, PathKey, from_head, header};
pub use route::{MatchedRoute, Route, matched_path};
