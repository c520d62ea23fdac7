//! The value of a header field as a key.

use actix_web::http::header::{HeaderName, HeaderValue};

use super::{Head, KeyError, KeyExtractor};

/// The value of this header field, such as an API key.
///
/// **A client can invent such keys, and each has a quota of its own.** Use it for keys that an
/// outer middleware has checked, or together with the client's address: as another dimension of a
/// [`JointLimiter`](tollgate::JointLimiter), not in a tuple for one key.
///
/// A request is rejected with 400 if the field comes twice or is longer than
/// [`MAX_BYTES`](Header::MAX_BYTES). Without the field, or if it is empty, the key is
/// [not sent](KeyError::not_sent).
///
/// ```
/// use actix_web::http::header::{HeaderName, HeaderValue};
/// use actix_web::test::TestRequest;
/// use tollgate_actix::{Head, KeyError, KeyExtractor, header};
///
/// let api_key = header(HeaderName::from_static("x-api-key"));
/// let request = TestRequest::get().insert_header(("X-Api-Key", "k-123")).to_http_request();
/// assert_eq!(api_key.extract(&Head::of(&request)), Ok(HeaderValue::from_static("k-123")));
/// let twice = TestRequest::get().append_header(("x-api-key", "a")).append_header(("x-api-key", "b"));
/// let twice = twice.to_http_request();
/// assert_eq!(api_key.extract(&Head::of(&twice)), Err(KeyError::malformed()));
/// ```
#[must_use]
pub const fn header(name: HeaderName) -> Header {
    Header { name }
}

/// The value of a header field. [`header`] makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    name: HeaderName,
}

impl Header {
    /// The longest value in bytes.
    pub const MAX_BYTES: usize = 1024;
}

impl KeyExtractor for Header {
    type Key = HeaderValue;

    fn extract(&self, head: &Head<'_>) -> Result<HeaderValue, KeyError> {
        let mut values = head.headers.get_all(&self.name);
        match (values.next(), values.next()) {
            (Some(value), None) if value.len() > Self::MAX_BYTES => Err(KeyError::malformed()),
            (Some(value), None) if !value.is_empty() => Ok(value.clone()),
            (None | Some(_), None) => Err(KeyError::not_sent()),
            (_, Some(_)) => Err(KeyError::malformed()),
        }
    }
}
