//! Which requests count: those in a range of time whose fields are as asked.

use core::str::FromStr;

use crate::key::{Field, parse_field};
use crate::text::harmless;
use crate::time::{self, Nanos, TimeProblem};

/// One `--where`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) field: Field,
    /// The texts between the stars of the value.
    pieces: Vec<String>,
    /// Whether the field is to be so, or not.
    wanted: bool,
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((field, value)) = text.split_once('=') else {
            return Err("write FIELD=VALUE or FIELD!=VALUE".to_owned());
        };
        let (field, wanted) = field.strip_suffix('!').map_or((field, true), |field| (field, false));
        let field =
            parse_field(field).map_err(|_| "a field has no name: write FIELD=VALUE or FIELD!=VALUE".to_owned())?;
        Ok(Self { field, pieces: value.split('*').map(str::to_owned).collect(), wanted })
    }
}

impl Filter {
    /// Whether a request with that value is kept. No value is written `-` in logs, and here.
    fn keeps(&self, value: Option<&str>) -> bool {
        self.is_like(value.unwrap_or("-")) == self.wanted
    }

    /// What to say of a value that begins with an equals sign, which is rarely meant.
    pub(crate) fn hint(&self) -> Option<String> {
        let value = harmless(&self.pieces.join("*"));
        let meant = value.strip_prefix('=')?;
        let (field, sign) = (harmless(&self.field.option_name()), if self.wanted { "=" } else { "!=" });
        Some(format!(
            "--where {field}{sign}{value} looks for \"{value}\", with the equals sign: \
             for \"{meant}\" write {field}{sign}{meant}"
        ))
    }

    fn is_like(&self, value: &str) -> bool {
        let [first, middle @ .., last] = self.pieces.as_slice() else {
            return self.pieces.first().is_some_and(|whole| value == whole);
        };
        let Some(mut rest) = value.strip_prefix(first.as_str()) else { return false };
        for piece in middle {
            // The first place is as good as any: it leaves the most for the others.
            let Some(at) = rest.find(piece.as_str()) else { return false };
            rest = &rest[at + piece.len()..];
        }
        rest.ends_with(last.as_str())
    }
}

/// All that is asked of a request.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    from: Option<Nanos>,
    until: Option<Nanos>,
    pub(crate) filters: Vec<Filter>,
}

impl Selection {
    pub(crate) fn new(from: Option<Nanos>, until: Option<Nanos>, filters: Vec<Filter>) -> Self {
        Self { from, until, filters }
    }

    /// `values` are those of the filters' fields, in their order.
    pub(crate) fn keeps<'a>(&self, time: Nanos, values: impl Iterator<Item = Option<&'a str>>) -> bool {
        self.from.is_none_or(|from| time >= from)
            && self.until.is_none_or(|until| time < until)
            && self.filters.iter().zip(values).all(|(filter, value)| filter.keeps(value))
    }
}

/// Reads a time of the command line. A day alone is its first moment.
pub(crate) fn parse_moment(text: &str) -> Result<Nanos, String> {
    match time::parse_any(text, None) {
        Err(TimeProblem::NoTimeOfDay) => time::parse_any(&format!("{}T00:00:00", text.trim()), None),
        other => other,
    }
    .map_err(|problem| problem.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeps(filter: &str, value: &str) -> bool {
        filter.parse::<Filter>().unwrap().keeps(Some(value))
    }

    #[test]
    fn stars_stand_for_any_text() {
        let cases = [
            ("path=/a", "/a", true),
            ("path=/a", "/ab", false),
            ("path=/a*", "/ab", true),
            ("path=*b", "/ab", true),
            ("path=/*/x*", "/a/b/x", true),
            ("path=/*/x*", "/a/y", false),
            ("path=a*a", "a", false),
            ("path=a*a", "aa", true),
            ("path=*ab*ab", "xab", false),
            ("path=*", "", true),
            ("path!=/a*", "/ab", false),
            ("path!=/a*", "/b", true),
            ("q=a=b", "a=b", true),
        ];
        for (filter, value, expected) in cases {
            assert_eq!(keeps(filter, value), expected, "{filter} {value}");
        }
        assert!("user=-".parse::<Filter>().unwrap().keeps(None));
        assert!("user!=-".parse::<Filter>().unwrap().keeps(Some("ann")));
        assert!("user".parse::<Filter>().is_err() && "=x".parse::<Filter>().is_err());
    }

    #[test]
    fn a_day_begins_at_midnight() {
        assert_eq!(parse_moment("2015-05-17"), parse_moment("2015-05-17T00:00:00Z"));
        assert!(parse_moment("soon").unwrap_err().contains("not a time"));
    }
}
