//! tollgate beside its peers, in one process and one run: decisions are timed by [`rounds`] on the
//! scenarios of [`scenario`], and [floods](flood) of new keys are sent to everyone. The program
//! `memory` counts bytes.
//!
//! A peer is added in [`contender`], a scenario is one entry in [`scenario::list`].

pub mod contender;
pub mod flood;
pub mod keys;
pub mod measured;
pub mod plot;
pub mod report;
pub mod rounds;
pub mod scenario;
