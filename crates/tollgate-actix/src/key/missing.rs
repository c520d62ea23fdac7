//! Extractors with their own treatment of a missing key.

use super::{Head, KeyError, KeyExtractor, Missing};

/// An extractor with its own treatment of a missing key. [`KeyExtractor::on_missing`] makes it.
#[derive(Debug, Clone)]
pub struct OnMissing<X: KeyExtractor> {
    extractor: X,
    missing: Missing<X::Key>,
}

impl<X: KeyExtractor> OnMissing<X> {
    pub(super) const fn new(extractor: X, missing: Missing<X::Key>) -> Self {
        Self { extractor, missing }
    }
}

impl<X: KeyExtractor<Key: Send + Sync>> KeyExtractor for OnMissing<X> {
    type Key = X::Key;

    fn extract(&self, head: &Head<'_>) -> Result<X::Key, KeyError> {
        self.missing.settle(self.extractor.extract(head))
    }
}
