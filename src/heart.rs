//! The core on one word: a key's whole state is one word of 128 bits, changed by one
//! compare-and-swap.
//!
//! No limiter uses it yet. It is built by tests, by the loom models, and by the benchmark
//! `benches/one_word` (`--cfg tollgate_heart`).
#![allow(dead_code, reason = "the limiters do not call it yet")]

pub(crate) mod account;
mod arena;
mod hint;
mod log;
#[cfg(tollgate_heart)]
pub mod measured;
mod ring;
mod root;
mod shard;
mod sync;
mod word;
