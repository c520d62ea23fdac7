//! The core on one word: a key's whole state is one word of 128 bits, changed by one
//! compare-and-swap.

pub(crate) mod account;
mod arena;
mod claims;
#[cfg(feature = "snapshot")]
pub(crate) mod export;
mod hint;
pub(crate) mod joint;
mod key;
mod log;
mod places;
mod plan;
pub(crate) mod request;
mod ring;
mod root;
mod shard;
mod sync;
pub(crate) mod table;
pub(crate) mod versions;
mod word;

/// Whether words are swapped without a lock.
pub(crate) fn is_lock_free() -> bool {
    portable_atomic::AtomicU128::is_lock_free()
}
