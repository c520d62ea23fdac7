//! The keys of requests: [`KeyExtractor`], and what the extractors are in the types of `http`.

mod extractor;
mod framework;
mod head;
mod of_http;
#[cfg(feature = "axum")]
mod route;

pub use extractor::KeyExtractor;
pub use framework::Tower;
pub use head::Head;
#[cfg(feature = "policy")]
pub use of_http::PolicyKey;
pub use of_http::{ClientIp, Header, PathKey, from_head, header};
#[cfg(feature = "axum")]
pub use route::{MatchedRoute, Route, matched_path};
