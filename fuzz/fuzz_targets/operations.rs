//! `cargo +nightly fuzz run operations`: scripts of operations, the limiter against the oracle.
#![no_main]

#[path = "../../tests/kit/counted_clock.rs"]
mod counted_clock;
#[path = "../../tests/properties/driver/mod.rs"]
mod driver;
#[path = "../bodies/operations.rs"]
mod operations;
#[path = "../../tests/properties/oracle/mod.rs"]
mod oracle;

use libfuzzer_sys::fuzz_target;
use operations::Script;

fuzz_target!(|script: Script| script.run().unwrap_or_else(|difference| panic!("{difference}\n{script:#?}")));
