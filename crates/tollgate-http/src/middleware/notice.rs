//! [`Notice`]: a set-up that is valid, and seldom meant.

use core::fmt;
use std::sync::{Mutex, PoisonError};

/// A set-up of several limits that is valid and seldom meant. Middleware logs it as a warning, once.
///
/// ```
/// use tollgate_http::middleware::Notice;
///
/// let [outer, inner] = [br#""api";q=5;w=60"#, br#""api";q=2;w=60"#];
/// let notice = Notice::of_names(outer, inner).expect("it is new");
/// assert_eq!(notice, Notice::SameName { name: "api".into() });
/// assert_eq!(Notice::of_names(outer, inner), None, "once");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A limiter decides twice about one request, and charges it twice.
    Twice,
    /// Two limits have the same name in one answer.
    SameName {
        /// The name.
        name: Box<str>,
    },
}

/// The most names that are noticed.
const MOST_NAMES: usize = 64;

/// The names that have been noticed.
static NAMES: Mutex<Vec<Box<str>>> = Mutex::new(Vec::new());

impl Notice {
    /// Compares the names of two lists, which are values of `RateLimit-Policy`. Tells each name once
    /// in the life of the process.
    #[must_use]
    pub fn of_names(outer: &[u8], inner: &[u8]) -> Option<Self> {
        let (outer, inner) = (core::str::from_utf8(outer).ok()?, core::str::from_utf8(inner).ok()?);
        let name = names(outer).find(|name| names(inner).any(|other| other == *name))?;
        // The list is whole after each change, so a panic elsewhere does no harm to it.
        let mut noticed = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        if noticed.len() >= MOST_NAMES || noticed.iter().any(|known| **known == *name) {
            return None;
        }
        noticed.push(name.into());
        Some(Self::SameName { name: name.into() })
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice => f.write_str(
                "a request passes two limits with the same limiter, and each charges it: \
                 leave one out, or let one `cost` more",
            ),
            Self::SameName { name } => write!(
                f,
                "two limits of one answer have the name '{name}', so clients cannot tell them apart: \
                 give each a `name`, or other names to its quotas"
            ),
        }
    }
}

/// The names in a list of structured fields whose items are strings: as they are written there,
/// without the quotes.
fn names(list: &str) -> impl Iterator<Item = &str> {
    let mut rest = list;
    core::iter::from_fn(move || {
        let item = rest.trim_start_matches([' ', '\t', ',']).strip_prefix('"')?;
        let end = end_of_string(item)?;
        let (name, parameters) = (&item[..end], &item[end + 1..]);
        rest = &parameters[end_of_item(parameters)..];
        Some(name)
    })
}

/// The place of the quote that ends a string.
fn end_of_string(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })
}

/// The place of the comma that ends an item, or of the end. A parameter may be a string.
fn end_of_item(parameters: &str) -> usize {
    let (mut is_string, mut is_escaped) = (false, false);
    let comma = parameters.bytes().position(|byte| {
        is_string ^= byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        byte == b',' && !is_string
    });
    comma.unwrap_or(parameters.len())
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn names_are_those_of_the_items() {
        let of = |list| names(list).collect::<Vec<_>>();
        assert_eq!(of(r#""a";q=1;w=2"#), ["a"]);
        assert_eq!(of(r#""a";q=1;qu="content-bytes, \"b\"";w=2, "c, d";q=1,"e""#), ["a", "c, d", "e"]);
        assert_eq!(of(r#""a\\";q=1, "\"b\"";r=1"#), [r"a\\", r#"\"b\""#]);
        assert!(of("").is_empty() && of("token;q=1").is_empty() && of(r#""open"#).is_empty());
    }
}
