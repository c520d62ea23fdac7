//! The errors: small enums that say what was wrong and what is allowed.

mod build;
mod cost;
mod joint;
mod penalty;

pub use build::BuildError;
pub use cost::CostExceedsLimit;
pub use joint::JointError;
pub use penalty::PenaltyError;
