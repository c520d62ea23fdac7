//! The text of a duration in a file.

use core::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A text that should be a duration. A number is read as its digits, which lack a unit, so that
/// [`parse_duration`](super::parse_duration) names the unit that is missing.
#[derive(Clone)]
pub(crate) struct DurationText(pub(crate) String);

impl<'de> Deserialize<'de> for DurationText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A format that does not describe itself has the text, as `Quota` writes it.
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(TextOrNumber)
        } else {
            String::deserialize(deserializer).map(Self)
        }
    }
}

struct TextOrNumber;

impl Visitor<'_> for TextOrNumber {
    type Value = DurationText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text such as \"10s\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<DurationText, E> {
        Ok(DurationText(text.to_owned()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<DurationText, E> {
        Ok(DurationText(number.to_string()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<DurationText, E> {
        Ok(DurationText(number.to_string()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<DurationText, E> {
        Ok(DurationText(number.to_string()))
    }
}
