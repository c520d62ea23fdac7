//! Problems of a policy file, with their places.

use core::time::Duration;

use serde::Deserialize;
use tollgate::parse_duration;
use toml::Spanned;

use crate::error::PolicyProblem;

/// The place of a problem in bytes, and the problem.
pub(crate) type Placed = (usize, PolicyProblem);

pub(crate) fn at<T>(value: &Spanned<T>, problem: impl Into<PolicyProblem>) -> Placed {
    (value.span().start, problem.into())
}

/// A text that should be a duration. A number lacks its unit, which the error then names.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a duration is a text such as \"10s\"")]
pub(crate) enum DurationText {
    Text(String),
    Whole(i64),
    Fraction(f64),
}

pub(crate) fn duration(field: &'static str, value: &Spanned<DurationText>) -> Result<Duration, Placed> {
    let text = match value.get_ref() {
        DurationText::Text(text) => text,
        DurationText::Whole(number) => &number.to_string(),
        DurationText::Fraction(number) => &number.to_string(),
    };
    parse_duration(text).map_err(|error| at(value, PolicyProblem::Duration { field, error }))
}
