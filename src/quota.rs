//! [`Quota`]: the limit of a key, as plain integers.

mod algorithms;
mod options;
#[cfg(test)]
mod tests;
mod valid;
mod value;
#[cfg(feature = "serde")]
mod written;

pub use valid::QuotaError;
pub(crate) use value::Kind;
pub use value::{Algorithm, Quota};
