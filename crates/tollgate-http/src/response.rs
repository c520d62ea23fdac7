//! A [`Problem`] as a response of axum.

use axum_core::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::headers::Headers;
use crate::problem::Problem;

/// The status, the header fields in the format of draft 11, and problem details. (Feature `axum`.)
///
/// A problem can be the error of a handler, alone or as a part of the service's error. So a call
/// that `#[rate_limit]` denies gets the same answer as from a layer.
///
/// ```
/// use axum::http::Uri;
/// use tollgate::rate_limit;
/// use tollgate_http::Problem;
///
/// #[rate_limit(limit = 2, per = "30s", key = uri.path())]
/// async fn page(uri: Uri) -> Result<String, Problem<'static>> {
///     Ok(format!("this is {uri}"))
/// }
///
/// let router: axum::Router = axum::Router::new().fallback(page);
/// # drop(router);
/// ```
///
/// A handler that returns no `Result` needs one line:
///
/// ```
/// use axum::response::{IntoResponse, Response};
/// use tollgate::rate_limit;
/// use tollgate_http::Problem;
///
/// #[rate_limit(limit = 2, per = "30s", on_denied = |denial| Problem::from(denial).into_response())]
/// async fn page() -> Response {
///     "hello".into_response()
/// }
/// # let router: axum::Router = axum::Router::new().fallback(page);
/// # drop(router);
/// ```
impl IntoResponse for Problem<'_> {
    fn into_response(self) -> Response {
        // All problems have a valid status code.
        let status = StatusCode::from_u16(self.status()).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
        let mut fields = HeaderMap::new();
        self.write_fields(Headers::Draft11, |name, value| {
            // Values are printable ASCII.
            if let Ok(value) = HeaderValue::from_bytes(value) {
                fields.append(HeaderName::from_static(name), value);
            }
        });
        (status, fields, self.to_json()).into_response()
    }
}
