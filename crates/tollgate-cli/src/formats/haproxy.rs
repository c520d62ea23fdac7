//! What HAProxy writes with `option httplog` or `option tcplog`, behind what syslog puts before it:
//! `192.0.2.7:33317 [06/Feb/2009:12:14:14.655] in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0
//! 0/0 {host} {} "GET /index.html HTTP/1.1"`.

use super::proxy::{Layout, Values, address_of, parts_of};
use crate::errors::LineError;

/// Its lines. A line of TCP has no status and no request.
pub(super) const HAPROXY: Layout = Layout {
    names: &[
        "client", "time", "frontend", "backend", "server", "timers", "status", "bytes", "request", "method", "path",
        "protocol",
    ],
    time: "time",
    split,
};

/// `10/0/30/69/109`, and of TCP `0/30/109`.
const TIMERS_OF_HTTP: usize = 5;

pub(super) fn split(line: &[u8]) -> Result<Values<'_>, LineError> {
    let lacks = |part| move || LineError::Lacks(part);
    let (before, time, rest) = around_time(line).ok_or_else(lacks("no client and [time] are in it"))?;
    let client = before.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    let mut words = rest.split(|byte| *byte == b' ');
    let mut word = |part| words.next().filter(|word| !word.is_empty()).ok_or_else(lacks(part));
    let frontend = word("no frontend follows the time")?;
    let server = word("no backend follows the frontend")?;
    let slash = memchr::memchr(b'/', server).ok_or_else(lacks("no server follows the backend"))?;
    let timers = word("no timers follow the server")?;
    let is_http = timers.split(|byte| *byte == b'/').count() == TIMERS_OF_HTTP;
    let status = if is_http { Some(word("no status follows the timers")?) } else { None };
    let bytes = word("no size follows the timers")?;
    // A quote in a captured header is written as `#22`.
    let request = memchr::memchr(b'"', rest).map(|at| &rest[at + 1..]);
    if is_http && request.is_none() {
        return Err(LineError::Lacks("no \"request\" follows"));
    }
    // A long request is cut off, and its quote with it.
    let request = request.map(|text| text.strip_suffix(b"\"").unwrap_or(text));
    let [method, path, protocol] = request.map_or([None; 3], parts_of);
    Ok(vec![
        Some(address_of(client)),
        Some(time),
        Some(frontend),
        Some(&server[..slash]),
        Some(&server[slash + 1..]),
        Some(timers),
        status,
        Some(bytes),
        request,
        method,
        path,
        protocol,
    ])
}

/// What is before, in and after the brackets of the first date, which a connection is before.
fn around_time(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let is_date =
        |at: &usize| matches!(line[at + 1..], [b'0'..=b'9', b'0'..=b'9', b'/', ..]) && *at > 1 && line[at - 1] == b' ';
    let at = memchr::memchr_iter(b'[', line).find(is_date)?;
    let end = at + memchr::memchr(b']', &line[at..])?;
    let before = &line[..at - 1];
    let has_port = memchr::memrchr(b':', before)
        .is_some_and(|colon| colon + 1 < before.len() && before[colon + 1..].iter().all(u8::is_ascii_digit));
    Some((before, &line[at + 1..end], line[end + 1..].strip_prefix(b" ")?)).filter(|_| has_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HTTP: &str = "Feb  6 12:14:14 lb haproxy[14389]: 2001:db8::7:33317 [06/Feb/2009:12:14:14.655] in~ static/srv1 \
                        10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {a[b] c|} {} \"GET /i?a HTTP/1.1\"";
    const TCP: &str = "192.0.2.7:33313 [06/Feb/2009:12:12:51.443] fnt bck/srv1 0/0/5007 212 -- 0/0/0/0/3 0/0";

    fn value(line: &str, name: &str) -> Option<String> {
        let column = HAPROXY.names.iter().position(|other| *other == name).unwrap();
        split(line.as_bytes()).unwrap()[column].map(|value| String::from_utf8_lossy(value).into_owned())
    }

    #[test]
    fn every_column_has_its_value() {
        for (name, of_http, of_tcp) in [
            ("client", Some("2001:db8::7"), Some("192.0.2.7")),
            ("time", Some("06/Feb/2009:12:14:14.655"), Some("06/Feb/2009:12:12:51.443")),
            ("frontend", Some("in~"), Some("fnt")),
            ("backend", Some("static"), Some("bck")),
            ("server", Some("srv1"), Some("srv1")),
            ("timers", Some("10/0/30/69/109"), Some("0/0/5007")),
            ("status", Some("200"), None),
            ("bytes", Some("2750"), Some("212")),
            ("request", Some("GET /i?a HTTP/1.1"), None),
            ("method", Some("GET"), None),
            ("path", Some("/i?a"), None),
            ("protocol", Some("HTTP/1.1"), None),
        ] {
            assert_eq!(value(HTTP, name).as_deref(), of_http, "{name}");
            assert_eq!(value(TCP, name).as_deref(), of_tcp, "{name}");
        }
    }

    #[test]
    fn a_line_that_is_cut_before_its_request_is_no_event() {
        for cut in 0..=HTTP.find('"').unwrap() {
            assert!(split(&HTTP.as_bytes()[..cut]).is_err(), "cut at {cut}");
        }
        assert_eq!(value(&HTTP[..HTTP.len() - 6], "path").as_deref(), Some("/i?a"));
        assert_eq!(value(&HTTP.replace("GET /i?a HTTP/1.1", "<BADREQ>"), "path"), None);
    }
}
