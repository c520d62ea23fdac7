//! [`Limiter`]: one quota, many keys.

mod keyed;
mod lists;
#[cfg(all(test, tollgate_loom))]
mod loom_tests;
mod observed;

pub use keyed::Limiter;
