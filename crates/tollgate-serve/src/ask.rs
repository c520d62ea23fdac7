//! What is asked of a policy, and what it answers.

use bytes::Bytes;
use tollgate::MAX_DIMENSIONS;
use tollgate_http::middleware::ByDimension;

/// The cost of a request, and whether it charges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ask {
    /// At least 1.
    pub(crate) cost: u32,
    /// Only looks.
    pub(crate) is_peek: bool,
    /// The dimensions that are asked, if not all. Those that it lacks fields of are not.
    pub(crate) asks: Option<Asked>,
}

impl Default for Ask {
    /// One permit of each dimension.
    fn default() -> Self {
        Self { cost: 1, is_peek: false, asks: None }
    }
}

/// Dimensions by their places.
pub(crate) type Asked = [bool; MAX_DIMENSIONS];

/// What was decided, with the values of fields as bytes.
pub(crate) type Decided = ByDimension<Bytes>;
