//! Extractors with their own answer to a missing key.

use super::{Head, KeyError, KeyExtractor, Missing};

/// An extractor with its own answer to a missing key. Made by [`KeyExtractor::on_missing`].
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
