//! The one place that atomics come from, so that the loom model checker sees every one of them.
//!
//! Built with `--cfg tollgate_loom` (and not bare `loom`, to which dependencies react) the protocol's atomics are loom's.
//! [`plain`] holds the standard ones for what is no part of the protocol: clocks and counters that decide nothing.

#[cfg(not(tollgate_loom))]
pub(crate) use std::sync::{
    Mutex,
    atomic::{AtomicU64, Ordering},
};

#[cfg(tollgate_loom)]
pub(crate) use loom::sync::{
    Mutex,
    atomic::{AtomicU64, Ordering},
};

/// Something that is written often, on cache lines of its own: who reads what is beside it is not to wait for each write.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Apart<T>(pub(crate) T);

impl<T> core::ops::Deref for Apart<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// The standard atomics, which loom does not see.
pub(crate) mod plain {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
}

/// Runs a model, and sees to it that it explored anything.
///
/// Loom remembers only the last access to each atomic. A thread that loads and then swaps hides from it that another thread
/// has loaded before, so if the thread that happens to run first only reads, loom finds nothing to reorder and is done after
/// one run. The thread that spawns the others runs first: in a test it has to be one that writes.
#[cfg(all(test, tollgate_loom))]
pub(crate) fn check_model(model: &loom::model::Builder, body: impl Fn() + Sync + Send + 'static) {
    let runs = std::sync::Arc::new(plain::AtomicU64::new(0));
    let counted = std::sync::Arc::clone(&runs);
    model.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        body();
    });
    let runs = runs.load(Ordering::Relaxed);
    println!("explored {runs} interleavings");
    assert!(runs > 50, "only {runs} interleavings: the first thread only reads");
}
