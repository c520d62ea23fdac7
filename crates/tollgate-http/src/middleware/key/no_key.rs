//! No key.

pub use tollgate::NoKey;

use super::super::key_error::KeyError;
use super::extractor::Extractor;
use super::framework::Framework;

/// No key, for a limit by a [`DirectLimiter`](tollgate::DirectLimiter).
impl<W: Framework> Extractor<W> for NoKey {
    type Key = ();

    fn extract(&self, _: &W::Head<'_>) -> Result<(), KeyError> {
        Ok(())
    }
}
