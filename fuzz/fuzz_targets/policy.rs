//! `cargo +nightly fuzz run policy`: texts as policy files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_kit::fuzz::policy;

fuzz_target!(|bytes: &[u8]| {
    policy::read(bytes).unwrap_or_else(|difference| panic!("{difference}"));
});
