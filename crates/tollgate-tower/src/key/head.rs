//! The head of a request.

use http::request::Parts;
use http::{Extensions, HeaderMap, Method, Request, Uri};

/// A request without its body. No extractor reads the body.
///
/// ```
/// use tollgate_tower::Head;
///
/// let request = http::Request::get("/login").body("not looked at")?;
/// assert_eq!(Head::of(&request).uri.path(), "/login");
/// # Ok::<(), http::Error>(())
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
    /// The extensions that the server and outer layers have inserted.
    pub extensions: &'a Extensions,
}

impl<'a> Head<'a> {
    /// The head that a server or a framework has split off.
    #[must_use]
    pub fn of_parts(parts: &'a Parts) -> Self {
        Self { method: &parts.method, uri: &parts.uri, headers: &parts.headers, extensions: &parts.extensions }
    }

    /// The head of this request.
    #[must_use]
    pub fn of<B>(request: &'a Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }
}
