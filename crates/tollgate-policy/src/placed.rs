//! Problems of a policy file, with their places.

use core::time::Duration;

use toml::Spanned;

use super::error::PolicyProblem;
use crate::duration::{DurationText, parse_duration};

/// The place of a problem in bytes, and the problem.
pub(super) type Placed = (usize, PolicyProblem);

pub(super) fn at<T>(value: &Spanned<T>, problem: impl Into<PolicyProblem>) -> Placed {
    (value.span().start, problem.into())
}

pub(super) fn duration(field: &'static str, value: &Spanned<DurationText>) -> Result<Duration, Placed> {
    parse_duration(&value.get_ref().0).map_err(|error| at(value, PolicyProblem::Duration { field, error }))
}
