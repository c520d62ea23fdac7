//! Errors: small enums that name the problem and the bounds.

mod build;
mod cost;
mod joint;
mod penalty;

pub use build::BuildError;
pub use cost::CostExceedsLimit;
pub use joint::JointError;
pub use penalty::PenaltyError;
