//! The bodies of the fuzz targets on their corpora, on random input and on random damage, without a
//! fuzzer.

mod operations;
#[cfg(feature = "snapshot")]
mod snapshot;
