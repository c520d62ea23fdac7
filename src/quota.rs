//! [`Quota`]: the limit of a key, as plain integers.

mod algorithms;
mod calendar;
mod kind;
pub mod schema;
#[cfg(test)]
mod tests;
mod valid;
mod value;
#[cfg(feature = "serde")]
mod written;

pub use calendar::{Calendar, Zone, ZoneError};
pub use kind::Algorithm;
pub(crate) use kind::{AnyCode, Kind};
pub use valid::QuotaError;
pub use value::Quota;
