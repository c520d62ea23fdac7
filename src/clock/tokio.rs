//! The clock of a tokio runtime, which tests can pause.

use core::fmt;

use tokio::time::Instant;

use super::reading::{Clock, nanos};

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
mod tests;
