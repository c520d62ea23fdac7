//! Every account against what each algorithm must answer, worked out the naive way.

mod against_oracle;
mod any;
mod changes;
mod examples;
mod lives;
#[path = "../../../tests/properties/reservation_models/mod.rs"]
#[expect(dead_code, reason = "of the property tests, which use all of it")]
mod models;
#[path = "../../../tests/properties/oracle/meter.rs"]
#[allow(clippy::duplicate_mod, reason = "the tests of the rules include it, too")]
mod oracle;
mod traffic;
mod warm_up;
