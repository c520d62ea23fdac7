//! A clock that is chosen at run time.

use core::fmt;
use std::sync::Arc;

use super::coarse::CoarseClock;
use super::mock::MockClock;
use super::monotonic::MonotonicClock;
use super::reading::Clock;
#[cfg(feature = "tokio")]
use super::tokio::TokioClock;

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
    Coarse(CoarseClock),
    Mock(MockClock),
    #[cfg(feature = "tokio")]
    Tokio(TokioClock),
}

#[cfg(test)]
mod tests;
