//! [`Limiter`]: one quota, many keys.

mod keyed;
mod lists;

pub use keyed::Limiter;
