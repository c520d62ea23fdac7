//! Durations in a policy: whole seconds as a number, or a text.

use core::fmt;
use core::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use crate::duration::{DurationError, parse_duration};

/// A duration of the file, or why its value is none.
pub(super) struct FileDuration(pub(super) Result<Duration, DurationError>);

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
        Ok(FileDuration(Ok(Duration::from_secs(seconds))))
    }

    fn visit_i64<E: Error>(self, seconds: i64) -> Result<FileDuration, E> {
        Ok(FileDuration(u64::try_from(seconds).map(Duration::from_secs).map_err(|_| DurationError::Negative)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<FileDuration, E> {
        Ok(FileDuration(parse_duration(text).or_else(|error| whole_seconds(text).ok_or(error))))
    }
}

/// The duration of a number in quotation marks.
fn whole_seconds(text: &str) -> Option<Duration> {
    let digits = text.trim();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok().map(Duration::from_secs))?
}
