//! Where the time comes from: the [`Clock`] trait and its three implementations.

mod coarse;
mod mock;
mod monotonic;
mod reading;

pub use coarse::CoarseClock;
pub use mock::MockClock;
pub use monotonic::MonotonicClock;
pub use reading::Clock;
