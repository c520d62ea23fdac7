//! Waits by the clock of the machine, and under paused time.

mod threads;
#[cfg(feature = "tokio")]
mod turns;
