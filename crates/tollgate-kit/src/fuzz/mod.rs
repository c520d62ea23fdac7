//! The bodies of the fuzz targets. Nothing here knows of libFuzzer: tests play the corpora, too.

#[cfg(feature = "fuzz")]
pub mod operations;
#[cfg(feature = "policy")]
pub mod policy;
#[cfg(feature = "fuzz")]
pub mod snapshot;
