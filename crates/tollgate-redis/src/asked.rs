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
    /// The number by which it leaves, if it is in flight once it is admitted.
    pub(crate) enters: Option<u128>,
}

impl Request {
    /// To be charged, and to be told the decision alone.
    pub(crate) const fn acquire(cost: u32) -> Self {
        Self { cost, charges: true, tells: false, enters: None }
    }

    /// To be told what it would be, and what is left.
    pub(crate) const fn peek(cost: u32) -> Self {
        Self { cost, charges: false, tells: true, enters: None }
    }

    /// The same, to be told what is left, too.
    pub(crate) const fn telling(self) -> Self {
        Self { tells: true, ..self }
    }
}
