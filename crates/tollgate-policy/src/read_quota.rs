//! Reads a quota of a policy file. The library has the fields of quotas.

use core::fmt;
use std::sync::LazyLock;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use tollgate::schema::{Field, FieldError, FieldKind, FieldValue};
use tollgate::{Algorithm, BuildError, Calendar, Quota, Zone};
use toml::Spanned;

use crate::error::{PolicyProblem, is_in_policies};
use crate::placed::{DurationText, Placed, at, duration};

/// A quota as the file has it.
#[derive(Default)]
pub(crate) struct FileQuota {
    name: Option<Spanned<String>>,
    algorithm: Option<Spanned<String>>,
    /// The fields, with the places of their values.
    fields: Vec<(Field, usize, FileValue)>,
}

enum FileValue {
    Number(u32),
    Duration(Spanned<DurationText>),
    Flag(bool),
    Zone(String),
}

enum Key {
    Name,
    Algorithm,
    Field(Field),
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
            let fields = Field::ALL.iter().copied().filter(is_in_policies);
            ["name", "algorithm"].into_iter().chain(fields.map(Field::name)).collect()
        });
        let name = String::deserialize(deserializer)?;
        match name.as_str() {
            "name" => Ok(Self::Name),
            "algorithm" => Ok(Self::Algorithm),
            name => match Field::from_name(name).filter(is_in_policies) {
                Some(field) => Ok(Self::Field(field)),
                None => Err(D::Error::unknown_field(name, &NAMES)),
            },
        }
    }
}

impl<'de> Deserialize<'de> for FileQuota {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Table)
    }
}

struct Table;

impl<'de> Visitor<'de> for Table {
    type Value = FileQuota;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quota such as { limit = 5, per = \"10s\" }")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<FileQuota, M::Error> {
        let mut quota = FileQuota::default();
        while let Some(key) = map.next_key()? {
            match key {
                Key::Name => quota.name = Some(map.next_value()?),
                Key::Algorithm => quota.algorithm = Some(map.next_value()?),
                Key::Field(field) => {
                    let (place, value) = match field.kind() {
                        FieldKind::Number => of(map.next_value()?, FileValue::Number),
                        FieldKind::Flag => of(map.next_value()?, FileValue::Flag),
                        FieldKind::Zone => of(map.next_value()?, FileValue::Zone),
                        FieldKind::Duration => {
                            let text: Spanned<DurationText> = map.next_value()?;
                            (text.span().start, FileValue::Duration(text))
                        }
                    };
                    quota.fields.push((field, place, value));
                }
            }
        }
        Ok(quota)
    }
}

fn calendar(text: &DurationText) -> Option<Calendar> {
    if let DurationText::Text(name) = text { Calendar::from_name(name) } else { None }
}

fn of<T>(value: Spanned<T>, make: fn(T) -> FileValue) -> (usize, FileValue) {
    (value.span().start, make(value.into_inner()))
}

pub(crate) fn quota_of(spanned: &Spanned<FileQuota>) -> Result<Quota, Placed> {
    let FileQuota { name, algorithm, fields } = spanned.get_ref();
    let algorithm = match algorithm {
        None => Algorithm::SlidingWindowLog,
        Some(name) => Algorithm::from_name(name.get_ref())
            .ok_or_else(|| at(name, PolicyProblem::UnknownAlgorithm { name: name.get_ref().clone() }))?,
    };
    let read = |(field, place, value): &(Field, usize, FileValue)| {
        let value = match value {
            FileValue::Number(number) => FieldValue::Number(*number),
            FileValue::Duration(text) => match calendar(text.get_ref()).filter(|_| *field == Field::Per) {
                Some(calendar) => FieldValue::Calendar(calendar),
                None => FieldValue::Duration(duration(field.name(), text)?),
            },
            FileValue::Flag(flag) => FieldValue::Flag(*flag),
            FileValue::Zone(name) => {
                let unknown = |error| (*place, PolicyProblem::Zone { name: name.clone(), error });
                FieldValue::Zone(Zone::named(name).map_err(unknown)?)
            }
        };
        Ok((*field, value))
    };
    let values = fields.iter().map(read).collect::<Result<Vec<_>, Placed>>()?;
    let place_of = |field| fields.iter().find(|(other, ..)| *other == field).map_or(0, |(_, place, _)| *place);
    let made = Quota::from_fields(algorithm, &values).map_err(|error| match error {
        FieldError::Missing { field, .. } => {
            at(spanned, PolicyProblem::MissingField { field: field.name(), algorithm })
        }
        FieldError::Foreign { field, .. } => {
            (place_of(field), PolicyProblem::ForeignField { field: field.name(), algorithm })
        }
        FieldError::CalendarNeedsFixedWindow { calendar, .. } => {
            (place_of(Field::Per), PolicyProblem::CalendarNeedsFixedWindow { calendar, algorithm })
        }
        FieldError::ZoneNeedsCalendar => (place_of(Field::Zone), PolicyProblem::ZoneNeedsCalendar),
        FieldError::Invalid(error) => at(spanned, BuildError::from(error)),
        error => at(spanned, PolicyProblem::Toml { message: error.to_string() }),
    })?;
    let Some(name) = name else { return Ok(made) };
    let made = made.named(name.get_ref());
    made.validate().map_err(|error| at(name, BuildError::from(error)))?;
    Ok(made)
}
