//! Common and combined access logs:
//! `client ident user [17/May/2015:10:05:03 +0000] "GET /path HTTP/1.1" 200 512 "referer" "agent"`.

use core::net::IpAddr;

use super::columns::{Columns, no_column};
use super::record::{LineParser, Stamp, Wanted, named};
use crate::errors::{FileError, LineError};
use crate::key::KeyText;
use crate::time::Dates;

/// One line, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    client: &'a [u8],
    ident: &'a [u8],
    user: &'a [u8],
    time: &'a [u8],
    request: &'a [u8],
    status: &'a [u8],
    bytes: &'a [u8],
    /// What the combined format adds, or a server's own fields.
    rest: &'a [u8],
}

impl<'a> Line<'a> {
    /// A line counts as whole when it has all of the common format. What may follow is not looked
    /// at here.
    pub(super) fn split(line: &'a [u8]) -> Result<Self, LineError> {
        let lacks = |part| move || LineError::Lacks(part);
        let (who, rest) = split_at_bracket(line).ok_or_else(lacks("no [time] follows the client"))?;
        let (time, rest) = split_at(rest, b"] \"").ok_or_else(lacks("no \"request\" follows the time"))?;
        let (request, rest) = until_quote(rest).ok_or_else(lacks("the request's closing quote is missing"))?;
        let mut words = rest.strip_prefix(b" ").unwrap_or_default().splitn(3, |byte| *byte == b' ');
        let mut number = || words.next().filter(|word| is_number(word));
        let status = number().ok_or_else(lacks("no status follows the request"))?;
        let bytes = number().ok_or_else(lacks("no size follows the status"))?;
        let rest = words.next().unwrap_or_default();
        let (client, ident, user) = split_who(who).ok_or_else(lacks("client, identity and user come first"))?;
        Ok(Self { client, ident, user, time, request, status, bytes, rest })
    }

    fn get(&self, column: Column) -> Option<&'a [u8]> {
        let word = |nth| {
            // `-`, or junk that is no request, has none of its parts.
            let words: Vec<&[u8]> = self.request.splitn(3, |byte| *byte == b' ').collect();
            if words.len() > 1 { words.get(nth).copied() } else { None }
        };
        match column {
            Column::Client => Some(self.client),
            Column::Time => Some(self.time),
            Column::Ident => Some(self.ident),
            Column::User => Some(self.user),
            Column::Request => Some(self.request),
            Column::Method => word(0),
            Column::Target => word(1),
            Column::Protocol => word(2),
            Column::Status => Some(self.status),
            Column::Bytes => Some(self.bytes),
            Column::Referer => self.quoted(0),
            Column::Agent => self.quoted(1),
            Column::Forwarded => self.quoted(2),
        }
    }

    /// The nth of the quoted values at the end of the line; one that is cut off goes to the end.
    fn quoted(&self, nth: usize) -> Option<&'a [u8]> {
        let mut rest = self.rest;
        for _ in 0..nth {
            rest = until_quote(rest.strip_prefix(b"\"")?)?.1.strip_prefix(b" ")?;
        }
        let value = rest.strip_prefix(b"\"")?;
        Some(until_quote(value).map_or(value, |(value, _)| value))
    }
}

fn split_at<'a>(text: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let first = *mark.first()?;
    let at = memchr::memchr_iter(first, text).find(|&at| text[at..].starts_with(mark))?;
    Some((&text[..at], &text[at + mark.len()..]))
}

/// Splits at the first `[` that a space precedes.
fn split_at_bracket(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr_iter(b'[', text).find(|&at| at > 0 && text[at - 1] == b' ')?;
    Some((&text[..at - 1], &text[at + 1..]))
}

/// Splits at the first quote that no backslash precedes.
fn until_quote(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut start = 0;
    loop {
        let at = start + memchr::memchr2(b'"', b'\\', &text[start..])?;
        if text[at] == b'"' {
            return Some((&text[..at], &text[at + 1..]));
        }
        // What follows a backslash closes nothing.
        start = at + 2;
        if start > text.len() {
            return None;
        }
    }
}

fn is_number(word: &[u8]) -> bool {
    word == b"-" || (!word.is_empty() && word.iter().all(u8::is_ascii_digit))
}

/// The client, its identity and the user, whose name may have spaces. A virtual host in front
/// (`vhost_combined`) is told by its port, with an address next.
fn split_who(who: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    // A list of clients has spaces after its commas.
    let end = memchr::memchr_iter(b' ', who).find(|&at| at == 0 || who[at - 1] != b',')?;
    let (first, rest) = (&who[..end], &who[end + 1..]);
    let (second, others) = split_at(rest, b" ")?;
    let port = first.iter().rposition(|byte| *byte == b':').map(|at| &first[at + 1..]);
    let has_port = port.is_some_and(is_number) && first.iter().any(u8::is_ascii_alphabetic);
    let (client, ident, user) = match split_at(others, b" ") {
        Some((ident, user)) if has_port && is_address(second) => (second, ident, user),
        _ => (first, second, others),
    };
    (!client.is_empty() && !user.is_empty()).then_some((client, ident, user))
}

fn is_address(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Client,
    Time,
    Ident,
    User,
    Request,
    Method,
    Target,
    Protocol,
    Status,
    Bytes,
    Referer,
    Agent,
    /// What nginx writes at the end of the format `main` of its packages.
    Forwarded,
}

/// The columns by the names that `--key` and the options of costs may call them.
const COLUMNS: &[(&str, Column)] = &[
    ("client", Column::Client),
    ("time", Column::Time),
    ("ident", Column::Ident),
    ("user", Column::User),
    ("request", Column::Request),
    ("method", Column::Method),
    ("path", Column::Target),
    ("protocol", Column::Protocol),
    ("status", Column::Status),
    ("bytes", Column::Bytes),
    ("referer", Column::Referer),
    ("agent", Column::Agent),
    ("x_forwarded_for", Column::Forwarded),
];

/// Reads an access log.
#[derive(Debug)]
pub(super) struct AccessLog {
    columns: Columns,
    dates: Dates,
}

impl AccessLog {
    pub(super) fn new(wanted: &Wanted) -> Result<Self, FileError> {
        let there: Vec<String> = COLUMNS.iter().map(|(name, _)| (*name).to_owned()).collect();
        if let Some(name) = wanted.time_column.as_deref().filter(|name| *name != "time") {
            return Err(no_column(named("time", Some(name)), "--time-column time", &there));
        }
        Ok(Self { columns: Columns::find(&there, wanted, &["time"])?, dates: Dates::default() })
    }
}

impl LineParser for AccessLog {
    fn parse(&mut self, line: &[u8], key: &mut KeyText) -> Result<Option<Stamp>, LineError> {
        let line = Line::split(line)?;
        let time = self
            .dates
            .parse_clf(line.time)
            .map_err(|problem| LineError::Time { text: String::from_utf8_lossy(line.time).into_owned(), problem })?;
        let stamp = self.columns.costs.stamp(time, |&place| Some(line.get(COLUMNS[place].1).unwrap_or_default()))?;
        self.columns.push(key, |place| line.get(COLUMNS[place].1));
        Ok(Some(stamp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Field;

    const COMBINED: &[u8] =
        br#"10.0.0.1 - ann [17/May/2015:10:05:03 +0000] "GET /a?b=1 HTTP/1.1" 200 512 "http://x/" "Agent \"X\" 1""#;

    fn parse(line: &[u8], key: &str) -> Result<Option<String>, LineError> {
        let fields: Vec<Field> = key.split(',').map(|name| name.parse().unwrap()).collect();
        let mut text = KeyText::new(&fields);
        let wanted = Wanted { key: fields, ..Wanted::nothing() };
        AccessLog::new(&wanted).unwrap().parse(line, &mut text)?.unwrap();
        Ok(text.finished().map(str::to_owned))
    }

    #[test]
    fn every_column_can_be_a_key() {
        let columns = [
            ("client", "10.0.0.1"),
            ("user", "ann"),
            ("method", "GET"),
            ("path", "/a"),
            ("column:path", "/a?b=1"),
            ("protocol", "HTTP/1.1"),
            ("status", "200"),
            ("bytes", "512"),
            ("referer", "http://x/"),
            ("agent", r#"Agent \"X\" 1"#),
            ("client,path", "10.0.0.1 /a"),
        ];
        for (key, expected) in columns {
            assert_eq!(parse(COMBINED, key), Ok(Some(expected.to_owned())), "{key}");
        }
    }

    #[test]
    fn odd_lines_that_are_real_requests_count() {
        let common = br#"::1 - - [17/May/2015:10:05:03 +0000] "-" 408 -"#;
        assert_eq!(parse(common, "client"), Ok(Some("::".to_owned())), "its network");
        assert_eq!(parse(common, "path"), Ok(None));
        let spaced = br#"10.0.0.1 - ann lee [17/May/2015:10:05:03 +0000] "\x16\x03" 400 0"#;
        assert_eq!(parse(spaced, "user"), Ok(Some("ann lee".to_owned())));
        let with_host = br#"example.com:443 10.0.0.1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1 "-" "-""#;
        assert_eq!(parse(with_host, "client"), Ok(Some("10.0.0.1".to_owned())));
        let cut_in_the_agent = &COMBINED[..COMBINED.len() - 5];
        assert_eq!(parse(cut_in_the_agent, "client"), Ok(Some("10.0.0.1".to_owned())));
    }

    #[test]
    fn a_list_of_clients_and_what_follows_the_agent_are_columns() {
        let list = br#"203.0.113.9, 192.0.2.7 - ann lee [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 0"#;
        assert_eq!(parse(list, "client,user"), Ok(Some("192.0.2.7 ann\\ lee".to_owned())));
        let forwarded = [COMBINED, br#" "203.0.113.9, 192.0.2.7""#].concat();
        assert_eq!(parse(&forwarded, "x_forwarded_for"), Ok(Some("203.0.113.9, 192.0.2.7".to_owned())));
        assert_eq!(parse(COMBINED, "x_forwarded_for"), Ok(None));
    }

    #[test]
    fn a_line_cut_before_its_size_is_no_event() {
        let size_at = COMBINED.windows(4).position(|window| window == b" 512").unwrap();
        for cut in 0..=size_at {
            assert!(matches!(Line::split(&COMBINED[..cut]), Err(LineError::Lacks(_))), "cut at {cut}");
        }
        let glued = [&COMBINED[..60], COMBINED].concat();
        assert!(Line::split(&glued).is_err(), "half a line with the next one behind it");
    }

    #[test]
    fn an_unknown_column_names_those_there_are() {
        let wanted = Wanted { key: vec![Field::Named("tenant".into())], ..Wanted::nothing() };
        let message = AccessLog::new(&wanted).unwrap_err().to_string();
        assert!(message.contains("tenant") && message.contains("agent") && message.contains("--key"), "{message}");
    }
}
