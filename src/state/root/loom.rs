//! The pointer in models: a list of its values.

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
