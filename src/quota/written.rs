//! Quotas in serde formats (feature `serde`), with the fields that a policy file of `tollgate-policy`
//! has.

use core::fmt;
use core::time::Duration;

use serde::de::{self, Error as _};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tollgate_duration::{format_duration, parse_duration};

use super::value::{Algorithm, Kind, Name, Quota};

/// Declares the fields of all quotas, with their names.
macro_rules! written {
    ($($field:ident: $type:ty),+ $(,)?) => {
        #[derive(Default, Deserialize)]
        #[serde(rename = "Quota", deny_unknown_fields, default)]
        struct Written {
            $($field: Option<$type>,)+
        }

        impl Serialize for Written {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                // A human-readable format leaves out fields that are not set. A format without
                // field names needs all of them.
                let all = !serializer.is_human_readable();
                let mut fields = serializer.serialize_struct("Quota", [$(stringify!($field)),+].len())?;
                $(if all || self.$field.is_some() {
                    fields.serialize_field(stringify!($field), &self.$field)?;
                } else {
                    fields.skip_field(stringify!($field))?;
                })+
                fields.end()
            }
        }
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
    fn of(quota: &Quota) -> Self {
        let text = |duration| Some(DurationText(format_duration(duration)));
        let all = Self {
            name: quota.name().map(str::to_owned),
            algorithm: Some(quota.algorithm()),
            start: quota.start(),
            phase: quota.phase().and_then(text),
            counting_refused: quota.is_counting_refused().then_some(true),
            ..Self::default()
        };
        let limit = Some(quota.limit());
        match quota.kind() {
            Kind::Log | Kind::FixedWindow => Self { limit, per: text(quota.window()), ..all },
            Kind::SlidingCounter { window } => Self { limit, per: text(window), ..all },
            Kind::QuantisedLog { window, resolution } => {
                Self { limit, per: text(window), resolution: text(resolution), ..all }
            }
            Kind::TokenBucket { refill, per } => Self { capacity: limit, refill: Some(refill), per: text(per), ..all },
            Kind::LeakyBucket { leak, per } => Self { capacity: limit, leak: Some(leak), per: text(per), ..all },
            Kind::LeakyQueue { leak, per, max_delay } => {
                Self { leak: Some(leak), per: text(per), max_delay: text(max_delay), ..all }
            }
            Kind::WarmUp { rate, per, warm_up } => {
                Self { limit, rate: Some(rate), per: text(per), warm_up: text(warm_up), ..all }
            }
        }
    }

    fn quota(self) -> Result<Quota, String> {
        let algorithm = self.algorithm.unwrap_or(Algorithm::SlidingWindowLog);
        // The fields of the algorithm are taken out of these.
        let mut numbers = [
            ("limit", self.limit),
            ("capacity", self.capacity),
            ("refill", self.refill),
            ("leak", self.leak),
            ("rate", self.rate),
        ];
        let mut durations = [
            ("per", self.per),
            ("max_delay", self.max_delay),
            ("resolution", self.resolution),
            ("warm_up", self.warm_up),
        ];
        let mut number = |field| take(field, &mut numbers);
        let mut duration = |field| take(field, &mut durations)?.read(field);
        // Of several fields that are missing, the error names `per`.
        let per = duration("per")?;
        let quota = match algorithm {
            Algorithm::SlidingWindowLog => Quota::new(number("limit")?, per),
            Algorithm::TokenBucket => Quota::token_bucket(number("capacity")?, number("refill")?, per),
            Algorithm::LeakyBucket => Quota::leaky_bucket(number("capacity")?, number("leak")?, per),
            Algorithm::LeakyQueue => Quota::leaky_queue(number("leak")?, per, duration("max_delay")?),
            Algorithm::FixedWindow => Quota::fixed_window(number("limit")?, per),
            Algorithm::SlidingCounter => Quota::sliding_counter(number("limit")?, per),
            Algorithm::QuantisedLog => {
                let resolution = duration("resolution")?;
                Quota::quantised_log(number("limit")?, per, resolution)
            }
            Algorithm::WarmUp => {
                let warm_up = duration("warm_up")?;
                Quota::warm_up(number("limit")?, number("rate")?, per, warm_up)
            }
        };
        let numbers = numbers.map(|(field, number)| number.and(Some(field)));
        let mut left = numbers.into_iter().chain(durations.map(|(field, text)| text.and(Some(field)))).flatten();
        if let Some(field) = left.next() {
            return Err(format!("a {algorithm} has no field `{field}`"));
        }
        let name = self.name.as_deref().map(Name::of);
        let phase = self.phase.map(|text| text.read("phase")).transpose()?;
        let counts_refused = self.counting_refused == Some(true);
        let quota = Quota { name, start: self.start, phase, counts_refused, ..quota };
        quota.validate().map_err(|error| error.to_string())?;
        Ok(quota)
    }
}

fn take<T>(field: &str, fields: &mut [(&str, Option<T>)]) -> Result<T, String> {
    let given = fields.iter_mut().find(|(name, _)| *name == field).and_then(|(_, value)| value.take());
    given.ok_or_else(|| format!("`{field}` is missing"))
}

/// Writes the fields of a policy file, with durations as texts.
impl Serialize for Quota {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written::of(self).serialize(serializer)
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
#[derive(Serialize)]
#[serde(transparent)]
struct DurationText(String);

impl DurationText {
    fn read(&self, field: &str) -> Result<Duration, String> {
        parse_duration(&self.0).map_err(|error| format!("`{field}`: {error}"))
    }
}

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
