//! The forms in which a request passes its key ([`AsKey`]), or its keys in several dimensions
//! ([`Keys`]).

mod dimensions;
mod single;

pub use dimensions::{Absent, DimensionKey, Dimensions, Keys};
pub use single::AsKey;
pub(crate) use single::fingerprint_of;
