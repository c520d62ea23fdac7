//! A mock clock for random play, which panics when it has been read too often: a call that never
//! returned would read it without end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tollgate::{Clock, MockClock};

/// More than some hundred operations on some hundred keys need. Counted anew when the clock is set.
const MOST_READINGS: u32 = 1_000_000;

#[derive(Debug, Clone, Default)]
pub struct CountedClock {
    clock: MockClock,
    readings: Arc<AtomicU32>,
}

impl CountedClock {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn set(&self, reading: u64) {
        self.readings.store(0, Ordering::Relaxed);
        self.clock.set(reading);
    }

    pub fn advance(&self, by: Duration) {
        self.readings.store(0, Ordering::Relaxed);
        self.clock.advance(by);
    }
}

impl Clock for CountedClock {
    fn now(&self) -> u64 {
        let readings = self.readings.fetch_add(1, Ordering::Relaxed);
        assert!(readings < MOST_READINGS, "the clock was read {MOST_READINGS} times and not set: a call does not end");
        self.clock.now()
    }
}
