//! The clock of a tokio runtime, which tests can pause.

use core::fmt;

use tokio::time::Instant;

use super::reading::Clock;
use crate::duration::nanos;

/// The time of a tokio runtime: it follows `tokio::time::pause` and `advance`, as timers do
/// (feature `tokio`).
///
/// In production it is tokio's own clock, the monotonic clock of the operating system. In a test
/// with `#[tokio::test(start_paused = true)]` time stands still. It moves when all tasks sleep or
/// the test advances it. Make the clock inside the runtime whose time it follows. A reading outside
/// of a runtime is that of the operating system. A reading earlier than the making of the clock
/// counts as zero.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), tollgate::BuildError> {
/// use std::time::Duration;
/// use tollgate::{Limiter, Quota, TokioClock};
///
/// let limiter = Limiter::<String>::builder(Quota::per_minute(1)).clock(TokioClock::new()).build()?;
/// assert!(limiter.try_acquire("alice").is_admitted());
/// assert!(limiter.try_acquire("alice").is_denied());
/// // With paused time this returns at once.
/// tokio::time::sleep(Duration::from_secs(60)).await;
/// assert!(limiter.try_acquire("alice").is_admitted());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct TokioClock {
    origin: Instant,
}

impl TokioClock {
    /// A clock that starts now.
    #[must_use]
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> u64 {
        nanos(Instant::now().saturating_duration_since(self.origin))
    }
}

impl fmt::Debug for TokioClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokioClock").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::clock::AnyClock;

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn follows_paused_time_to_the_nanosecond() {
        let clock = TokioClock::new();
        let any = AnyClock::from(clock);
        assert_eq!((clock.now(), any.now()), (0, 0));
        tokio::time::advance(Duration::from_nanos(1_000_001)).await;
        assert_eq!((clock.now(), any.now()), (1_000_001, 1_000_001));
        tokio::time::sleep(Duration::from_secs(3600)).await;
        // A timer fires at the next whole millisecond.
        assert!(clock.now() >= 3_600_001_000_001);
    }

    #[test]
    fn a_reading_outside_of_a_runtime_goes_forward() {
        let clock = TokioClock::new();
        let before = std::time::Instant::now();
        let first = clock.now();
        while clock.now() == first {
            assert!(before.elapsed().as_secs() < 5, "the clock stands still");
        }
        assert!(clock.now() > first);
    }
}
