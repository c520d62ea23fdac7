//! What the tests of several crates share. The naive models ([`oracle`], [`reservations`],
//! [`joint`]) are written from the documentation; they take plain numbers and share no code with
//! the library, so no mistake of it can be repeated here.

pub mod checker;
pub mod clients;
pub mod clocks;
#[cfg(feature = "policy")]
pub mod corpus;
pub mod driver;
pub mod facade;
#[cfg(any(feature = "fuzz", feature = "policy"))]
pub mod fuzz;
pub mod in_flight;
pub mod joint;
pub mod key;
#[cfg(feature = "limited")]
pub mod layered;
#[cfg(feature = "limited")]
pub mod limited;
pub mod months;
pub mod oracle;
pub mod phases;
pub mod programs;
mod quotas;
#[cfg(feature = "redis")]
pub mod redis;
pub mod reservations;
#[cfg(feature = "vectors")]
pub mod vectors;
