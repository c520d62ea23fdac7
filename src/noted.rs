//! A clock that remembers its last reading.

use core::cell::Cell;

use crate::clock::Clock;
use crate::decision::Status;

/// A clock that knows what it showed last, so that waits which were told by different readings can
/// be compared.
pub(crate) struct Noted<'a, C> {
    clock: &'a C,
    last: Cell<u64>,
}

impl<'a, C: Clock> Noted<'a, C> {
    pub(crate) fn new(clock: &'a C) -> Self {
        Self { clock, last: Cell::new(0) }
    }

    /// The last reading.
    pub(crate) fn last(&self) -> u64 {
        self.last.get()
    }

    /// When that will be of which the last reading was told that it is so far ahead.
    pub(crate) fn ahead(&self, wait_ns: u64) -> u64 {
        self.last().saturating_add(wait_ns)
    }

    /// When a denial by the last reading has its wait behind it.
    pub(crate) fn denied_until(&self, status: &Status) -> Option<u64> {
        status.denial().map(|denial| self.ahead(denial.wait_ns()))
    }
}

impl<C: Clock> Clock for Noted<'_, C> {
    #[inline]
    fn now(&self) -> u64 {
        let now = self.clock.now();
        self.last.set(now);
        now
    }
}
