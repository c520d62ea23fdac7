//! Of loom: both barriers are fences.

use core::cell::Cell;

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering};

/// Written by one thread, and then published. Loom sees each use.
pub(crate) struct Link<T>(loom::cell::UnsafeCell<()>, Cell<T>);

impl<T: Copy> Link<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::cell::UnsafeCell::new(()), Cell::new(value))
    }

    pub(crate) fn set(&self, value: T) {
        self.0.with_mut(|_| self.1.set(value));
    }

    pub(crate) fn get(&self) -> T {
        self.0.with(|_| self.1.get())
    }
}

pub(crate) fn prepare() {}

pub(crate) fn is_asymmetric() -> bool {
    true
}

pub(crate) fn fence() {
    loom::sync::atomic::fence(Ordering::SeqCst);
}

pub(crate) use fence as light;
pub(crate) use fence as heavy;
