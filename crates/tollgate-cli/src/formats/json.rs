//! JSON lines: an object on every line.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::record::{LineParser, Stamp, Wanted, cost_of, named, time_of};
use crate::errors::LineError;
use crate::key::{Field, KeyText};
use crate::time::USUAL_NAMES;
use crate::times::Times;

type Object = Map<String, Value>;

/// Reads JSON lines. Objects need not all have the same fields.
#[derive(Debug)]
pub(super) struct JsonLines {
    time_column: Option<String>,
    times: Times,
    key: Vec<Field>,
    cost: Option<String>,
}

impl JsonLines {
    pub(super) fn new(wanted: &Wanted) -> Self {
        let key = wanted.parts().map(|(field, _)| field.clone()).collect();
        let Wanted { time_column, cost_column, .. } = wanted.clone();
        Self { time_column, times: Times::new(&wanted.times), key, cost: cost_column }
    }
}

impl LineParser for JsonLines {
    fn parse(&mut self, line: &[u8], key: &mut KeyText) -> Result<Option<Stamp>, LineError> {
        let object = match serde_json::from_slice(line) {
            Ok(Value::Object(object)) => object,
            Ok(_) => return Err(LineError::NotAnObject),
            Err(error) => return Err(LineError::NotJson(what_alone(&error))),
        };
        let time_column = self.time_column.as_deref();
        let time = match time_column {
            Some(name) => find(&object, name),
            None => USUAL_NAMES.iter().find_map(|name| find(&object, name)),
        };
        let time = time.and_then(text_of).ok_or_else(|| LineError::NoField(named("time", time_column)))?;
        let time = time_of(time.as_bytes(), &mut self.times)?;
        let cost = match &self.cost {
            Some(name) => {
                let cost = find(&object, name).and_then(text_of);
                cost_of(cost.ok_or_else(|| LineError::NoField(named("cost", Some(name))))?.as_bytes())?
            }
            None => 1,
        };
        for field in &self.key {
            let value = field.column_names().into_iter().find_map(|name| find(&object, name)).and_then(text_of);
            key.push(value.as_ref().map(|value| field.part_of(value.as_bytes())));
        }
        Ok(Some(Stamp { time, cost }))
    }
}

pub(super) fn is_object(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<Object>(line).is_ok()
}

/// The field of that name or, where there is none, the one that its dots lead to.
fn find<'a>(object: &'a Object, name: &str) -> Option<&'a Value> {
    let exactly = object.get(name).filter(|value| !value.is_null());
    exactly.or_else(|| {
        let (outer, inner) = name.split_once('.')?;
        find(object.get(outer)?.as_object()?, inner)
    })
}

/// A value as the text of a key, a time or a cost.
fn text_of(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        other => Some(Cow::Owned(other.to_string())),
    }
}

/// The parser's words without its line and column: the line it counts is always the first.
fn what_alone(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str, key: &str) -> Result<(Stamp, Option<String>), LineError> {
        let fields: Vec<Field> = key.split(',').map(|name| name.parse().unwrap()).collect();
        let mut text = KeyText::new(&fields);
        let wanted = Wanted { key: fields, ..Wanted::nothing() };
        let stamp = JsonLines::new(&wanted).parse(line.as_bytes(), &mut text)?;
        Ok((stamp.unwrap(), text.finished().map(str::to_owned)))
    }

    #[test]
    fn numbers_keep_every_digit() {
        let (stamp, key) = parse(r#"{"ts":1431857103.123456789,"user":42}"#, "user").unwrap();
        assert_eq!(stamp.time, 1_431_857_103_123_456_789);
        assert_eq!(key.as_deref(), Some("42"));
    }

    #[test]
    fn dots_lead_into_objects() {
        let line =
            r#"{"ts":1.5e9,"a.b":"flat","request":{"remote_ip":"10.0.0.1","uri":"/x?y","headers":{"Host":"h"}}}"#;
        let key = |fields| parse(line, fields).unwrap().1;
        assert_eq!(key("client,path").as_deref(), Some("10.0.0.1 /x"));
        assert_eq!(key("request.headers.Host").as_deref(), Some("h"));
        assert_eq!(key("a.b").as_deref(), Some("flat"));
        assert_eq!(key("user"), None);
    }

    #[test]
    fn what_is_no_event_says_why() {
        assert_eq!(parse("[1]", "user"), Err(LineError::NotAnObject));
        assert_eq!(parse(r#"{"user":"a"}"#, "user"), Err(LineError::NoField("time".into())));
        let half = parse(r#"{"time":1,"us"#, "user").unwrap_err().to_string();
        assert!(half.starts_with("not JSON: EOF") && !half.contains("line 1"), "{half}");
    }
}
