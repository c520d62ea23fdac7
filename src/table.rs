//! The table finds the cell of a key, makes one for a new key, and takes back the cells of idle ones.
//!
//! # Generations
//! The index that maps keys to cells belongs to a generation. Within one, words are only ever added: a cell is written first
//! and then published by one compare-and-swap on the *first empty slot* of its key's probe sequence. Two threads that meet a new
//! key at once meet at the same slot; the one that loses looks at the slot again and finds the other's cell. So a key has one cell.
//!
//! When 13 of 16 slots of the index are taken the table *turns*: the next generation starts with an empty index, of the same size or
//! larger, and the old one is swept (`turn.rs`). Cells stay where they are; the sweep frees those whose stamps have all expired, which
//! carry no information any more, and puts the others into the new index. A key that is asked for before the sweep gets
//! to it is carried over at once. Each new key pays for a few slots of the sweep, so it is over long before the next turn.
//!
//! # Why a key never gets two cells
//! A new key is put into the new index only after the end of its probe sequence in the old one has been **sealed**, so it can't
//! be put there any more, and after it was not found there. Whatever a thread that slept through all this still holds is of no
//! use to it: an empty slot it wanted is sealed or taken, a word it read names the *life* of the cell, and a cell's life ends by a
//! compare-and-swap on its head, which makes every claim in flight fail.
//!
//! Lives are numbered modulo 256, and a thread may sleep through 256 of them. So after it has read an entry and its cell's head it looks
//! at the generation again (`Table::lasts`), and between two reads of a head it counts the laps (`Head::goes_on_at`).
//!
//! The index is only a route: it may lead to a cell that has changed hands, never to a wrong decision, because the cell itself knows
//! its key and its head has the last word.
//!
//! # Clocks
//! What a freed cell knew is lost, also how late its stamps were. So before a cell is freed the end of its newest stamp is
//! noted (`horizon`), and a new key's first stamp is no earlier: with a clock that lags behind the one that saw the stamp expire, the
//! key's new window can't begin before the old one has ended. The stamp is chosen after the new cell has become known, because a
//! thread may stall just before, while the key comes, expires and goes in another cell.
//!
//! # Orderings
//! `route`: the end of a turn is released after everything was carried and acquired by whoever no longer looks at the old
//! index. Slots of the index: a publication releases the cell, a look-up acquires it. `horizon`: raised before a cell is freed, read
//! after the key's new cell has been put past the old one's entry. Exercised by the loom tests in `table/loom_tests.rs`.

mod at_once;
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
#[cfg(feature = "serde")]
mod keep;
#[cfg(test)]
mod kit;
mod lend;
mod look;
#[cfg(all(test, tollgate_loom))]
mod loom_tests;
#[cfg(all(test, not(tollgate_loom)))]
mod room_tests;
mod route;
#[cfg(all(test, not(tollgate_loom)))]
mod stalled_tests;
mod touch;
mod turn;

pub(crate) use find::{Placed, Table};
pub(crate) use joint::Together;
#[cfg(feature = "serde")]
pub(crate) use keep::PutBackError;
pub(crate) use lend::Lent;
pub(crate) use touch::TOGETHER;
