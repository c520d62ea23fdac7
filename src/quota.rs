//! [`Quota`]: the limit of a key, as plain integers.

mod algorithm;
mod beside;
mod bounds;
mod display;
mod error;
#[cfg(feature = "serde")]
mod fields;
mod name;
mod named;
mod quantised;
#[cfg(test)]
mod tests;
mod value;
mod warm_up;
#[cfg(feature = "serde")]
mod written;

pub use algorithm::Algorithm;
pub use error::QuotaError;
pub(crate) use value::Kind;
pub use value::Quota;
