//! [`Noted`]: a clock that stores its last reading. [`At`]: a clock that stands still.

use core::cell::Cell;

use crate::clock::Clock;

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
