//! `cargo +nightly fuzz run policy`: texts as policy files.
#![no_main]

#[path = "../bodies/policy.rs"]
mod policy;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    policy::read(bytes).unwrap_or_else(|difference| panic!("{difference}"));
});
