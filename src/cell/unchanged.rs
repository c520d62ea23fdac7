//! The reasons to refuse a change of quotas.

/// Why a change of quotas was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unchanged {
    /// The quota has another algorithm.
    OtherAlgorithm,
    /// Its numbers do not fit in the head of an account.
    TooLarge,
    /// It is quantised and has another window or resolution.
    OtherSteps,
    /// One version counts refused requests and the other does not.
    OtherRefused,
    /// There are too many versions.
    TooOften,
    /// Keys may have no quotas of their own.
    NoneOfItsOwn,
}
