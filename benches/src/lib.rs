//! What decisions of tollgate take, beside its peers and by themselves.
//!
//! The peers are dependencies of this package only, which is never published: the library itself
//! knows none of them.
//!
//! - `cargo run --release -p benches -- report` writes the tables into BENCHMARKS.md and README.md,
//!   and draws the plots;
//! - `cargo run --release -p benches -- PROGRAM` runs one of the [`programs`], which prints
//!   markdown;
//! - `cargo bench -p benches` counts the instructions of decisions, and compares them with the
//!   committed figures;
//! - `cargo bench -p benches --features decide --bench decide` times a decision and its parts.
//!
//! Each measurement has a feature of its own, so that it is built without the crates that only
//! others need.

pub mod documents;
#[cfg(feature = "http_layers")]
pub mod http_layers;
pub mod machine;
pub mod programs;
#[cfg(feature = "side_by_side")]
pub mod side_by_side;
pub mod statistics;
pub mod table;
pub mod turns;
pub mod valgrind;
