//! A clock that tests drive by hand.

use core::time::Duration;
use std::sync::Arc;

use super::reading::Clock;
use crate::sync::plain::{AtomicU64, Ordering};

/// A clock that moves only when told to. Clones share the same time, so a test keeps one and gives the other away.
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
    /// A clock that reads zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock forward. Past the end of time (584 years) it stays there.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        let add = |now: u64| Some(now.saturating_add(by));
        // The closure never declines, so the update cannot fail.
        let _ = self.now.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Sets the clock to `ns` nanoseconds after its origin: forwards, or backwards to see what a bad clock does.
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
