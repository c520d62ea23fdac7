//! The one place that atomics come from, so that the loom model checker sees every one of them.
//!
//! Built with `--cfg tollgate_loom` (and not bare `loom`, to which dependencies react) the protocol's atomics are loom's.
//! [`plain`] holds the standard ones for what is no part of the protocol: clocks and counters that decide nothing.

#[cfg(not(tollgate_loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(tollgate_loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};

/// The standard atomics, which loom does not see.
pub(crate) mod plain {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
}
