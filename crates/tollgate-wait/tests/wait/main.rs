//! Waits by the clock of the machine, and under paused time.

#[cfg(feature = "tokio")]
mod in_flight;
mod threads;
#[cfg(feature = "tokio")]
mod turns;
