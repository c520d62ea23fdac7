//! What is asked for with a decision.

use crate::reservation::Charges;

/// What is asked for with a decision.
#[derive(Debug)]
pub(super) enum Wants {
    Decision,
    Numbers,
    /// To wait for up to so many nanoseconds, and to be able to give back what was charged.
    Refundable {
        within: u64,
        charges: Charges,
    },
}
