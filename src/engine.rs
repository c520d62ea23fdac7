//! The core that [`Limiter`](crate::Limiter), [`DirectLimiter`](crate::DirectLimiter) and
//! [`JointLimiter`](crate::JointLimiter) share. They differ in how a request names its keys.

mod body;
mod decide;
mod joint;
mod modes;
mod refundable;
mod settings;

pub(crate) use body::{Change, Engine};
pub(crate) use joint::Together;
pub(crate) use settings::{Settings, TierSettings};
