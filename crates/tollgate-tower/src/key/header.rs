//! The text of a header field as a key.

use core::fmt;
use std::borrow::Cow;

use http::HeaderName;

use super::{Head, KeyError, KeyExtractor};

/// The text of the header field with this name, such as an API key. It is a key of a `Limiter<String>`.
///
/// **A client can invent such keys, and each has a quota of its own.** Use it for keys that an
/// outer layer has checked, or together with the client's address: as another dimension of a
/// [`JointLimiter`](tollgate::JointLimiter), not in a tuple for one key.
///
/// A request is rejected with 400 if the field comes twice, is not UTF-8, or is longer than
/// [`MAX_BYTES`](Header::MAX_BYTES). Without the field, or if it is empty, the key is
/// [not sent](KeyError::not_sent). The answers name the field. The text costs an allocation.
///
/// # Panics
///
/// If no field can have this name, such as `"x api key"`. A name from a configuration is better
/// parsed as a `HeaderName` first, which is accepted as well.
///
/// ```
/// use http::Request;
/// use tollgate_tower::{Head, KeyError, KeyExtractor, header};
///
/// let api_key = header("x-api-key");
/// let request = Request::builder().header("X-Api-Key", "k-123").body(())?;
/// assert_eq!(api_key.extract(&Head::of(&request)), Ok("k-123".to_owned()));
/// let twice = Request::builder().header("x-api-key", "a").header("x-api-key", "b").body(())?;
/// assert_eq!(api_key.extract(&Head::of(&twice)), Err(KeyError::malformed()));
/// # Ok::<(), http::Error>(())
/// ```
#[must_use]
#[track_caller]
pub fn header(name: impl TryInto<HeaderName, Error: fmt::Display>) -> Header {
    match name.try_into() {
        Ok(name) => Header { name },
        Err(error) => panic!("no header field can have this name: {error}"),
    }
}

/// The text of a header field. [`header`] makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    name: HeaderName,
}

impl Header {
    /// The longest value in bytes.
    pub const MAX_BYTES: usize = 1024;
}

impl KeyExtractor for Header {
    type Key = String;

    fn extract(&self, head: &Head<'_>) -> Result<String, KeyError> {
        let mut values = head.headers.get_all(&self.name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) if value.len() > Self::MAX_BYTES => Err(KeyError::malformed()),
            (Some(value), None) if !value.is_empty() => {
                let text = core::str::from_utf8(value.as_bytes()).map_err(|_| KeyError::malformed())?;
                Ok(text.to_owned())
            }
            (None | Some(_), None) => Err(KeyError::not_sent()),
            (_, Some(_)) => Err(KeyError::malformed()),
        }
    }

    fn wants(&self) -> Option<Cow<'_, str>> {
        Some(format!("the header field {}", self.name).into())
    }
}
