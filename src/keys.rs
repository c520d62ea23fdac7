//! [`AsKey`]: what a request may pass as its key.

mod dimensions;
mod single;

pub use dimensions::{DimensionKey, Keys};
pub use single::AsKey;
pub(crate) use single::fingerprint_of;
