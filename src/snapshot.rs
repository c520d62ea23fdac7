//! [`Snapshot`]: the state of a limiter, to bytes and back, across a restart.

mod contents;
mod file;
mod format;
mod quotas;

pub use contents::{RestoreError, Snapshot};
pub use format::SnapshotError;
