//! A function of the head as an extractor.

use core::fmt;
use core::hash::Hash;

use super::{Head, KeyError, KeyExtractor};

/// The key that a function returns for the head.
///
/// ```
/// use tollgate_tower::{Head, KeyExtractor, from_head};
///
/// let method = from_head(|head| Ok(head.method.clone()));
/// let request = http::Request::put("/").body(())?;
/// assert_eq!(method.extract(&Head::of(&request)), Ok(http::Method::PUT));
/// # Ok::<(), http::Error>(())
/// ```
pub const fn from_head<T, K>(function: T) -> FromHead<T>
where
    T: Fn(&Head<'_>) -> Result<K, KeyError> + Send + Sync,
    K: Hash + Clone,
{
    FromHead { function }
}

/// A function of the head as an extractor. [`from_head`] makes it.
#[derive(Clone, Copy)]
pub struct FromHead<T> {
    function: T,
}

impl<T, K> KeyExtractor for FromHead<T>
where
    T: Fn(&Head<'_>) -> Result<K, KeyError> + Send + Sync,
    K: Hash + Clone,
{
    type Key = K;

    fn extract(&self, head: &Head<'_>) -> Result<K, KeyError> {
        (self.function)(head)
    }
}

impl<T> fmt::Debug for FromHead<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromHead").finish_non_exhaustive()
    }
}
