#![doc = include_str!("../README.md")]

mod blocking;
mod counts;
mod entering;
mod error;
mod limit;
mod line;
mod places;
mod timer;
mod waiting;

pub use counts::WaitCounts;
pub use entering::{Enter, Enters};
pub use error::WaitError;
pub use limit::{Limit, at_least};
pub use line::Lines;
#[cfg(feature = "async-io")]
pub use timer::AsyncIoTimer;
#[cfg(feature = "futures-timer")]
pub use timer::FuturesTimer;
pub use timer::Timer;
#[cfg(feature = "tokio")]
pub use timer::TokioTimer;
pub use waiting::{Acquire, NoTimer, WaitingLimiter};
