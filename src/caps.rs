//! Caps on keys, and the answers at them.

use crate::quota::Quota;

/// The most quotas that one key may have. A status lists all of them and allocates nothing.
pub(crate) const MAX_QUOTAS: usize = 8;

/// The most denials that a penalty may take.
pub(crate) const MAX_DENIALS: u32 = Quota::MAX_LIMIT;

/// The largest [cap on keys](crate::LimiterBuilder::key_cap) that a limiter can have: 250 million
/// keys.
///
/// The default cap is 1,048,576 keys. A cap takes no memory: memory follows the keys that the
/// limiter holds.
///
/// ```
/// use tollgate::{BuildError, Limiter, MAX_KEY_CAP, Quota};
///
/// let with_cap = |cap| Limiter::<String>::builder(Quota::per_minute(5)).key_cap(cap).build();
/// assert!(with_cap(MAX_KEY_CAP).is_ok());
/// let key_cap = MAX_KEY_CAP + 1;
/// assert_eq!(with_cap(key_cap).unwrap_err(), BuildError::KeyCapTooLarge { key_cap });
/// ```
pub const MAX_KEY_CAP: usize = 250_000_000;

/// The most dimensions and [tiers](crate::Tier) that a limiter may have together. A limiter of one kind
/// of key counts as one dimension.
///
/// ```
/// use tollgate::{Limiter, MAX_DIMENSIONS_AND_TIERS, Quota};
///
/// let of_tiers = |count: usize| {
///     let builder = Limiter::<str>::builder(Quota::per_minute(5));
///     (0..count).fold(builder, |builder, at| builder.tier(at.to_string(), [Quota::per_minute(9)])).build()
/// };
/// assert!(of_tiers(MAX_DIMENSIONS_AND_TIERS - 1).is_ok());
/// assert!(of_tiers(MAX_DIMENSIONS_AND_TIERS).is_err());
/// ```
pub const MAX_DIMENSIONS_AND_TIERS: usize = 16;

/// The most dimensions that a [`JointLimiter`](crate::JointLimiter) may have.
///
/// ```
/// use tollgate::{JointLimiter, MAX_DIMENSIONS, Quota};
///
/// let of_dimensions = |count: usize| {
///     let mut builder = JointLimiter::<[String]>::builder();
///     for place in 0..count {
///         builder = builder.dimension(place.to_string(), [Quota::per_minute(5)]);
///     }
///     builder.build()
/// };
/// assert!(of_dimensions(MAX_DIMENSIONS).is_ok());
/// assert!(of_dimensions(MAX_DIMENSIONS + 1).is_err());
/// ```
pub const MAX_DIMENSIONS: usize = 8;

/// The default cap on keys: 1,048,576.
pub(crate) const DEFAULT_KEY_CAP: usize = 1 << 20;

/// The answer to a new key when the limiter holds as many keys as its cap allows.
///
/// First the limiter looks for a key whose permits have all expired, and takes its place. If it
/// finds none, it gives this answer. At a cap of at most 1024 keys it looks at all keys. At a larger
/// one each request looks at some, in turn, so a place may be found a few requests later. Keys that
/// the limiter holds are not affected. A [`peek`](crate::Limiter::peek) at a new key gives the same
/// answer and takes no place.
///
/// ```
/// use tollgate::{AtKeyCap, Limiter, Quota};
///
/// let small = |answer| {
///     let builder = Limiter::<String>::builder(Quota::per_minute(1)).key_cap(1);
///     builder.at_key_cap(answer).build()
/// };
/// let (deny, admit) = (small(AtKeyCap::Deny)?, small(AtKeyCap::Admit)?);
/// for limiter in [&deny, &admit] {
///     assert!(limiter.try_acquire("alice").is_admitted());
/// }
/// assert!(deny.try_acquire("bob").is_denied());
/// assert!(!admit.try_acquire("bob").into_result()?.is_counted());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Two first requests at the last place
/// The first request of a key takes a place a few instructions before other threads can find its
/// permits. A second request for the same key in between may find no other place free. Then it gets
/// the answer to a key without a place. The answer is right: at that instant all places are taken,
/// and no permits have been granted to the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum AtKeyCap {
    /// Denies the request with [`DenialReason::KeyCap`](crate::DenialReason::KeyCap). A flood of
    /// new keys takes little work, but new users are denied while it lasts.
    #[default]
    Deny,
    /// Admits the request without a charge. During a flood of new keys, new users are admitted, and
    /// so is the flood.
    Admit,
}
