//! The head of a request.

use actix_web::HttpRequest;
use actix_web::http::header::HeaderMap;
use actix_web::http::{Method, Uri};

/// A request without its body. No extractor reads the body.
///
/// ```
/// use actix_web::test::TestRequest;
/// use tollgate_actix::Head;
///
/// let request = TestRequest::get().uri("/login").to_http_request();
/// assert_eq!(Head::of(&request).uri.path(), "/login");
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Head<'a> {
    /// The method.
    pub method: &'a Method,
    /// The target.
    pub uri: &'a Uri,
    /// The header fields.
    pub headers: &'a HeaderMap,
    /// The request: its extensions, its route, the address of the peer, and the data of the
    /// service.
    pub request: &'a HttpRequest,
}

impl<'a> Head<'a> {
    /// The head of this request.
    #[must_use]
    pub fn of(request: &'a HttpRequest) -> Self {
        Self { method: request.method(), uri: request.uri(), headers: request.headers(), request }
    }
}
