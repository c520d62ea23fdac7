//! The options of a penalty.

use std::time::Duration;

use clap::Args;
use tollgate::{Penalty, parse_duration};

use crate::fields::parse_count;

/// A penalty: none of the options, or all of the first three. It grows by all of the others.
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

    /// Make each block so many times as long as the last, up to --penalty-longest, until a key has not
    /// been blocked for --penalty-quiet
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    #[arg(requires_all = ["penalty_denials", "penalty_longest", "penalty_quiet"])]
    penalty_factor: Option<u32>,

    /// The longest block of a penalty that grows
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    #[arg(requires = "penalty_factor")]
    penalty_longest: Option<Duration>,

    /// The time without a block after which the next one is the first again
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    #[arg(requires = "penalty_factor")]
    penalty_quiet: Option<Duration>,
}

impl PenaltyArgs {
    pub(crate) fn penalty(&self) -> Option<Penalty> {
        let penalty = Penalty::new(self.penalty_denials?, self.penalty_within?, self.penalty_for?);
        Some(match (self.penalty_factor, self.penalty_longest, self.penalty_quiet) {
            (Some(factor), Some(longest), Some(quiet)) => penalty.growing(factor, longest, quiet),
            _ => penalty,
        })
    }
}
