//! [`Limiter`]: one quota, many keys.

mod keyed;
mod lend;
#[cfg(all(test, tollgate_loom))]
mod loom_tests;
mod modes;
mod wants;

pub use keyed::Limiter;
