//! What a rate-limiting layer adds to a request: tollgate-tower beside its peers, in one process
//! and one run, without a socket.
//!
//! Requests are timed by [`rounds`], and their instructions counted by [`valgrind`]. The program
//! `allocations` counts their allocations.
//!
//! A peer is added in [`contender`], a scenario in [`scenario`].

pub mod contender;
pub mod report;
pub mod rounds;
pub mod scenario;
pub mod valgrind;
