//! Durations in a policy: whole seconds as a number, or a text.

use core::fmt;
use core::ops::Range;
use core::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use toml::Spanned;

use super::error::PolicyProblem;
use crate::duration::{DurationError, parse_duration};

/// A duration as the file has it.
pub(super) enum FileDuration {
    Seconds(u64),
    Text(String),
}

impl<'de> Deserialize<'de> for FileDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Written)
    }
}

struct Written;

impl Visitor<'_> for Written {
    type Value = FileDuration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("whole seconds such as 10, or a text such as \"500ms\"")
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<FileDuration, E> {
        Ok(FileDuration::Seconds(seconds))
    }

    fn visit_i64<E: Error>(self, seconds: i64) -> Result<FileDuration, E> {
        // A negative number gives the same error as the same text.
        Ok(u64::try_from(seconds).map_or_else(|_| FileDuration::Text(seconds.to_string()), FileDuration::Seconds))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<FileDuration, E> {
        Ok(FileDuration::Text(text.to_owned()))
    }
}

/// Reads a value with its place in the file.
pub(super) trait Read {
    /// The duration, or the problem of this field with its place.
    fn read(&self, field: &'static str) -> Result<Duration, (Range<usize>, PolicyProblem)>;
}

impl Read for Spanned<FileDuration> {
    fn read(&self, field: &'static str) -> Result<Duration, (Range<usize>, PolicyProblem)> {
        let read = match self.get_ref() {
            FileDuration::Seconds(seconds) => Ok(Duration::from_secs(*seconds)),
            FileDuration::Text(text) => parse_duration(text).or_else(|error| whole_seconds(text).ok_or(error)),
        };
        read.map_err(|error: DurationError| (self.span(), PolicyProblem::Duration { field, error }))
    }
}

/// The duration of a number in quotation marks.
fn whole_seconds(text: &str) -> Option<Duration> {
    let digits = text.trim();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok().map(Duration::from_secs))?
}
