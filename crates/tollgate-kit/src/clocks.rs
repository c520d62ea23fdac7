//! Mock clocks that do more than show a time.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tollgate::{Clock, MockClock};

/// More than some hundred operations on some hundred keys need. Counted anew when the clock is set.
const MOST_READINGS: u32 = 1_000_000;

/// A mock clock that panics when it has been read too often: a call that never returned would read it
/// without end.
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

    /// How often it was read since it was set, or asked this.
    pub fn take_readings(&self) -> u32 {
        self.readings.swap(0, Ordering::Relaxed)
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

/// What a clock runs.
type Hook = Box<dyn FnOnce() + Send>;

/// A mock clock at which a thread stops: between its next reading and the use of that, others go on.
#[derive(Clone, Default)]
pub struct HookedClock {
    clock: MockClock,
    meanwhile: Arc<Mutex<Option<Hook>>>,
}

impl HookedClock {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn set(&self, reading: u64) {
        self.clock.set(reading);
    }

    /// The next reading is taken before this runs, and used after it.
    pub fn at_next_reading(&self, hook: impl FnOnce() + Send + 'static) {
        *self.meanwhile.lock().expect("no hook is set by a hook") = Some(Box::new(hook));
    }
}

impl Clock for HookedClock {
    fn now(&self) -> u64 {
        let reading = self.clock.now();
        let hook = self.meanwhile.lock().expect("no hook is set by a hook").take();
        if let Some(hook) = hook {
            hook();
        }
        reading
    }
}

/// A mock clock whose origin the wall clock tells.
#[derive(Clone, Default)]
pub struct AnchoredClock {
    clock: MockClock,
    since_1970: u64,
}

impl AnchoredClock {
    /// A clock that was made so many nanoseconds after the start of 1970.
    pub fn made_at(since_1970: u64) -> Self {
        Self { clock: MockClock::new(), since_1970 }
    }

    /// Sets the time, in nanoseconds since 1970.
    pub fn set(&self, since_1970: u64) {
        self.clock.set(since_1970 - self.since_1970);
    }
}

impl Clock for AnchoredClock {
    fn now(&self) -> u64 {
        self.clock.now()
    }

    fn since_1970(&self) -> Option<u64> {
        Some(self.since_1970)
    }
}
