//! What a limiter answers: [`Decision`], and [`Status`] when the numbers for response headers are wanted too.

mod answer;
mod denial;
mod status;
#[cfg(all(test, not(tollgate_loom)))]
mod tests;

pub(crate) use answer::AtOnce;
pub use answer::{Admission, Decision};
pub use denial::{Denial, DenialReason};
pub use status::Status;
