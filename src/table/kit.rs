//! Imports of the models and tests of tables.

#![allow(unused_imports, reason = "each test needs some of it")]

pub(super) use super::find::{FindOrInsert, Located, Table, TableCounts};
pub(super) use super::heuristics::{SMALLEST, full_at, largest_for, size_for};
pub(super) use super::index::{self, Found, Put, Route, SIZES};
pub(super) use super::refundable::Refundable;
pub(super) use super::turn::Counted;
pub(super) use crate::cell::{Ask, Cells, Scope, Seat, Version, Versions, time_of};
pub(super) use crate::clock::Clock;
pub(super) use crate::decision::Status;
pub(super) use crate::fingerprint::Fingerprint;
pub(super) use crate::quota::Quota;
pub(super) use crate::sync::{AtomicU64, Ordering, plain};
