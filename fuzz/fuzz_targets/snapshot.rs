//! `cargo +nightly fuzz run snapshot`: bytes as snapshots.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_kit::fuzz::snapshot;

fuzz_target!(|bytes: &[u8]| {
    snapshot::read(bytes).unwrap_or_else(|difference| panic!("{difference}"));
});
