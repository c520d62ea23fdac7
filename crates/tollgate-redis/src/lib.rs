#![doc = include_str!("../README.md")]

mod breaker;
mod cache;
mod counts;
mod decision;
mod engine;
mod error;
mod failure;
mod flight;
#[cfg(feature = "policy")]
mod from_policy;
mod joint;
mod lease;
mod limiter;
mod link;
mod names;
mod plan;
mod receipt;
mod reply;
mod script;
mod status;
mod store;

pub use counts::StoreCounts;
pub use decision::{Admission, DecidedBy, Decision, Denial};
pub use error::{BuildError, Cause, StoreError, Unavailable};
pub use failure::OnFailure;
pub use joint::{RedisJointLimiter, RedisJointLimiterBuilder};
pub use limiter::{RedisLimiter, RedisLimiterBuilder};
pub use names::{KeyDigest, Secret};
pub use receipt::Receipt;
#[doc(hidden)]
pub use script::testing;
pub use status::{QuotaStatus, Status};
pub use store::{Store, StoreBuilder};
