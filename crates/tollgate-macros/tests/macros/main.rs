//! The attribute above functions, methods and futures. `one_line.rs` is a program of its own, since its
//! lints are of a whole crate.

mod calls;
mod futures;
mod limiters;
mod methods;
mod store;
mod waits;
