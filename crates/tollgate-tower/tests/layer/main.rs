//! The layer in front of a service in the same process, without a server.

mod denied;
mod exact;
mod fields;
mod keys;
mod support;
