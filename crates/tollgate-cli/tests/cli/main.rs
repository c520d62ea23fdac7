//! The program, run as its users do.

#[cfg(feature = "redis")]
mod on_a_store;
mod replay;
#[cfg(feature = "serve")]
mod serve_command;
