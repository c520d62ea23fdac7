//! The service of the README, asked by curl and by clients in the same process.

mod attackers;
mod curl;
mod operations;
mod policy;
mod program;
mod readme;
