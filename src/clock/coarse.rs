//! [`CoarseClock`]: a thread updates it, so a reading costs one load.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::monotonic::MonotonicClock;
use super::reading::Clock;
use crate::sync::plain::{AtomicBool, AtomicU64, Ordering};

/// A clock whose reading costs one load. A thread, the ticker, updates it once per resolution.
///
/// **Accuracy.** A reading is never ahead of the [`MonotonicClock`]. It lags behind by up to one
/// resolution plus the time in which the operating system wakes the ticker. The wake-up usually
/// takes well under a millisecond, and longer on a machine without an idle core. A limiter is exact
/// by the readings of this clock. By a precise clock, a permit may come free too early or too late
/// by the lag.
///
/// Clones share one ticker. Dropping the last clone stops the ticker and joins its thread.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{CoarseClock, Limiter, Quota};
///
/// let clock = CoarseClock::new(Duration::from_millis(1))?;
/// let limiter = Limiter::<String>::builder(Quota::per_minute(100)).clock(clock).build()?;
/// assert!(limiter.try_acquire("alice").is_admitted());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct CoarseClock {
    // The ticker has this pointer, too. It is here so that a reading follows one pointer.
    shared: Arc<Shared>,
    _ticker: Arc<Ticker>,
}

struct Shared {
    now: AtomicU64,
    stop: AtomicBool,
}

/// Stops and joins the thread when the last clock that uses it is dropped.
struct Ticker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl CoarseClock {
    /// Starts the ticker. A `resolution` of zero ticks as often as the scheduler allows.
    ///
    /// # Errors
    ///
    /// The error of the operating system, when it can't start a thread.
    pub fn new(resolution: Duration) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { now: AtomicU64::new(0), stop: AtomicBool::new(false) });
        let source = MonotonicClock::new();
        let ticking = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("tollgate-clock".into()).spawn(move || {
            while !ticking.stop.load(Ordering::Relaxed) {
                ticking.now.store(source.now(), Ordering::Relaxed);
                // The thread parks and does not sleep. So dropping the last clock does not wait for
                // a long resolution.
                std::thread::park_timeout(resolution);
            }
        })?;
        let ticker = Ticker { shared: Arc::clone(&shared), thread: Some(thread) };
        Ok(Self { shared, _ticker: Arc::new(ticker) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // If the ticker panicked, there is nothing to clean up.
            let _ = thread.join();
        }
    }
}

impl Clock for CoarseClock {
    #[inline]
    fn now(&self) -> u64 {
        self.shared.now.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for CoarseClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoarseClock").field("now", &self.now()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
