//! A cell decides for one key.

mod cells;
#[cfg(all(test, tollgate_loom))]
mod changing_loom_tests;
#[cfg(all(test, not(tollgate_loom)))]
mod changing_tests;
mod counter;
mod descriptor;
mod driver;
#[cfg(all(test, tollgate_loom))]
mod elapsed_loom_tests;
#[cfg(feature = "snapshot")]
mod export;
#[cfg(all(test, tollgate_loom, feature = "snapshot"))]
mod export_loom_tests;
mod incarnation;
mod joint;
#[cfg(test)]
mod kit;
mod log;
#[cfg(all(test, tollgate_loom))]
mod loom_kit;
mod memory;
mod plan;
mod quantised;
#[cfg(all(test, tollgate_loom))]
mod refund_loom_tests;
#[cfg(all(test, tollgate_loom))]
mod reserving_loom_tests;
#[cfg(all(test, not(tollgate_loom)))]
mod reuse_tests;
#[cfg(feature = "snapshot")]
mod snapshot;
mod store;
mod unchanged;
mod versions;
mod words;

pub(crate) use cells::{Cells, OpenSeat, Seat};
pub(crate) use descriptor::{MAX_CELLS, Part};
pub(crate) use driver::{Ask, Charge};
#[cfg(feature = "snapshot")]
pub(crate) use export::Export;
pub(crate) use incarnation::{Freed, NewCell};
#[cfg(all(test, not(tollgate_loom)))]
pub(crate) use joint::Stalled;
pub(crate) use unchanged::Unchanged;
pub(crate) use versions::{Scope, Version, Versions};
pub(crate) use words::{Head, MAX_TIME, time_of};
