//! The program, run as its users do.

#[cfg(feature = "redis")]
mod on_a_store;
#[cfg(feature = "redis")]
#[path = "../../../tollgate-redis/tests/redis/support/mod.rs"]
mod redis_server;
mod replay;
#[cfg(feature = "serve")]
mod serve_command;
