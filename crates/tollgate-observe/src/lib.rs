#![doc = include_str!("../README.md")]

#[cfg(feature = "tracing")]
mod log;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(any(feature = "metrics", feature = "tracing"))]
mod outcome;
#[cfg(feature = "metrics")]
mod reloads;
mod space_saving;
mod text;
mod top;
#[cfg(feature = "metrics")]
mod waits;

#[cfg(feature = "tracing")]
pub use log::LogObserver;
#[cfg(feature = "metrics")]
pub use metrics::MetricsObserver;
#[cfg(feature = "metrics")]
pub use reloads::ReloadMetrics;
pub use text::key_text;
pub use top::{DeniedKey, TopDenied};
#[cfg(feature = "metrics")]
pub use waits::WaitMetrics;
