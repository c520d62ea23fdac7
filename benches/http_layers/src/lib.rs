//! What a rate-limiting layer adds to a request: tollgate-tower beside its peers, in one process
//! and one run, without a socket.
//!
//! - `cargo run --release -p http_layers` times requests ([`rounds`]), counts their allocations and
//!   their instructions, and prints markdown;
//! - `cargo run --release -p http_layers -- --report` writes the tables into BENCHMARKS.md;
//! - `cargo run --release -p http_layers --bin allocations` counts allocations. It is a program of
//!   its own because counting takes time at each of them.
//!
//! A peer is added in [`contender`], a scenario in [`scenario`].

pub mod contender;
pub mod report;
pub mod rounds;
pub mod scenario;
pub mod valgrind;
