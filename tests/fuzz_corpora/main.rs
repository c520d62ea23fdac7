//! The bodies of the fuzz targets on their corpora, on random input and on random damage, without a
//! fuzzer.

#[path = "../../fuzz/bodies"]
mod bodies {
    pub(crate) mod operations;
    #[cfg(feature = "snapshot")]
    pub(crate) mod snapshot;
}
#[path = "../kit/counted_clock.rs"]
mod counted_clock;
#[path = "../properties/driver/mod.rs"]
mod driver;
mod operations;
#[path = "../properties/oracle/mod.rs"]
mod oracle;
#[cfg(feature = "snapshot")]
mod snapshot;
