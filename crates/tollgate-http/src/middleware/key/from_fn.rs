//! A function of the head as an extractor.

use core::fmt;
use core::hash::Hash;
use std::borrow::Cow;

use super::super::key_error::KeyError;
use super::extractor::Extractor;
use super::framework::Framework;

/// A function of the head as an extractor. `from_head` of the crates for tower and actix-web makes
/// it.
#[derive(Clone, Copy)]
pub struct FromHead<T> {
    function: T,
    words: Option<&'static str>,
}

impl<T> FromHead<T> {
    /// The key that this function returns for the head.
    pub const fn new(function: T) -> Self {
        Self { function, words: None }
    }

    /// The same extractor, with [words](Extractor::wants) for the key.
    #[must_use]
    pub fn naming(self, words: &'static str) -> Self {
        Self { words: Some(words), ..self }
    }
}

impl<W, T, K> Extractor<W> for FromHead<T>
where
    W: Framework,
    T: Fn(&W::Head<'_>) -> Result<K, KeyError> + Send + Sync,
    K: Hash + Clone,
{
    type Key = K;

    fn extract(&self, head: &W::Head<'_>) -> Result<K, KeyError> {
        (self.function)(head)
    }

    fn wants(&self) -> Option<Cow<'_, str>> {
        self.words.map(Cow::from)
    }
}

impl<T> fmt::Debug for FromHead<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromHead").finish_non_exhaustive()
    }
}
