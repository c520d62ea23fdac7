//! JSON lines: an object on every line.

use core::convert::Infallible;
use std::borrow::Cow;

use serde_json::{Map, Value};

use super::costs::Costs;
use super::record::{LineParser, Stamp, Wanted, named, time_of};
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
    costs: Costs<String>,
}

impl JsonLines {
    pub(super) fn new(wanted: &Wanted) -> Self {
        let key = wanted.parts().map(|(field, _)| field.clone()).collect();
        let (time_column, times) = (wanted.time_column.clone(), Times::new(&wanted.times));
        let Ok(costs) = Costs::find(wanted, |name, _| Ok::<_, Infallible>(name.to_owned()));
        Self { time_column, times, key, costs }
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
            None => find_first(&object, USUAL_NAMES),
        };
        let time = time
            .and_then(text_of)
            .ok_or_else(|| LineError::NoField { wanted: named("time", time_column), option: "--time-column" })?;
        let time = time_of(time.as_bytes(), &mut self.times)?;
        let stamp = self.costs.stamp(time, |name| find(&object, name).and_then(text_of).map(Cow::into_owned))?;
        for field in &self.key {
            let forwarded = field.forwarded_names();
            let mut lines = if forwarded.is_empty() { Vec::new() } else { lines_of(find_first(&object, &forwarded)) };
            let value = find_first(&object, &field.column_names()).and_then(text_of);
            // Where the header field is all there is, it ends with the peer.
            let value = value.or_else(|| lines.pop());
            let bytes: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
            key.push_part(field, value.as_ref().map(|value| value.as_bytes()), &bytes);
        }
        Ok(Some(stamp))
    }

    fn fields(&self, line: &[u8]) -> Vec<String> {
        let mut names = Vec::new();
        if let Ok(object) = serde_json::from_slice::<Object>(line) {
            add_names(&mut names, &object, "");
        }
        names
    }
}

pub(super) fn is_object(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<Object>(line).is_ok()
}

/// The value of the first name that there is a field of, in the same letters or else in others.
fn find_first<'a>(object: &'a Object, names: &[&str]) -> Option<&'a Value> {
    let by = |get: Get| names.iter().find_map(|name| find_by(object, name, get));
    by(exactly).or_else(|| by(in_any_letters))
}

fn find<'a>(object: &'a Object, name: &str) -> Option<&'a Value> {
    find_first(object, &[name])
}

type Get = for<'a> fn(&'a Object, &str) -> Option<&'a Value>;

fn exactly<'a>(object: &'a Object, name: &str) -> Option<&'a Value> {
    object.get(name)
}

fn in_any_letters<'a>(object: &'a Object, name: &str) -> Option<&'a Value> {
    object.iter().find(|(there, _)| there.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// The field of that name or, where there is none, the one that its dots lead to.
fn find_by<'a>(object: &'a Object, name: &str, get: Get) -> Option<&'a Value> {
    let whole = get(object, name).filter(|value| !value.is_null());
    whole.or_else(|| {
        let (outer, inner) = name.split_once('.')?;
        find_by(get(object, outer)?.as_object()?, inner, get)
    })
}

/// Adds the names of all fields, with dots into objects.
fn add_names(names: &mut Vec<String>, object: &Object, before: &str) {
    for (name, value) in object {
        match value {
            Value::Object(inner) => add_names(names, inner, &format!("{before}{name}.")),
            _ => names.push(format!("{before}{name}")),
        }
    }
}

/// A value as the text of a key, a time or a cost.
fn text_of(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        other => Some(Cow::Owned(other.to_string())),
    }
}

/// The lines of a header field: a text, or a list of them.
fn lines_of(value: Option<&Value>) -> Vec<Cow<'_, str>> {
    match value {
        Some(Value::Array(lines)) => lines.iter().filter_map(text_of).collect(),
        other => other.and_then(text_of).into_iter().collect(),
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
    fn names_in_the_same_letters_come_before_others() {
        let key = |line| parse(line, "client").unwrap().1;
        assert_eq!(key(r#"{"Time":1,"Client":"a","ip":"b"}"#).as_deref(), Some("b"));
        assert_eq!(key(r#"{"Time":1,"Client":"a","IP":"b"}"#).as_deref(), Some("a"));
        assert_eq!(key(r#"{"Time":1,"Req":{"RemoteAddress":"a"}}"#).as_deref(), Some("a"));
    }

    #[test]
    fn fields_are_named_by_the_dots_that_lead_to_them() {
        let parser = JsonLines::new(&Wanted::nothing());
        assert_eq!(parser.fields(br#"{"a":1,"b":{"c":[1],"d":{"e":null}},"f":{}}"#), ["a", "b.c", "b.d.e"]);
        assert!(parser.fields(b"[1]").is_empty() && parser.fields(b"{").is_empty());
    }

    #[test]
    fn what_is_no_event_says_why() {
        assert_eq!(parse("[1]", "user"), Err(LineError::NotAnObject));
        assert_eq!(
            parse(r#"{"user":"a"}"#, "user"),
            Err(LineError::NoField { wanted: "time".into(), option: "--time-column" })
        );
        let half = parse(r#"{"time":1,"us"#, "user").unwrap_err().to_string();
        assert!(half.starts_with("not JSON: EOF") && !half.contains("line 1"), "{half}");
    }
}
