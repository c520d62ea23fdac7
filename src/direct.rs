//! [`DirectLimiter`]: one quota and no keys.

// First, for the order in rustdoc.
mod limiter;

mod builder;

pub use builder::DirectLimiterBuilder;
pub use limiter::DirectLimiter;
pub(crate) use limiter::THE_KEY;
