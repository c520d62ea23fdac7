//! What a caller sees of a real server, by the server's own clock.

mod calendar;
mod cluster;
mod in_flight;
mod keys;
mod leases;
mod refunds;
mod settled;
mod sharing;
mod together;
mod values;
