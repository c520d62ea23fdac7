//! The pointer in models: a list of its values.

use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::eq;
use std::sync::{Arc, Mutex};

use crate::state::sync::{AtomicU64, Ordering};

/// The values in a list, and the number of the current one in an atomic of loom. So the models
/// explore the orderings that `tollgate-root` states, and that crate has models of its own.
#[derive(Debug)]
pub(in crate::state) struct Root<T> {
    number: AtomicU64,
    values: Mutex<Vec<Arc<T>>>,
}

#[derive(Debug)]
pub(in crate::state) struct Guard<'a, T>(Arc<T>, PhantomData<&'a Root<T>>);

impl<'a, T> Guard<'a, T> {
    pub(in crate::state) fn of(_: &'a Root<T>, value: Arc<T>) -> Self {
        Self(value, PhantomData)
    }

    pub(in crate::state) fn end(self, _: impl FnOnce() -> &'a Root<T>) {}

    pub(in crate::state) fn to_arc(&self) -> Arc<T> {
        Arc::clone(&self.0)
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Root<T> {
    pub(in crate::state) fn new(value: Arc<T>) -> Self {
        Self { number: AtomicU64::new(0), values: Mutex::new(vec![value]) }
    }

    pub(in crate::state) fn load(&self) -> Guard<'_, T> {
        let number = self.number.load(Ordering::Acquire);
        let value = &self.values.lock().unwrap()[usize::try_from(number).unwrap()];
        Guard::of(self, Arc::clone(value))
    }

    pub(in crate::state) fn is(&self, value: &T) -> bool {
        eq(&*self.load(), value)
    }

    pub(in crate::state) fn swap(&self, old: &T, new: Arc<T>) -> bool {
        let (old, new) = {
            let mut values = self.values.lock().unwrap();
            let cell = |values: &[Arc<T>], value: *const T| values.iter().position(|it| Arc::as_ptr(it) == value);
            // It may be no value of this root yet.
            let Some(old) = cell(&values, old) else { return false };
            // Each value once, so that its number is one.
            let new = cell(&values, Arc::as_ptr(&new)).unwrap_or_else(|| {
                values.push(new);
                values.len() - 1
            });
            (u64::try_from(old).unwrap(), u64::try_from(new).unwrap())
        };
        self.number.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
