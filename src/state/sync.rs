//! The atomics of the core. In models they are loom's.

#[cfg(any(not(test), tollgate_loom))]
pub(super) use crate::sync::AtomicU64;
pub(super) use crate::sync::Ordering;

#[cfg(not(any(test, tollgate_loom)))]
pub(super) use portable_atomic::AtomicU128;

#[cfg(all(test, not(tollgate_loom)))]
pub(super) mod stepped_kit;
#[cfg(all(test, not(tollgate_loom)))]
pub(super) use stepped_kit::{AtomicU64, AtomicU128};

#[cfg(tollgate_loom)]
mod loom;
#[cfg(tollgate_loom)]
pub(super) use loom::{AtomicU128, Record};

#[cfg(not(tollgate_loom))]
pub(super) use record::Record;

/// Words that a thread writes while no other reads them, and then publishes.
#[cfg(not(tollgate_loom))]
mod record {
    use crate::sync::{AtomicU64, Ordering};

    #[derive(Debug)]
    pub(in crate::state) struct Record<const N: usize>([AtomicU64; N]);

    impl<const N: usize> Record<N> {
        pub(in crate::state) fn new() -> Self {
            Self(core::array::from_fn(|_| AtomicU64::new(0)))
        }

        pub(in crate::state) fn write(&self, words: [u64; N]) {
            for (cell, word) in self.0.iter().zip(words) {
                cell.store(word, Ordering::Relaxed);
            }
        }

        pub(in crate::state) fn read(&self) -> [u64; N] {
            self.0.each_ref().map(|cell| cell.load(Ordering::Relaxed))
        }
    }
}
