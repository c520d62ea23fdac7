//! The core on one word: a key's whole state is one word of 128 bits, changed by one
//! compare-and-swap.

pub(crate) mod account;
pub(crate) mod algorithms;
mod arena;
mod cell;
mod claims;
mod code;
pub(crate) mod concurrency;
mod enter;
#[cfg(feature = "snapshot")]
pub(crate) mod export;
pub(crate) mod joint;
mod log;
mod places;
pub(crate) mod plan;
pub(crate) mod request;
mod ring;
mod root;
mod settle;
mod shard;
mod short;
mod sync;
pub(crate) mod table;

/// Whether words are swapped without a lock.
pub(crate) fn is_lock_free() -> bool {
    portable_atomic::AtomicU128::is_lock_free()
}
