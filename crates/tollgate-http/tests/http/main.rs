//! Client addresses, header fields, bodies and gates, against independent parsers.

mod addresses;
mod any_address;
#[cfg(feature = "axum")]
mod axum_handlers;
mod headers;
mod many_quotas;
mod no_allocation;
mod pitfalls;
mod problems;
mod trusted;
mod usages;
