//! [`Observer`]: code of the caller that sees each decision of a limiter.

mod all;
mod keys;
mod observation;
mod observe;
mod told;

pub(crate) use all::Observers;
pub(crate) use keys::{NoKeys, OfDimensions, OneKey};
pub(crate) use observation::Request;
pub use observation::{Observation, ObservedKey};
pub use observe::Observer;
pub(crate) use told::{Told, ToldError};
