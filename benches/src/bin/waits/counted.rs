//! [`Counted`]: a clock that counts its readings. Each look at a key, and each decision, reads it.

use std::cell::Cell;

use governor::clock::{QuantaClock, ReasonablyRealtime};
use tollgate::{Clock, MonotonicClock};

thread_local! {
    static READINGS: Cell<u64> = const { Cell::new(0) };
}

/// The readings of this thread so far.
pub(crate) fn readings() -> u64 {
    READINGS.get()
}

#[derive(Debug, Clone)]
pub(crate) struct Counted<C>(pub(crate) C);

impl Clock for Counted<MonotonicClock> {
    fn now(&self) -> u64 {
        READINGS.set(READINGS.get() + 1);
        self.0.now()
    }
}

impl governor::clock::Clock for Counted<QuantaClock> {
    type Instant = <QuantaClock as governor::clock::Clock>::Instant;

    fn now(&self) -> Self::Instant {
        READINGS.set(READINGS.get() + 1);
        governor::clock::Clock::now(&self.0)
    }
}

impl ReasonablyRealtime for Counted<QuantaClock> {}
