//! Imports of the models and tests of cells.

#![allow(unused_imports, reason = "each test needs some of it")]

pub(super) use super::cells::{AnyDriver, Cells, Seat, dispatch};
pub(super) use super::descriptor::{MAX_CELLS, Part};
pub(super) use super::driver::{Ask, Charge, Decide, Driver, Known, Refund};
#[cfg(feature = "snapshot")]
pub(super) use super::export::Export;
pub(super) use super::incarnation::Freed;
pub(super) use super::log::plan::LogPlan;
pub(super) use super::log::ring::Ring;
pub(super) use super::memory::{At as CellAt, Cell};
pub(super) use super::plan::Plan;
pub(super) use super::store::Store;
pub(super) use super::versions::{Scope, Version, Versions};
pub(super) use super::words::{Head, MAX_TIME, RingRef, Slot, State, time_of};
pub(super) use crate::clock::Clock;
pub(super) use crate::decision::{Decision, Denial, DenialReason, FastDecision, Status};
pub(super) use crate::fingerprint::Fingerprint;
pub(super) use crate::sync::{AtomicU64, Ordering};
