//! [`DirectLimiter`]: one quota and no keys.

mod builder;
mod limiter;

pub use builder::DirectLimiterBuilder;
pub use limiter::DirectLimiter;
