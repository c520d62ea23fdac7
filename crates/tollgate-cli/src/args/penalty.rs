//! The options of a penalty.

use std::time::Duration;

use clap::Args;
use tollgate::{Penalty, parse_duration};

use crate::fields::parse_count;

/// A penalty: none of the options, or all of them.
#[derive(Debug, Args)]
pub(crate) struct PenaltyArgs {
    /// Block a key that is denied so many times within --penalty-within, for --penalty-for
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    #[arg(requires_all = ["penalty_within", "penalty_for"])]
    penalty_denials: Option<u32>,

    /// The window in which the denials have to be
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    #[arg(requires = "penalty_denials")]
    penalty_within: Option<Duration>,

    /// How long a key is blocked
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    #[arg(requires = "penalty_denials")]
    penalty_for: Option<Duration>,
}

impl PenaltyArgs {
    pub(crate) fn penalty(&self) -> Option<Penalty> {
        Some(Penalty::new(self.penalty_denials?, self.penalty_within?, self.penalty_for?))
    }
}
