//! [`Observer`]: code of the caller that sees each decision of a limiter.

mod all;
mod keys;
mod observation;
mod observe;

pub(crate) use all::Observers;
pub(crate) use keys::{Feed, OfDimensions, OneKey};
pub(crate) use observation::Request;
pub use observation::{Observation, ObservedKey};
pub use observe::Observer;
