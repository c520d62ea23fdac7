//! The [`Clock`] trait and its implementations.

mod any;
mod coarse;
mod mock;
mod monotonic;
mod reading;
#[cfg(feature = "tokio")]
mod tokio;

pub use any::AnyClock;
pub use coarse::CoarseClock;
pub use mock::MockClock;
pub use monotonic::MonotonicClock;
pub use reading::Clock;
pub(crate) use reading::nanos;
#[cfg(feature = "tokio")]
pub use tokio::TokioClock;
