#![doc = include_str!("../README.md")]

#[cfg(feature = "policy")]
mod acquire_error;
mod asked;
mod breaker;
mod cache;
mod call_error;
mod counts;
mod decision;
mod digest;
mod engine;
mod entering;
mod error;
mod faces;
mod failure;
mod flight;
#[cfg(feature = "policy")]
mod from_policy;
mod in_flight;
mod joint;
mod lease;
mod leasing;
mod limiter;
mod line;
mod link;
mod names;
mod plan;
#[cfg(feature = "policy")]
mod policy_limiter;
mod receipt;
mod reply;
mod script;
mod settling;
mod store;
#[cfg(feature = "policy")]
mod store_key;
mod task;
#[doc(hidden)]
pub mod testing;
mod waiters;

#[cfg(feature = "policy")]
pub use acquire_error::AcquireError;
pub use counts::StoreCounts;
pub use decision::{Decided, DecidedBy};
pub use digest::KeyDigest;
pub use error::{BuildError, Cause, StoreError, Unavailable};
pub use failure::OnFailure;
pub use in_flight::InFlight;
pub use joint::{RedisJointLimiter, RedisJointLimiterBuilder};
pub use limiter::{RedisLimiter, RedisLimiterBuilder};
pub use names::Secret;
#[cfg(feature = "policy")]
pub use policy_limiter::PolicyLimiter;
pub use receipt::Receipt;
pub use store::{Store, StoreBuilder};
#[cfg(feature = "policy")]
pub use store_key::{StoreKey, StoreKeys};
