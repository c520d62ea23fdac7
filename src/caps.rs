//! Caps on keys, and what happens at them.

use crate::quota::Quota;

/// The most denials that a penalty may take.
pub(crate) const MAX_DENIALS: u32 = Quota::MAX_LIMIT;

/// The most keys that a limiter's cap may allow: 250 million. A little more cells can be told apart, 2^28, and as many rings of stamps,
/// of which threads that are just replacing one need a few to spare.
pub const MAX_KEY_CAP: usize = 250_000_000;
const _: () = assert!(MAX_KEY_CAP + (1 << 20) < crate::slab::MOST_BLOCKS as usize);

/// The most dimensions that a [`JointLimiter`](crate::JointLimiter) may have.
pub const MAX_DIMENSIONS: usize = 8;

/// The cap on keys where none is given: 1,048,576.
pub(crate) const DEFAULT_KEY_CAP: usize = 1 << 20;

/// What a new key is told when the limiter already holds as many keys as its cap allows and none of them can make way.
///
/// Keys that are already held are never affected. A look at a new key ([`peek`](crate::Limiter::peek))
/// tells what a request would be told, and takes no place.
///
/// A new key has its place from the moment at which its cell can be found. A first request takes a
/// cell before that, for a few instructions. Of two first requests for one key at the last place,
/// the second may come in these instructions, and is answered as that of any key without a place.
/// The answer is right: at that moment all places are taken, and nothing has been granted to the
/// key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum AtKeyCap {
    /// Denied, with [`DenialReason::KeyCap`](crate::DenialReason::KeyCap): a flood of new keys can't get work done.
    #[default]
    Deny,
    /// Admitted without being charged: a flood of new keys can't lock a new user out.
    Admit,
    /// Decided on one shared quota for all the keys that found no place: that of all keys, also for
    /// a key with [quotas of its own](crate::Limiter::set_quotas_of). A cost that the key's own quota
    /// allows and the shared one can never admit is denied with
    /// [`DenialReason::KeyCap`](crate::DenialReason::KeyCap): it needs a place.
    Share,
}
