//! The forms in which a request passes one key ([`AsKey`]), or keys of several dimensions
//! ([`Keys`]).

mod dimensions;
mod single;

pub use dimensions::{Absent, DimensionKey, Dimensions, Keys};
pub use single::AsKey;
pub(crate) use single::{ByRef, fingerprint_of};
