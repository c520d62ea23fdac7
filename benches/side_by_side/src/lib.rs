//! tollgate beside its peers, in one process and one run.
//!
//! The peers are dependencies of this package only, which is never published: the library itself
//! knows none of them.
//!
//! - `cargo run --release -p side_by_side` times decisions ([`rounds`]) on the scenarios of
//!   [`scenario`], and [floods](flood) everyone with new keys;
//! - `cargo run --release -p side_by_side -- --report` does that and the next, writes the tables
//!   into BENCHMARKS.md and README.md, and draws the [plots](plot);
//! - `cargo run --release -p side_by_side --bin memory` counts bytes. It is a program of its own
//!   because counting costs time at every allocation.
//!
//! A peer is added in [`contender`], a scenario is one entry in [`scenario::list`].

pub mod contender;
pub mod documents;
pub mod flood;
pub mod keys;
pub mod measured;
pub mod plot;
pub mod report;
pub mod rounds;
pub mod scenario;
