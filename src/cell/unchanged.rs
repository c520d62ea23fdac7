//! Why quotas were not changed.

/// Why a quota was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unchanged {
    /// It is of another algorithm.
    OtherAlgorithm,
    /// Its numbers do not fit where the accounts are kept.
    TooLarge,
    /// Its window or its resolution is another, and it is quantised.
    OtherSteps,
    /// It counts refused requests, and the ones before do not; or the other way round.
    OtherRefused,
    /// It has changed too often.
    TooOften,
    /// No key may have quotas of its own.
    NoneOfItsOwn,
}
