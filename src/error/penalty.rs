//! Why a penalty cannot be used.

use core::time::Duration;

use crate::caps::MAX_DENIALS;
use crate::quota::Quota;
use crate::texts::texts;

/// Why a [`Penalty`](crate::Penalty) cannot be used.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Penalty, PenaltyError};
///
/// let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
/// assert_eq!(Penalty::new(0, minute, hour).validate(), Err(PenaltyError::ZeroDenials));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PenaltyError {
    /// The number of denials is zero: each key would be blocked from the start.
    ZeroDenials,
    /// The number of denials is more than [`Penalty::MAX_DENIALS`](crate::Penalty::MAX_DENIALS).
    TooManyDenials {
        /// The given number of denials.
        denials: u32,
    },
    /// The window of the denials is zero: no two denials would ever be in it.
    ZeroWithin,
    /// The window of the denials is longer than [`Quota::MAX_WINDOW`].
    WithinTooLong {
        /// The given window.
        within: Duration,
    },
    /// The duration of the block is zero.
    ZeroBlock,
    /// The block is longer than [`Quota::MAX_WINDOW`].
    BlockTooLong {
        /// The given duration.
        blocked_for: Duration,
    },
}

texts! { PenaltyError {
    ZeroDenials => "the number of a penalty's denials is zero: give at least one";
    TooManyDenials { denials } => "{denials} denials are too many for a penalty: at most {MAX_DENIALS}";
    ZeroWithin => "the window of a penalty's denials is zero: give at least one nanosecond";
    WithinTooLong { within } => "the window {within:?} of a penalty's denials is too long: at most {:?}",
        Quota::MAX_WINDOW;
    ZeroBlock => "the duration of a penalty's block is zero: give at least one nanosecond";
    BlockTooLong { blocked_for } => "the duration {blocked_for:?} of a penalty's block is too long: at most {:?}",
        Quota::MAX_WINDOW;
} }

impl core::error::Error for PenaltyError {}
