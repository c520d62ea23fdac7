//! A shared pointer that is swapped: `arc-swap`, and in models a list of its values.

pub(super) use imp::Root;

#[cfg(not(tollgate_loom))]
mod imp {
    use std::sync::Arc;

    use arc_swap::{ArcSwap, Guard};

    /// A pointer to a value that threads share.
    #[derive(Debug)]
    pub(in crate::heart) struct Root<T>(ArcSwap<T>);

    impl<T> Root<T> {
        pub(in crate::heart) fn new(value: Arc<T>) -> Self {
            Self(ArcSwap::new(value))
        }

        #[inline]
        pub(in crate::heart) fn load(&self) -> Guard<Arc<T>> {
            self.0.load()
        }

        /// Swaps the pointer if it is still the old one. Returns whether it was.
        pub(in crate::heart) fn swap(&self, old: &Arc<T>, new: Arc<T>) -> bool {
            Arc::ptr_eq(&self.0.compare_and_swap(old, new), old)
        }
    }
}

#[cfg(tollgate_loom)]
mod imp {
    use std::sync::{Arc, Mutex};

    use crate::heart::sync::{AtomicU64, Ordering};

    /// The values in a list, and the number of the current one in an atomic of loom. So the model
    /// explores the orderings that `arc-swap` states.
    #[derive(Debug)]
    pub(in crate::heart) struct Root<T> {
        number: AtomicU64,
        values: Mutex<Vec<Arc<T>>>,
    }

    impl<T> Root<T> {
        pub(in crate::heart) fn new(value: Arc<T>) -> Self {
            Self { number: AtomicU64::new(0), values: Mutex::new(vec![value]) }
        }

        pub(in crate::heart) fn load(&self) -> Arc<T> {
            let number = self.number.load(Ordering::Acquire);
            Arc::clone(&self.values.lock().unwrap()[usize::try_from(number).unwrap()])
        }

        pub(in crate::heart) fn swap(&self, old: &Arc<T>, new: Arc<T>) -> bool {
            let (old, new) = {
                let mut values = self.values.lock().unwrap();
                let Some(old) = values.iter().position(|value| Arc::ptr_eq(value, old)) else { return false };
                values.push(new);
                (u64::try_from(old).unwrap(), u64::try_from(values.len() - 1).unwrap())
            };
            self.number.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
        }
    }
}
