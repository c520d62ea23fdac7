//! Logs of proxies whose lines have a fixed order of values.

use super::columns::Columns;
use super::record::{LineParser, Stamp, Wanted, time_of};
use crate::errors::{FileError, LineError};
use crate::key::KeyText;
use crate::times::Times;

/// The value of each column in a line; `None` if the line has none.
pub(super) type Values<'a> = Vec<Option<&'a [u8]>>;

/// What tells one such log from another.
#[derive(Debug)]
pub(super) struct Layout {
    /// The columns by the names that `--key` and the options of costs may call them.
    pub(super) names: &'static [&'static str],
    /// The column with the time at which the request came.
    pub(super) time: &'static str,
    /// Takes a line apart.
    pub(super) split: fn(&[u8]) -> Result<Values<'_>, LineError>,
}

/// Reads such a log.
#[derive(Debug)]
pub(super) struct Proxy {
    layout: &'static Layout,
    columns: Columns,
    times: Times,
}

impl Proxy {
    pub(super) fn new(layout: &'static Layout, wanted: &Wanted) -> Result<Self, FileError> {
        let there: Vec<String> = layout.names.iter().map(|name| (*name).to_owned()).collect();
        let columns = Columns::find(&there, wanted, &[layout.time])?;
        Ok(Self { layout, columns, times: Times::new(&wanted.times) })
    }
}

impl LineParser for Proxy {
    fn parse(&mut self, line: &[u8], key: &mut KeyText) -> Result<Option<Stamp>, LineError> {
        let values = (self.layout.split)(line)?;
        let value = |column: usize| values[column].unwrap_or_default();
        let time = time_of(value(self.columns.time), &mut self.times)?;
        let stamp = self.columns.costs.stamp(time, |&column| Some(value(column)))?;
        self.columns.push(key, |column| values[column]);
        Ok(Some(stamp))
    }
}

/// Method, path and protocol of a request line. The path is without scheme and host, which HTTP/2 and
/// load balancers put before it.
pub(super) fn parts_of(request: &[u8]) -> [Option<&[u8]>; 3] {
    let words: Vec<&[u8]> = request.splitn(3, |byte| *byte == b' ').collect();
    // `-`, or junk that is no request, has none of its parts.
    let &[method, target, ref protocol @ ..] = words.as_slice() else { return [None; 3] };
    [Some(method), Some(path_of(target)), protocol.first().copied()]
}

fn path_of(target: &[u8]) -> &[u8] {
    let scheme = target.windows(3).position(|mark| mark == b"://");
    let Some(scheme) = scheme.filter(|&at| target[..at].iter().all(u8::is_ascii_alphanumeric)) else { return target };
    let host = &target[scheme + 3..];
    host.iter().position(|byte| matches!(byte, b'/' | b'?')).map_or(b"/", |at| &host[at..])
}

/// The address before the port of its connection. IPv6 may be in brackets.
pub(super) fn address_of(text: &[u8]) -> &[u8] {
    let address = memchr::memrchr(b':', text).map_or(text, |colon| &text[..colon]);
    address.strip_prefix(b"[").and_then(|inner| inner.strip_suffix(b"]")).unwrap_or(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_without_the_host() {
        for (target, expected) in [
            ("/a?b", "/a?b"),
            ("https://example.org:443/a?b", "/a?b"),
            ("http://example.org", "/"),
            ("/to?next=https://example.org/", "/to?next=https://example.org/"),
        ] {
            assert_eq!(path_of(target.as_bytes()), expected.as_bytes(), "{target}");
        }
        assert_eq!(parts_of(b"<BADREQ>"), [None; 3]);
    }

    #[test]
    fn an_address_is_without_the_port() {
        for (text, expected) in [("192.0.2.7:80", "192.0.2.7"), ("2001:db8::7:80", "2001:db8::7"), ("[::1]:80", "::1")]
        {
            assert_eq!(address_of(text.as_bytes()), expected.as_bytes(), "{text}");
        }
    }
}
