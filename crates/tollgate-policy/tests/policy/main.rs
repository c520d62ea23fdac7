//! Policy files: read, applied to limiters in use, and watched.

mod applied;
mod clients;
mod corpus;
mod enforced;
mod examples;
mod fuzz_corpus;
mod in_flight;
mod phases;
mod policies;
mod reload;
mod requests;
