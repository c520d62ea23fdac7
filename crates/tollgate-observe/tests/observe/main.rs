//! Metrics, logs and the list of denied keys, behind limiters of each kind.

#[cfg(all(feature = "metrics", feature = "tracing"))]
mod layers;
#[cfg(feature = "tracing")]
mod logged;
#[cfg(feature = "metrics")]
mod metrics;
mod top;
