//! The only import of atomics, so that the loom model checker sees all of them.
//!
//! With `--cfg tollgate_loom` (not bare `loom`, which dependencies react to) the protocol's atomics
//! are loom's. [`plain`] has the standard ones for clocks and for counters that decide nothing.

#[cfg(not(tollgate_loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(tollgate_loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};

/// A value that is written often, on cache lines of its own, to avoid false sharing.
///
/// `crossbeam_utils` has a type of this name. It would be one more dependency for these lines, and
/// it pads to 128 bytes on most processors.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct CachePadded<T>(pub(crate) T);

impl<T> core::ops::Deref for CachePadded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// The standard atomics, which loom does not see.
pub(crate) mod plain {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
}

/// Runs a model, and checks that it explored more than a few interleavings.
///
/// Loom remembers only the last access to each atomic. A thread that loads and then swaps hides the
/// earlier load of another. So if the thread that runs first only reads, loom finds nothing to
/// reorder and stops after one run. The thread that spawns the others runs first: in a test it must
/// write.
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
