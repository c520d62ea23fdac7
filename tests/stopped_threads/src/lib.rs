//! Runs in which threads are stopped at arbitrary instructions while others go on. `tests/` says
//! what is checked.
#![cfg(target_os = "linux")]

pub mod chance;
pub mod run;
pub mod stopping;
