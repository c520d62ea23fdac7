//! The [`Clock`] trait and its implementations.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::SystemTime;

use crate::sync::plain::{AtomicBool, AtomicU64, Ordering};

/// A source of time: nanoseconds since an origin that never moves.
///
/// Implement it for a time of your own, for example that of a simulation. A reference to a clock is
/// a clock, and so is an `Arc` of a clock.
///
/// # Readings that go back
/// A clock should not go back. Some clocks do, between processor cores or after a virtual machine
/// has moved. If a reading is earlier than the stamp of the key's newest permit, a log uses that stamp
/// in its place, and a bucket has had less refilled. So a limiter admits no more than it would by a
/// clock that stands still.
///
/// One effect remains: a limiter drops keys that have expired, and those that are forgotten. By a
/// clock that went back, the first permits of a key count as granted no earlier than the permits of
/// any key that was dropped near it ended. That is never later than the latest reading of any thread.
///
/// # Range
/// A limiter distinguishes readings up to 109 years after the origin. Later it denies too many
/// requests and never admits too many.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use tollgate::{Clock, Limiter, Quota};
///
/// /// The time of a simulation that counts milliseconds.
/// struct Ticks(AtomicU64);
///
/// impl Clock for Ticks {
///     fn now(&self) -> u64 {
///         self.0.load(Ordering::Relaxed) * 1_000_000
///     }
/// }
///
/// let ticks = Arc::new(Ticks(AtomicU64::new(0)));
/// let builder = Limiter::<String>::builder(Quota::per_second(1)).clock(Arc::clone(&ticks));
/// let limiter = builder.build()?;
/// assert!(limiter.try_acquire("alice").is_admitted());
/// ticks.0.store(999, Ordering::Relaxed);
/// assert!(limiter.try_acquire("alice").is_denied());
/// ticks.0.store(1000, Ordering::Relaxed);
/// assert!(limiter.try_acquire("alice").is_admitted());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
pub trait Clock {
    /// The current time, in nanoseconds since the clock's own origin.
    fn now(&self) -> u64;

    /// The time from the start of 1970 (UTC) to the clock's origin, in nanoseconds; `None` if no wall
    /// clock tells. By it [aligned](crate::Quota::aligned) windows begin at times of the wall clock. It
    /// never changes.
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use tollgate::{Clock, InstantClock, MockClock};
    ///
    /// let today = SystemTime::UNIX_EPOCH.elapsed()?.as_nanos();
    /// assert!(InstantClock::new().since_1970().is_some_and(|origin| u128::from(origin) >= today));
    /// assert_eq!(MockClock::new().since_1970(), None);
    /// # Ok::<(), std::time::SystemTimeError>(())
    /// ```
    fn since_1970(&self) -> Option<u64> {
        None
    }
}

/// What the wall clock of the system says, as [`Clock::since_1970`] has it.
fn wall_clock() -> Option<u64> {
    SystemTime::UNIX_EPOCH.elapsed().ok().map(nanos)
}

impl<C: Clock + ?Sized> Clock for &C {
    #[inline]
    fn now(&self) -> u64 {
        (**self).now()
    }

    fn since_1970(&self) -> Option<u64> {
        (**self).since_1970()
    }
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    #[inline]
    fn now(&self) -> u64 {
        (**self).now()
    }

    fn since_1970(&self) -> Option<u64> {
        (**self).since_1970()
    }
}

/// The duration in nanoseconds; the longest that fits if it is longer.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The default clock: monotonic, with its origin at the time at which it is made.
///
/// It is the clock of the crate `quanta`. That reads the processor's time stamp counter where the
/// counter is reliable, and asks the operating system elsewhere. A reading takes about nine
/// nanoseconds.
///
/// **Rate.** A limiter is exact by the readings of its clock. The rate of this one is measured once in
/// a process, beside the clock of the system, in some milliseconds. Of 100 processes 90 run within 3
/// millionths of that clock, a quarter of a second a day. No bound is known: of 7,200 processes on a
/// busy machine the worst was slow by 1,132 millionths, which are 98 seconds a day. Why some are
/// that far off was not measured. For windows and waits of hours and days there is the
/// [`InstantClock`].
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
    since_1970: Option<u64>,
}

impl MonotonicClock {
    /// A clock that starts now. The first in a process calibrates the counter, which takes a few
    /// milliseconds.
    #[must_use]
    pub fn new() -> Self {
        let clock = quanta::Clock::new();
        let origin = clock.raw();
        Self { clock, origin, since_1970: wall_clock() }
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

    fn since_1970(&self) -> Option<u64> {
        self.since_1970
    }
}

impl fmt::Debug for MonotonicClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MonotonicClock").finish_non_exhaustive()
    }
}

/// The clock of the operating system: [`Instant`](std::time::Instant), with its origin at the time
/// at which it is made.
///
/// It runs at the rate of the system's timers, so a window of a day ends when a timer of a day does. A
/// [`MonotonicClock`] may be seconds off by then. A reading takes about 21 nanoseconds on Linux, 12 more
/// than that of a `MonotonicClock`.
///
/// Clones have the same origin, so limiters with clones of one clock share one time.
///
/// ```
/// use tollgate::{InstantClock, Limiter, Quota};
///
/// let quota = Quota::per_day(1000);
/// let limiter = Limiter::<String>::builder(quota).clock(InstantClock::new()).build()?;
/// assert!(limiter.try_acquire("alice").is_admitted());
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct InstantClock {
    origin: std::time::Instant,
    since_1970: Option<u64>,
}

impl InstantClock {
    /// A clock that starts now.
    #[must_use]
    pub fn new() -> Self {
        Self { origin: std::time::Instant::now(), since_1970: wall_clock() }
    }
}

impl Default for InstantClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for InstantClock {
    #[inline]
    fn now(&self) -> u64 {
        nanos(self.origin.elapsed())
    }

    fn since_1970(&self) -> Option<u64> {
        self.since_1970
    }
}

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
    since_1970: Option<u64>,
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
        let source = MonotonicClock::new();
        let (now, stop, since_1970) = (AtomicU64::new(0), AtomicBool::new(false), source.since_1970);
        let shared = Arc::new(Shared { now, stop, since_1970 });
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

    fn since_1970(&self) -> Option<u64> {
        self.shared.since_1970
    }
}

impl fmt::Debug for CoarseClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoarseClock").field("now", &self.now()).finish_non_exhaustive()
    }
}

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

/// The time of a tokio runtime: it follows `tokio::time::pause` and `advance`, as timers do
/// (feature `tokio`).
///
/// In production it is tokio's own clock, the monotonic clock of the operating system. In a test
/// with `#[tokio::test(start_paused = true)]` time stands still. It moves when all tasks sleep or
/// the test advances it. Make the clock inside the runtime whose time it follows. A reading outside
/// of a runtime is that of the operating system. A reading earlier than the making of the clock
/// counts as zero. Since its time may be paused, no wall clock tells its origin: [aligned] windows
/// count from there.
///
/// [aligned]: crate::Quota::aligned
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
#[cfg(feature = "tokio")]
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    origin: tokio::time::Instant,
}

#[cfg(feature = "tokio")]
impl TokioClock {
    /// A clock that starts now.
    #[must_use]
    pub fn new() -> Self {
        Self { origin: tokio::time::Instant::now() }
    }
}

#[cfg(feature = "tokio")]
impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(feature = "tokio")]
impl Clock for TokioClock {
    fn now(&self) -> u64 {
        nanos(tokio::time::Instant::now().saturating_duration_since(self.origin))
    }
}

/// A clock that is chosen at run time: the state of an application names one limiter type, and a
/// test builds that type with another clock.
///
/// The default is a [`MonotonicClock`]. Each clock of this crate converts into an `AnyClock`.
/// [`AnyClock::new`] takes a clock of any other type. A reading costs one predictable branch more
/// than a reading of the clock inside. A clock from [`AnyClock::new`] costs an indirect call, too.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{AnyClock, BuildError, Limiter, MockClock, Quota};
///
/// struct App {
///     logins: Limiter<String, AnyClock>,
/// }
///
/// impl App {
///     fn new(clock: impl Into<AnyClock>) -> Result<Self, BuildError> {
///         let logins = Limiter::builder(Quota::per_minute(1)).clock(clock.into()).build()?;
///         Ok(Self { logins })
///     }
/// }
///
/// // In the service:
/// let app = App::new(AnyClock::default())?;
/// assert!(app.logins.try_acquire("alice").is_admitted());
///
/// // In a test:
/// let clock = MockClock::new();
/// let app = App::new(clock.clone())?;
/// assert!(app.logins.try_acquire("alice").is_admitted());
/// clock.advance(Duration::from_secs(60));
/// assert!(app.logins.try_acquire("alice").is_admitted());
/// # Ok::<(), BuildError>(())
/// ```
#[derive(Clone)]
pub struct AnyClock(Source);

impl AnyClock {
    /// Wraps any other clock, such as that of a simulation.
    ///
    /// ```
    /// use tollgate::{AnyClock, Clock};
    ///
    /// struct Standstill;
    ///
    /// impl Clock for Standstill {
    ///     fn now(&self) -> u64 {
    ///         7
    ///     }
    /// }
    ///
    /// assert_eq!(AnyClock::new(Standstill).now(), 7);
    /// ```
    #[must_use]
    pub fn new(clock: impl Clock + Send + Sync + 'static) -> Self {
        Self(Source::Other(Arc::new(clock)))
    }
}

impl Default for AnyClock {
    fn default() -> Self {
        MonotonicClock::new().into()
    }
}

macro_rules! clocks_of_this_crate {
    ($($(#[$when:meta])* $variant:ident($clock:ty)),+ $(,)?) => {
        #[derive(Clone)]
        enum Source {
            $($(#[$when])* $variant($clock),)+
            Other(Arc<dyn Clock + Send + Sync>),
        }

        impl Clock for AnyClock {
            #[inline]
            fn now(&self) -> u64 {
                match &self.0 {
                    $($(#[$when])* Source::$variant(clock) => clock.now(),)+
                    Source::Other(clock) => clock.now(),
                }
            }

            fn since_1970(&self) -> Option<u64> {
                match &self.0 {
                    $($(#[$when])* Source::$variant(clock) => clock.since_1970(),)+
                    Source::Other(clock) => clock.since_1970(),
                }
            }
        }

        impl fmt::Debug for AnyClock {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match &self.0 {
                    $($(#[$when])* Source::$variant(clock) => clock.fmt(f),)+
                    Source::Other(_) => f.debug_struct("AnyClock").finish_non_exhaustive(),
                }
            }
        }

        $(
            $(#[$when])*
            impl From<$clock> for AnyClock {
                fn from(clock: $clock) -> Self {
                    Self(Source::$variant(clock))
                }
            }
        )+
    };
}

clocks_of_this_crate! {
    Monotonic(MonotonicClock),
    Instant(InstantClock),
    Coarse(CoarseClock),
    Mock(MockClock),
    #[cfg(feature = "tokio")]
    Tokio(TokioClock),
}

#[cfg(test)]
mod tests;
