//! Timers of tasks.

use core::future::Future;
use core::time::Duration;

/// Timers for waiting tasks: `TokioTimer` (feature `tokio`), `AsyncIoTimer` (feature `async-io`),
/// `FuturesTimer` (feature `futures-timer`), or one of your own.
///
/// It has to go with the limiter's clock: under paused time of tokio, that is `TokioClock`. With a
/// clock that stands still, a request waits until that is moved. Timers run by the system's clock. For
/// waits of hours the limiter should, too: with an `InstantClock`, or with `TokioClock`.
///
/// ```
/// use std::time::Duration;
/// use tollgate_wait::Timer;
///
/// struct OfTokio;
///
/// impl Timer for OfTokio {
///     fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send + 'static {
///         tokio::time::sleep(time)
///     }
/// }
/// ```
pub trait Timer {
    /// Ends once the time has passed, and not before.
    fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send + 'static;
}

/// Timers of a tokio runtime (feature `tokio`). Paused time holds for them, too.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use std::time::Duration;
/// use tollgate_wait::{Timer, TokioTimer};
///
/// // Time that is paused passes at once.
/// TokioTimer.sleep(Duration::from_secs(3600)).await;
/// # }
/// ```
///
/// # Panics
///
/// [`sleep`](Timer::sleep) panics outside of a tokio runtime whose time is enabled.
#[cfg(feature = "tokio")]
#[derive(Debug, Clone, Copy, Default)]
pub struct TokioTimer;

#[cfg(feature = "tokio")]
impl Timer for TokioTimer {
    fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send + 'static {
        tokio::time::sleep(time)
    }
}

/// Timers of `async-io`, as the runtimes smol and async-std have them (feature `async-io`).
///
/// ```
/// use std::time::Duration;
/// use tollgate_wait::{AsyncIoTimer, Timer};
///
/// let second = AsyncIoTimer.sleep(Duration::from_secs(1));
/// # drop(second);
/// ```
#[cfg(feature = "async-io")]
#[derive(Debug, Clone, Copy, Default)]
pub struct AsyncIoTimer;

#[cfg(feature = "async-io")]
impl Timer for AsyncIoTimer {
    fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send + 'static {
        let timer = async_io::Timer::after(time);
        async move {
            timer.await;
        }
    }
}

/// Timers without a runtime (feature `futures-timer`), of at most 30 years.
///
/// ```
/// use std::time::Duration;
/// use tollgate_wait::{FuturesTimer, Timer};
///
/// let second = FuturesTimer.sleep(Duration::from_secs(1));
/// # drop(second);
/// ```
#[cfg(feature = "futures-timer")]
#[derive(Debug, Clone, Copy, Default)]
pub struct FuturesTimer;

#[cfg(feature = "futures-timer")]
const LONGEST: Duration = Duration::from_secs(30 * 365 * 86_400);

#[cfg(feature = "futures-timer")]
impl Timer for FuturesTimer {
    fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send + 'static {
        // It adds the time to the present, which must not overflow.
        futures_timer::Delay::new(time.min(LONGEST))
    }
}
