//! Quotas in serde formats (feature `serde`), with the fields of the schema.

use core::fmt;

use serde::de::{self, Error as _};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tollgate_duration::{format_duration, parse_duration};

use super::calendar::{Calendar, Zone as TimeZone};
use super::kind::Algorithm;
use super::schema::{Field, FieldValue, fields};
use super::value::Quota;

// The types of fields as they are written.
type Number = u32;
type Duration = DurationText;
type Flag = bool;
type Zone = String;

/// Declares what is read: the name, the algorithm and all fields.
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
            fn fields(self) -> Result<Vec<(Field, FieldValue)>, String> {
                let all = [$(self.$name.map(|value| value.read(Field::$Field)),)+];
                all.into_iter().flatten().collect()
            }
        }
    };
}
fields!(written);

impl Written {
    fn quota(mut self) -> Result<Quota, String> {
        let (name, algorithm) = (self.name.take(), self.algorithm.unwrap_or(Algorithm::SlidingWindowLog));
        let mut quota = Quota::from_fields(algorithm, &self.fields()?).map_err(|error| error.to_string())?;
        if let Some(name) = name {
            quota = quota.named(&name);
        }
        quota.validate().map(|()| quota).map_err(|error| error.to_string())
    }
}

/// A value as it is written.
trait Read {
    fn read(self, field: Field) -> Result<(Field, FieldValue), String>;
}

impl Read for Number {
    fn read(self, field: Field) -> Result<(Field, FieldValue), String> {
        Ok((field, FieldValue::Number(self)))
    }
}

impl Read for Flag {
    fn read(self, field: Field) -> Result<(Field, FieldValue), String> {
        Ok((field, FieldValue::Flag(self)))
    }
}

impl Read for Duration {
    fn read(self, field: Field) -> Result<(Field, FieldValue), String> {
        if let (Field::Per, Some(calendar)) = (field, Calendar::from_name(&self.0)) {
            return Ok((field, FieldValue::Calendar(calendar)));
        }
        let duration = parse_duration(&self.0).map_err(|error| format!("`{}`: {error}", field.name()))?;
        Ok((field, FieldValue::Duration(duration)))
    }
}

impl Read for Zone {
    fn read(self, field: Field) -> Result<(Field, FieldValue), String> {
        let zone = TimeZone::named(&self).map_err(|error| format!("`{}`: {error}", field.name()))?;
        Ok((field, FieldValue::Zone(zone)))
    }
}

/// Writes the fields of the schema, with durations as texts.
impl Serialize for Quota {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A human-readable format leaves out fields that are not set. A format without field names
        // needs all of them.
        let all = !serializer.is_human_readable();
        let mut fields = serializer.serialize_struct("Quota", 2 + Field::ALL.len())?;
        if all || self.name().is_some() {
            fields.serialize_field("name", &self.name())?;
        } else {
            fields.skip_field("name")?;
        }
        fields.serialize_field("algorithm", &Some(self.algorithm()))?;
        for field in Field::ALL {
            let value = self.field(*field).map(Text);
            if all || value.is_some() {
                fields.serialize_field(field.name(), &value)?;
            } else {
                fields.skip_field(field.name())?;
            }
        }
        fields.end()
    }
}

struct Text(FieldValue);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            FieldValue::Number(number) => serializer.serialize_u32(number),
            FieldValue::Duration(duration) => serializer.serialize_str(&format_duration(duration)),
            FieldValue::Flag(flag) => serializer.serialize_bool(flag),
            FieldValue::Calendar(calendar) => serializer.serialize_str(calendar.name()),
            FieldValue::Zone(zone) => serializer.serialize_str(zone.name()),
        }
    }
}

/// Reads the fields of the schema. A quota that is not [valid](Quota::validate) is an error.
impl<'de> Deserialize<'de> for Quota {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Written::deserialize(deserializer)?.quota().map_err(D::Error::custom)
    }
}

/// A text that should be a duration. A number is read as its digits, which lack a unit, so that
/// [`parse_duration`] names the unit that is missing.
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
