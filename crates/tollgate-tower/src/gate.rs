//! [`Gate`]: a limiter as a layer asks it.

use tollgate_http::middleware::Find;

use crate::key::{KeyExtractor, Tower};

/// A limiter that a layer can ask with the keys of an extractor:
/// - a [`DirectLimiter`](crate::DirectLimiter), without a key ([`NoKey`](crate::NoKey));
/// - a [`Limiter<K>`](crate::Limiter), with an extractor of `K`;
/// - a [`JointLimiter`](crate::JointLimiter), with a tuple of extractors;
/// - with the feature `redis`, a `PolicyLimiter`, with a tuple of extractors of `StoreKey`s.
///
/// This trait is sealed: only these limiters implement it.
pub trait Gate<X: KeyExtractor>: Find<Tower, X, Keys: Send + Sync> + Send + Sync {}

impl<X: KeyExtractor, L: Find<Tower, X, Keys: Send + Sync> + Send + Sync> Gate<X> for L {}
