//! The answers of a limiter: [`Decision`], and [`Status`] with the permits left of each quota.

mod answer;
mod denial;
mod named;
mod status;
#[cfg(all(test, not(tollgate_loom)))]
mod tests;
#[cfg(feature = "serde")]
mod written;

pub(crate) use answer::FastDecision;
pub use answer::{Admission, Decision};
pub(crate) use denial::Shadowed;
pub use denial::{Denial, DenialReason};
pub use named::NamedQuotas;
#[cfg(feature = "macros")]
pub(crate) use named::number_of;
pub(crate) use status::{Left, PerQuota};
pub use status::{QuotaStatus, Status};
