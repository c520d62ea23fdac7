//! [`Key`], the keys of a limiter, and [`NoKey`] in their place.

use core::hash::{Hash, Hasher};

use crate::fingerprint::{DefaultFingerprinter, Fingerprint, Fingerprinter};
use crate::keys::AsKey;
use crate::state::table::THE_KEY;

/// The keys of a [`Limiter`](crate::Limiter): a type that can be hashed, or [`NoKey`].
///
/// ```
/// use tollgate::{Key, NoKey};
///
/// fn fingerprinter<K: Key + ?Sized>() -> K::Fingerprinter {
///     K::Fingerprinter::default()
/// }
///
/// assert_eq!(fingerprinter::<NoKey>(), NoKey);
/// let _ = fingerprinter::<str>();
/// ```
///
/// This trait is sealed: these types implement it, and no others.
pub trait Key: sealed::Sealed {
    /// Makes the fingerprints of a limiter that is built without another one.
    type Fingerprinter: Fingerprinter + Default;

    #[doc(hidden)]
    const IS_NONE: bool;
}

impl<K: Hash + ?Sized> Key for K {
    type Fingerprinter = DefaultFingerprinter;

    const IS_NONE: bool = false;
}

mod sealed {
    pub trait Sealed {}

    impl<K: core::hash::Hash + ?Sized> Sealed for K {}
    impl Sealed for super::NoKey {}
}

/// In place of a type of keys: the limiter has none. As a fingerprinter, it gives each request the
/// same fingerprint.
///
/// ```
/// use tollgate::{DirectLimiter, Limiter, MonotonicClock, NoKey, Quota};
///
/// let limiter: Limiter<NoKey, MonotonicClock, NoKey> = DirectLimiter::new(Quota::per_second(1))?;
/// assert!(limiter.try_acquire().is_admitted());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NoKey;

impl Key for NoKey {
    type Fingerprinter = Self;

    const IS_NONE: bool = true;
}

impl Fingerprinter for NoKey {
    fn fingerprint<Q: Hash + ?Sized>(&self, _: &Q) -> Fingerprint {
        THE_KEY
    }
}

/// A request without a key.
impl AsKey<NoKey> for () {
    fn hash_key<H: Hasher>(&self, _: &mut H) {}
}
