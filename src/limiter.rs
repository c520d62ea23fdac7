//! [`Limiter`]: one quota, many keys.

mod keyed;
mod lists;
mod observed;

pub use keyed::Limiter;
