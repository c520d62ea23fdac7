//! Quotas in serde formats (feature `serde`), with the fields that a policy file of `tollgate-policy`
//! has.

use core::fmt;

use serde::de::{self, Error as _};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tollgate_duration::parse_duration;

use super::algorithm::Algorithm;
use super::value::Quota;

/// Declares the fields of all quotas, and their names.
macro_rules! written {
    ($($field:ident: $type:ty),+ $(,)?) => {
        #[derive(Default, Deserialize)]
        #[serde(rename = "Quota", deny_unknown_fields, default)]
        struct Written {
            $($field: Option<$type>,)+
        }

        const FIELDS: &[&str] = &[$(stringify!($field)),+];
    };
}

// In their order in formats without field names.
written! {
    name: String, algorithm: Algorithm,
    limit: u32, capacity: u32, refill: u32, leak: u32,
    per: DurationText, max_delay: DurationText, resolution: DurationText,
    start: u32, phase: DurationText, counting_refused: bool,
    rate: u32, warm_up: DurationText,
}

impl Written {
    fn quota(self) -> Result<Quota, String> {
        let algorithm = self.algorithm.unwrap_or(Algorithm::SlidingWindowLog);
        let numbers = [
            ("limit", self.limit),
            ("capacity", self.capacity),
            ("refill", self.refill),
            ("leak", self.leak),
            ("rate", self.rate),
        ];
        let durations = [
            ("per", self.per),
            ("max_delay", self.max_delay),
            ("resolution", self.resolution),
            ("warm_up", self.warm_up),
        ];
        let duration =
            |field, text: DurationText| parse_duration(&text.0).map_err(|error| format!("`{field}`: {error}"));
        // Of several fields that are missing, the error names `per`.
        duration("per", needed("per", &durations)?)?;
        let mut quota = Quota::of_fields(
            algorithm,
            |field| needed(field, &numbers),
            |field| duration(field, needed(field, &durations)?),
        )?;
        let numbers = numbers.map(|(field, number)| (field, number.is_some()));
        let mut given = numbers.into_iter().chain(durations.map(|(field, text)| (field, text.is_some())));
        let own = quota.fields();
        if let Some((field, _)) = given.find(|(field, is_given)| *is_given && own.iter().all(|own| own.0 != *field)) {
            return Err(format!("a {algorithm} has no field `{field}`"));
        }
        if let Some(name) = self.name {
            quota = quota.named(&name);
        }
        if let Some(start) = self.start {
            quota = quota.starting_with(start);
        }
        if self.counting_refused == Some(true) {
            quota = quota.counting_refused();
        }
        if let Some(phase) = self.phase {
            quota = quota.aligned(duration("phase", phase)?);
        }
        quota.validate().map_err(|error| error.to_string())?;
        Ok(quota)
    }
}

fn needed<T: Clone>(field: &str, fields: &[(&str, Option<T>)]) -> Result<T, String> {
    let given = fields.iter().find(|(name, _)| *name == field).and_then(|(_, value)| value.clone());
    given.ok_or_else(|| format!("`{field}` is missing"))
}

/// Writes the fields of a policy file, with durations as texts.
impl Serialize for Quota {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A human-readable format leaves out fields that are not set. A format without field names
        // needs all of them.
        let (all, set) = (!serializer.is_human_readable(), self.fields());
        let mut fields = serializer.serialize_struct("Quota", FIELDS.len())?;
        for &field in FIELDS {
            match set.iter().find(|(name, _)| *name == field) {
                None if !all => fields.skip_field(field)?,
                found => fields.serialize_field(field, &found.map(|(_, value)| value))?,
            }
        }
        fields.end()
    }
}

/// Reads the fields of a policy file. A quota that is not [valid](Quota::validate) is an error.
impl<'de> Deserialize<'de> for Quota {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Written::deserialize(deserializer)?.quota().map_err(D::Error::custom)
    }
}

/// A text that should be a duration. A number is read as its digits, which lack a unit, so that
/// [`parse_duration`] names the unit that is missing.
#[derive(Clone)]
struct DurationText(String);

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

impl de::Visitor<'_> for TextOrNumber {
    type Value = DurationText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text such as \"10s\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<DurationText, E> {
        Ok(DurationText(text.to_owned()))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<DurationText, E> {
        Ok(DurationText(number.to_string()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<DurationText, E> {
        Ok(DurationText(number.to_string()))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<DurationText, E> {
        Ok(DurationText(number.to_string()))
    }
}
