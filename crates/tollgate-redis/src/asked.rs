//! What a request asks for.

use crate::digest::KeyDigest;

/// A key in a dimension.
pub(crate) type Asked = (usize, KeyDigest);

/// What a request wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) cost: u32,
    pub(crate) charges: bool,
    pub(crate) tells: bool,
}
