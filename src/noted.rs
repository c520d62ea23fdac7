//! [`Noted`]: a clock that stores its last reading. [`At`]: a clock that stands still.

use core::cell::Cell;

use crate::clock::Clock;
use crate::decision::Status;

/// A clock that stores its last reading. Waits from different readings are compared as absolute
/// times.
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

    /// The time that is `wait_ns` after the last reading.
    pub(crate) fn ahead(&self, wait_ns: u64) -> u64 {
        self.last().saturating_add(wait_ns)
    }

    /// The end of the wait of a denial by the last reading; `None` of an admission.
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

/// A clock that stands still at this reading.
pub(crate) struct At(pub(crate) u64);

impl Clock for At {
    fn now(&self) -> u64 {
        self.0
    }
}
