//! What a caller sees of a real server, by the server's own clock.

mod cluster;
mod keys;
mod leases;
mod refunds;
mod together;
mod values;
