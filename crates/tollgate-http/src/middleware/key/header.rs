//! The text of a header field as a key.

use std::borrow::Cow;

use super::super::key_error::KeyError;
use super::extractor::Extractor;
use super::framework::Framework;

/// The text of a header field. `header` of the crates for tower and actix-web makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header<N> {
    name: N,
}

impl<N> Header<N> {
    /// The longest value in bytes.
    pub const MAX_BYTES: usize = 1024;

    /// The text of the header field with this name.
    pub const fn new(name: N) -> Self {
        Self { name }
    }
}

impl<N> Header<N> {
    /// The text, in the head.
    pub(super) fn text<'h, W: Framework<Name = N>>(&self, head: &'h W::Head<'_>) -> Result<&'h str, KeyError> {
        let mut values = W::values(head, &self.name).map(AsRef::as_ref);
        match (values.next(), values.next()) {
            (Some(value), None) if value.len() > Self::MAX_BYTES => Err(KeyError::malformed()),
            (Some(value), None) if !value.is_empty() => core::str::from_utf8(value).map_err(|_| KeyError::malformed()),
            (None | Some(_), None) => Err(KeyError::not_sent()),
            (_, Some(_)) => Err(KeyError::malformed()),
        }
    }
}

impl<W: Framework<Name: Send + Sync>> Extractor<W> for Header<W::Name> {
    type Key = String;

    fn extract(&self, head: &W::Head<'_>) -> Result<String, KeyError> {
        self.text::<W>(head).map(str::to_owned)
    }

    fn wants(&self) -> Option<Cow<'_, str>> {
        Some(format!("the header field {}", self.name.as_ref()).into())
    }
}
