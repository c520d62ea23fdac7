//! `cargo +nightly fuzz run snapshot`: bytes as snapshots.
#![no_main]

#[path = "../bodies/snapshot.rs"]
mod snapshot;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    snapshot::read(bytes).unwrap_or_else(|difference| panic!("{difference}"));
});
