//! The layer in front of a service in the same process, without a server.

mod addresses;
mod bodies;
mod busy;
mod denied;
mod exact;
mod fields;
mod grpc;
mod handlers;
mod in_flight;
mod keys;
#[cfg(feature = "tracing")]
mod log;
mod modes;
mod nested;
mod own_answers;
mod queues;
mod refunds;
mod several;
pub(crate) mod support;
#[cfg(feature = "wait")]
mod waits;
