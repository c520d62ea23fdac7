//! [`Json`]: a value of JSON as far as `/acquire` and `/release` look at it. Members keep their order, so that a
//! name that comes twice is seen.

use core::fmt;
use std::borrow::Cow;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::trouble::Trouble;

/// A value of JSON.
#[derive(Debug, PartialEq)]
pub(crate) enum Json<'a> {
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
    Text(Cow<'a, str>),
    /// An integer from 0.
    Number(u64),
    Flag(bool),
    Null,
    /// A list, a negative number or a fraction.
    Other,
}

impl<'a> Json<'a> {
    /// Reads the body of a request.
    ///
    /// # Errors
    ///
    /// [`Trouble::Body`] says where it is no JSON.
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, Trouble> {
        serde_json::from_slice(body).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            Trouble::Body(format!("The body is no JSON: see line {line}, column {column}."))
        })
    }
}

impl<'de> Deserialize<'de> for Json<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Json<'de>, E> {
        Ok(Json::Number(number))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Json<'de>, E> {
        Ok(Json::Other)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Json<'de>, E> {
        Ok(Json::Other)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Json<'de>, E> {
        Ok(Json::Flag(flag))
    }

    fn visit_unit<E: Error>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json<'de>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Json::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(Name(name)) = map.next_key()? {
            members.push((name, map.next_value()?));
        }
        Ok(Json::Object(members))
    }
}

/// The name of a member, borrowed where it has no escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_str(AnyValue)? {
            Json::Text(name) => Ok(Self(name)),
            _ => Err(D::Error::custom("a name is a string")),
        }
    }
}
