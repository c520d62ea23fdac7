//! `cargo +nightly fuzz run operations`: scripts of operations, the limiter against the oracle.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_kit::fuzz::operations::Script;

fuzz_target!(|script: Script| script.run().unwrap_or_else(|difference| panic!("{difference}\n{script:#?}")));
