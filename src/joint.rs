//! [`JointLimiter`]: several dimensions, each with quotas of its own, decided as one.

mod builder;
mod limiter;
mod lists;

pub use builder::JointLimiterBuilder;
pub use limiter::JointLimiter;
