//! [`MonotonicClock`]: the default clock.

use core::fmt;

use super::reading::Clock;

/// The default clock: monotonic, with its origin at the time at which it is made.
///
/// It is the clock of the crate `quanta`. That reads the processor's time stamp counter where the
/// counter is reliable, and asks the operating system elsewhere. A reading takes about eight
/// nanoseconds.
///
/// Clones have the same origin, so limiters with clones of one clock share one time.
///
/// ```
/// use tollgate::{Clock, Limiter, MonotonicClock, Quota};
///
/// let clock = MonotonicClock::new();
/// let limiter = Limiter::<String>::builder(Quota::per_minute(100)).clock(clock.clone()).build()?;
/// let before = clock.now();
/// assert!(limiter.try_acquire("alice").is_admitted());
/// assert!(clock.now() >= before);
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Clone)]
pub struct MonotonicClock {
    clock: quanta::Clock,
    origin: u64,
}

impl MonotonicClock {
    /// A clock that starts now. The first in a process calibrates the counter, which takes a few
    /// milliseconds.
    #[must_use]
    pub fn new() -> Self {
        let clock = quanta::Clock::new();
        let origin = clock.raw();
        Self { clock, origin }
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MonotonicClock {
    #[inline]
    fn now(&self) -> u64 {
        // If the counter reads less than the origin (on another core, for example), the result is
        // zero and not a huge number.
        self.clock.delta_as_nanos(self.origin, self.clock.raw())
    }
}

impl fmt::Debug for MonotonicClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MonotonicClock").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
