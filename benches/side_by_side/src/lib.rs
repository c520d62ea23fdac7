//! tollgate beside its peers, in one process and one run.
//!
//! The peers are dependencies of this package only, which is never published: the library itself knows none of them.
//!
//! - `cargo run --release -p side_by_side` times decisions ([`rounds`]) on the scenarios of [`scenario`];
//! - `cargo run --release -p side_by_side --bin memory` counts bytes. It is a program of its own because counting costs
//!   time at every allocation.
//!
//! A peer is added in [`contender`], a scenario is one entry in the list of [`scenario`].

pub mod contender;
pub mod keys;
pub mod report;
pub mod rounds;
pub mod scenario;
