//! Decisions on a real server against those of a naive program, one after the other, at times that
//! the test sets.

mod in_flight;
mod log;
mod meters;
mod settled;
