//! A shared pointer that is swapped: `arc-swap`, and in models a list of its values.

pub(super) use imp::{Loaded, Root, loaded};

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

#[cfg(tollgate_loom)]
mod imp {
    use std::sync::{Arc, Mutex};

    use crate::state::sync::{AtomicU64, Ordering};

    pub(in crate::state) type Loaded<T> = Arc<T>;

    pub(in crate::state) fn loaded<T>(value: Arc<T>) -> Loaded<T> {
        value
    }

    /// The values in a list, and the number of the current one in an atomic of loom. So the model
    /// explores the orderings that `arc-swap` states.
    #[derive(Debug)]
    pub(in crate::state) struct Root<T> {
        number: AtomicU64,
        values: Mutex<Vec<Arc<T>>>,
    }

    impl<T> Root<T> {
        pub(in crate::state) fn new(value: Arc<T>) -> Self {
            Self { number: AtomicU64::new(0), values: Mutex::new(vec![value]) }
        }

        pub(in crate::state) fn load(&self) -> Arc<T> {
            let number = self.number.load(Ordering::Acquire);
            Arc::clone(&self.values.lock().unwrap()[usize::try_from(number).unwrap()])
        }

        pub(in crate::state) fn swap(&self, old: &Arc<T>, new: Arc<T>) -> bool {
            let (old, new) = {
                let mut values = self.values.lock().unwrap();
                // Each value once, so that its number is one.
                let mut number = |value: &Arc<T>| {
                    let place = values.iter().position(|other| Arc::ptr_eq(other, value));
                    let place = place.unwrap_or_else(|| {
                        values.push(Arc::clone(value));
                        values.len() - 1
                    });
                    u64::try_from(place).unwrap()
                };
                (number(old), number(&new))
            };
            self.number.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
        }
    }
}
