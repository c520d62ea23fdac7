//! A shared pointer that is swapped: `arc-swap`, and in models a list of its values.

#[cfg(not(tollgate_loom))]
pub(super) use imp::{Loaded, Root, loaded};
#[cfg(tollgate_loom)]
pub(super) use loom::{Loaded, Root, loaded};

#[cfg(tollgate_loom)]
mod loom;

/// The bytes that an `Arc` adds to its value: two counts.
pub(super) const ARC: usize = 2 * size_of::<usize>();

#[cfg(not(tollgate_loom))]
mod imp {
    use std::sync::Arc;

    use arc_swap::{ArcSwap, Guard};

    /// A pointer to a value that threads share.
    #[derive(Debug)]
    pub(in crate::state) struct Root<T>(ArcSwap<T>);

    /// A value that a thread has loaded.
    pub(in crate::state) type Loaded<T> = Guard<Arc<T>>;

    pub(in crate::state) fn loaded<T>(value: Arc<T>) -> Loaded<T> {
        Guard::from_inner(value)
    }

    impl<T> Root<T> {
        pub(in crate::state) fn new(value: Arc<T>) -> Self {
            Self(ArcSwap::new(value))
        }

        #[inline]
        pub(in crate::state) fn load(&self) -> Loaded<T> {
            self.0.load()
        }

        /// Swaps the pointer if it is still the old one. Returns whether it was.
        pub(in crate::state) fn swap(&self, old: &Arc<T>, new: Arc<T>) -> bool {
            Arc::ptr_eq(&self.0.compare_and_swap(old, new), old)
        }
    }
}
