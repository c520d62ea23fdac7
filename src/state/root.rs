//! A shared pointer that is swapped: `tollgate-root`, and in models a list of its values.

#[cfg(tollgate_loom)]
pub(super) use loom::{Guard, Root};
#[cfg(not(tollgate_loom))]
pub(super) use tollgate_root::{Guard, Root};

#[cfg(tollgate_loom)]
mod loom;

/// The bytes that an `Arc` adds to its value: two counts.
pub(super) const ARC: usize = 2 * size_of::<usize>();
