//! [`JointLimiter`]: several dimensions, each with quotas of its own, decided as one.

// First, for the order in rustdoc.
mod limiter;

mod about;
mod builder;
mod lists;

pub use builder::JointLimiterBuilder;
pub use limiter::JointLimiter;
