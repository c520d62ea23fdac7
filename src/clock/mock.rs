//! [`MockClock`]: a clock that tests move.

use core::time::Duration;
use std::sync::Arc;

use super::reading::{Clock, nanos};
use crate::sync::plain::{AtomicU64, Ordering};

/// A clock for tests, which moves only when [`advance`](Self::advance) or [`set`](Self::set) is
/// called.
///
/// Clones share one time. A test keeps one clone and gives another to the limiter.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, MockClock, Quota};
///
/// let clock = MockClock::new();
/// let limiter = Limiter::<String>::builder(Quota::per_minute(1)).clock(clock.clone()).build()?;
/// assert!(limiter.try_acquire("alice").is_admitted());
/// assert!(limiter.try_acquire("alice").is_denied());
/// clock.advance(Duration::from_secs(60));
/// assert!(limiter.try_acquire("alice").is_admitted());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct MockClock {
    now: Arc<AtomicU64>,
}

impl MockClock {
    /// A clock whose reading is zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock forward. It stops at `u64::MAX` nanoseconds, which are 584 years.
    pub fn advance(&self, by: Duration) {
        let add = |now: u64| Some(now.saturating_add(nanos(by)));
        // The closure always returns a value, so the update cannot fail.
        let _ = self.now.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Sets the reading to `ns` nanoseconds. A reading earlier than the last simulates a clock that
    /// goes back.
    ///
    /// ```
    /// use tollgate::{Limiter, MockClock, Quota};
    ///
    /// let clock = MockClock::new();
    /// let builder = Limiter::<String>::builder(Quota::per_second(1)).clock(clock.clone());
    /// let limiter = builder.build()?;
    /// clock.set(1_000_000_000);
    /// assert!(limiter.try_acquire("alice").is_admitted());
    /// clock.set(0);
    /// assert!(limiter.try_acquire("alice").is_denied());
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    pub fn set(&self, ns: u64) {
        self.now.store(ns, Ordering::Relaxed);
    }
}

impl Clock for MockClock {
    #[inline]
    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
}
