//! The results that a caller needs beside the decision.

use crate::reservation::Charges;

/// The results that a caller needs beside the decision.
#[derive(Debug)]
pub(super) enum Wants {
    Decision,
    Numbers,
    /// The charges, for a refund. The request accepts a wait of `within` nanoseconds.
    Refundable {
        within: u64,
        charges: Charges,
    },
}
