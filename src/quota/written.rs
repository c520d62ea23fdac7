//! Quotas in serde formats (feature `serde`), with the fields of the schema.

use core::fmt;

use serde::de::{self, Error as _};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tollgate_duration::{format_duration, parse_duration};

use super::kind::Algorithm;
use super::schema::{Field, FieldValue, fields};
use super::value::Quota;

// The types of fields as they are written.
type Number = u32;
type Duration = DurationText;
type Flag = bool;

/// Declares what is written: the name, the algorithm and all fields.
macro_rules! written {
    ($($Field:ident $name:ident $Kind:ident $place:literal $meaning:literal;)+) => {
        #[derive(Default, Deserialize)]
        #[serde(rename = "Quota", deny_unknown_fields, default)]
        struct Written {
            name: Option<String>,
            algorithm: Option<Algorithm>,
            $($name: Option<$Kind>,)+
        }

        impl Written {
            fn of(quota: &Quota) -> Self {
                Self {
                    name: quota.name().map(str::to_owned),
                    algorithm: Some(quota.algorithm()),
                    $($name: quota.field(Field::$Field).and_then(Value::written),)+
                }
            }

            fn fields(&self) -> Result<Vec<(Field, FieldValue)>, String> {
                let mut fields = Vec::new();
                $(if let Some(value) = &self.$name {
                    fields.push((Field::$Field, value.read(stringify!($name))?));
                })+
                Ok(fields)
            }
        }

        impl Serialize for Written {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                // A human-readable format leaves out fields that are not set. A format without
                // field names needs all of them.
                let all = !serializer.is_human_readable();
                let mut fields = serializer.serialize_struct("Quota", 2 + Field::ALL.len())?;
                written!(@write fields all self name algorithm $($name)+);
                fields.end()
            }
        }
    };
    (@write $fields:ident $all:ident $self:ident $($name:ident)+) => {
        $(if $all || $self.$name.is_some() {
            $fields.serialize_field(stringify!($name), &$self.$name)?;
        } else {
            $fields.skip_field(stringify!($name))?;
        })+
    };
}
fields!(written);

impl Written {
    fn quota(self) -> Result<Quota, String> {
        let algorithm = self.algorithm.unwrap_or(Algorithm::SlidingWindowLog);
        let quota = Quota::from_fields(algorithm, &self.fields()?).map_err(|error| error.to_string())?;
        let Some(name) = self.name else { return Ok(quota) };
        let quota = quota.named(&name);
        quota.validate().map(|()| quota).map_err(|error| error.to_string())
    }
}

/// How the value of a field is written.
trait Value: Sized {
    fn written(value: FieldValue) -> Option<Self>;

    fn read(&self, field: &str) -> Result<FieldValue, String>;
}

impl Value for Number {
    fn written(value: FieldValue) -> Option<Self> {
        if let FieldValue::Number(number) = value { Some(number) } else { None }
    }

    fn read(&self, _: &str) -> Result<FieldValue, String> {
        Ok(FieldValue::Number(*self))
    }
}

impl Value for Flag {
    fn written(value: FieldValue) -> Option<Self> {
        if let FieldValue::Flag(flag) = value { Some(flag) } else { None }
    }

    fn read(&self, _: &str) -> Result<FieldValue, String> {
        Ok(FieldValue::Flag(*self))
    }
}

impl Value for Duration {
    fn written(value: FieldValue) -> Option<Self> {
        if let FieldValue::Duration(duration) = value { Some(Self(format_duration(duration))) } else { None }
    }

    fn read(&self, field: &str) -> Result<FieldValue, String> {
        parse_duration(&self.0).map(FieldValue::Duration).map_err(|error| format!("`{field}`: {error}"))
    }
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
