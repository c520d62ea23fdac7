//! The answers of a limiter: [`Decision`], and [`Status`] with the permits left of each quota.

mod answer;
mod denial;
mod left;
mod per_quota;
mod quota_status;
mod status;
#[cfg(all(test, not(tollgate_loom)))]
mod tests;
#[cfg(feature = "serde")]
mod written;

pub(crate) use answer::FastDecision;
pub use answer::{Admission, Decision};
pub use denial::{Denial, DenialReason};
pub(crate) use left::Left;
pub(crate) use per_quota::PerQuota;
pub use quota_status::QuotaStatus;
pub use status::Status;
