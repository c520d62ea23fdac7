//! The table finds the cell of a key, makes one for a new key, and frees the cells of idle keys.
//!
//! # Generations
//!
//! The index that maps keys to cells belongs to a generation, and is insert-only within it. A cell
//! is written first, then published by one compare-and-swap of the *first empty slot* of its key's
//! probe sequence. Two threads that insert one key meet at the same slot; the loser reads it again
//! and finds the winner's cell (INV-ONE-CELL).
//!
//! When 13 of 16 slots are taken the table *turns*: the next generation starts with an empty index,
//! of the same size or larger, and the old one is swept (`turn.rs`). Cells do not move. The sweep
//! frees cells without live stamps and migrates the entries of the others (INV-MIGRATE). A key that
//! is asked for before the sweep reaches it is migrated at once. Each new key pays for one chunk of
//! the sweep, so the sweep ends long before the next turn.
//!
//! # Why a key never has two cells
//!
//! A new key is inserted into the new index only after the end of its probe sequence in the old one
//! was **sealed**, and it was not found there (INV-SEAL). A thread that stalled meanwhile can do no
//! harm: the empty slot that it wants is sealed or taken, and the entry that it read names an
//! incarnation, which ends by a compare-and-swap of the cell's head.
//!
//! Incarnations are numbered modulo 256. So a thread checks the generation after it has read an
//! entry and a head (`Table::lasts`), and counts laps between two heads (`Head::goes_on_at`,
//! INV-INCARNATION).
//!
//! The index may lead to a cell that has changed owner, but not to a wrong decision: the cell knows
//! its key, and its head decides (INV-ROUTE).
//!
//! # Clocks
//!
//! The stamps of a freed cell are lost. So the timestamp floor is raised to their end first, and a
//! new key's first stamp is no earlier (INV-FLOOR). That stamp is chosen after the new cell is
//! reachable (INV-FIRST).
//!
//! # Orderings
//!
//! - `route`: the end of a turn releases everything that migrated; a thread that no longer reads
//!   the old index acquires it.
//! - Slots of the index: an insertion releases the cell, a lookup acquires it.
//! - The timestamp floor: raised before a cell is freed, read after the key's new cell was inserted
//!   behind the old entry.
//!
//! The models are in `table/loom_tests.rs`.

#[cfg(feature = "snapshot")]
mod export;
mod fast_path;
mod find;
mod heuristics;
mod index;
mod joint;
#[cfg(all(test, tollgate_loom))]
mod joint_loom_tests;
#[cfg(all(test, not(tollgate_loom)))]
mod joint_stalled_tests;
mod joint_status;
#[cfg(all(test, not(tollgate_loom)))]
mod joint_status_tests;
#[cfg(test)]
mod kit;
#[cfg(all(test, tollgate_loom))]
mod loom_tests;
mod refundable;
#[cfg(all(test, not(tollgate_loom)))]
mod room_tests;
#[cfg(all(test, not(tollgate_loom)))]
mod stalled_tests;
mod turn;

#[cfg(feature = "snapshot")]
pub(crate) use export::ImportError;
pub(crate) use fast_path::TOGETHER;
pub(crate) use find::Table;
pub(crate) use joint::Together;
pub(crate) use refundable::Refundable;
