//! No key.

use super::super::key_error::KeyError;
use super::extractor::Extractor;
use super::framework::Framework;

/// No key, for a limit by a [`DirectLimiter`](tollgate::DirectLimiter).
///
/// ```
/// use tollgate_http::middleware::{Extractor, Framework, NoKey};
///
/// fn has_no_key<W: Framework>() -> impl Extractor<W, Key = ()> {
///     NoKey
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NoKey;

impl<W: Framework> Extractor<W> for NoKey {
    type Key = ();

    fn extract(&self, _: &W::Head<'_>) -> Result<(), KeyError> {
        Ok(())
    }
}
