//! The core that [`Limiter`](crate::Limiter), [`DirectLimiter`](crate::DirectLimiter) and
//! [`JointLimiter`](crate::JointLimiter) share. They differ in how a request names its keys.

mod ask;
mod body;
mod decide;
mod settings;

pub(crate) use ask::Together;
pub(crate) use body::{Engine, LimiterId};
pub(crate) use settings::{Settings, TierSettings};
