//! What a limit is per: which values of a record make its key.

use core::convert::Infallible;
use core::fmt;
use core::str::FromStr;
use std::borrow::Cow;

use crate::clients::{Clients, columns_of};

/// One value of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Field {
    Client(Clients),
    /// The IPv6 network of a client, of so many bits.
    Network(u8, Clients),
    /// The whole address of a client, by which matches find it.
    Address(Clients),
    User,
    Path,
    Method,
    Host,
    Header(Header),
    /// A column by its name.
    Named(String),
}

/// A header field of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// With `header.` before it.
    name: String,
    /// The columns that it may be in, the likeliest first.
    columns: Vec<String>,
}

impl Header {
    /// The header field that a policy names so.
    fn named(field: &str) -> Option<Self> {
        let header = field.strip_prefix("header.").filter(|header| !header.is_empty())?.to_ascii_lowercase();
        let name = format!("header.{header}");
        let columns = core::iter::once(name.clone()).chain(columns_of(&header)).collect();
        Some(Self { name, columns })
    }
}

impl FromStr for Field {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(bits) = bits_of(text.trim()) {
            return Ok(Self::Network(bits, Clients::default()));
        }
        if let Some(header) = Header::named(text.trim()) {
            return Ok(Self::Header(header));
        }
        Ok(match text.trim() {
            "client" => Self::Client(Clients::default()),
            "user" => Self::User,
            "path" => Self::Path,
            "method" => Self::Method,
            "host" => Self::Host,
            name => Self::Named(name.strip_prefix("column:").unwrap_or(name).to_owned()),
        })
    }
}

/// Reads a field of the command line.
///
/// # Errors
///
/// It has no name.
pub(crate) fn parse_field(text: &str) -> Result<Field, String> {
    match text.parse().unwrap_or_else(|never| match never {}) {
        Field::Named(name) if name.trim().is_empty() => {
            Err("a field has no name: write client, user, path, method or a column's name".to_owned())
        }
        field => Ok(field),
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Network(bits, _) => return write!(f, "client/{bits}"),
            Self::Client(_) | Self::Address(_) => "client",
            Self::User => "user",
            Self::Path => "path",
            Self::Method => "method",
            Self::Host => "host",
            Self::Header(header) => &header.name,
            Self::Named(name) => name,
        })
    }
}

impl Field {
    /// The field, where clients are found by these rules.
    pub(crate) fn by(&self, clients: &Clients) -> Self {
        match self {
            Self::Client(_) => Self::Client(clients.clone()),
            Self::Network(bits, _) => Self::Network(*bits, clients.clone()),
            other => other.clone(),
        }
    }

    /// The rules by which clients are found, if that is the field.
    pub(crate) const fn clients(&self) -> Option<&Clients> {
        match self {
            Self::Client(clients) | Self::Network(_, clients) | Self::Address(clients) => Some(clients),
            _ => None,
        }
    }

    /// The columns that may hold the header field of proxies, the likeliest first.
    pub(crate) fn forwarded_names(&self) -> Vec<&str> {
        self.clients().map(|clients| clients.columns().collect()).unwrap_or_default()
    }

    /// The field as `--key` and policy files name it.
    pub(crate) fn option_name(&self) -> String {
        match self {
            Self::Named(name) if !matches!(name.parse(), Ok(Self::Named(same)) if same == *name) => {
                format!("column:{name}")
            }
            other => other.to_string(),
        }
    }

    /// The columns that may hold this field, the likeliest first. A dot leads into an object of
    /// JSON.
    pub(crate) fn column_names(&self) -> Vec<&str> {
        let names: &[&str] = match self {
            Self::Client(_) | Self::Network(..) | Self::Address(_) => &[
                "client",
                "client_ip",
                "clientip",
                "client_address",
                "ClientHost",
                "ClientAddr",
                "remote_addr",
                "remote_ip",
                "remote_host",
                "ip",
                "ip_address",
                "src_ip",
                "source_ip",
                "c-ip",
                "id.orig_h",
                "downstream_remote_address",
                "sourceIp",
                "req.remoteAddress",
                "httpRequest.remoteIp",
                "request.client_ip",
                "request.remote_ip",
                "client.ip",
                "source.ip",
            ],
            Self::User => &[
                "user",
                "user_id",
                "ClientUsername",
                "userid",
                "username",
                "user_name",
                "remote_user",
                "account",
                "account_id",
                "cs-username",
                "user.id",
                "user.name",
            ],
            Self::Path => &[
                "path",
                "uri",
                "url",
                "request_path",
                "RequestPath",
                "ClientRequestPath",
                "ClientRequestURI",
                "resourcePath",
                "req.url",
                "httpRequest.requestUrl",
                "request_uri",
                "uri_path",
                "cs-uri-stem",
                "request.uri",
                "request.path",
                "url.path",
            ],
            Self::Method => &[
                "method",
                "request_method",
                "http_method",
                "RequestMethod",
                "ClientRequestMethod",
                "httpMethod",
                "verb",
                "cs-method",
                "request.method",
                "req.method",
                "http.request.method",
                "httpRequest.requestMethod",
            ],
            Self::Host => &[
                "host",
                "http_host",
                "RequestHost",
                "ClientRequestHost",
                "cs-host",
                "cs(Host)",
                "x-host-header",
                "authority",
                ":authority",
                "vhost",
                "virtual_host",
                "domain_name",
                "request.host",
                "headers.host",
                "request.headers.host",
                "req.headers.host",
                "url.domain",
            ],
            Self::Header(header) => return header.columns.iter().map(String::as_str).collect(),
            Self::Named(name) => return vec![name],
        };
        names.to_vec()
    }

    /// What of a column's value counts: of a path, all before the query; of a client, the key of its
    /// address or its network. `lines` are those of the header field of proxies.
    fn part_of<'a>(&self, value: &'a [u8], lines: &[impl AsRef<[u8]>]) -> Option<Cow<'a, [u8]>> {
        match self {
            Self::Path => value.split(|byte| matches!(byte, b'?' | b'#')).next().map(Cow::Borrowed),
            Self::Client(clients) => Some(clients.key(value, lines)),
            Self::Network(bits, clients) => clients.network(*bits, value, lines),
            Self::Address(clients) => clients.whole(value, lines),
            _ => Some(value.into()),
        }
    }
}

/// The bits of a network of clients, as `client/48` names it.
fn bits_of(name: &str) -> Option<u8> {
    name.strip_prefix("client/")?.parse().ok().filter(|bits| (1..=128).contains(bits))
}

/// Names several fields as one: `client + path`.
pub(crate) fn describe(fields: &[Field]) -> String {
    fields.iter().map(Field::to_string).collect::<Vec<_>>().join(" + ")
}

/// What keys are made of: `client or path`.
pub(crate) fn describe_all(keys: &[Vec<Field>]) -> String {
    keys.iter().map(|fields| describe(fields)).collect::<Vec<_>>().join(" or ")
}

/// Puts a record's keys together, one for each dimension.
///
/// A key of one part is that part as it stands. Where there are several they are set apart by
/// spaces, and spaces and backslashes within them are marked with a backslash, so that no two
/// different sets of parts make the same key.
#[derive(Debug)]
pub(crate) struct KeyText {
    keys: Vec<OneKey>,
    /// The key that the next part belongs to.
    at: usize,
    /// Of each part, in the order pushed, whether any record has had it.
    found: Vec<bool>,
    /// The part that is pushed next.
    part: usize,
    is_forwarded: bool,
}

#[derive(Debug)]
struct OneKey {
    text: String,
    /// How many parts it is to have.
    size: usize,
    parts: usize,
    present: usize,
    /// The record has no such key, whatever other parts it has.
    is_none: bool,
}

impl KeyText {
    /// Keys of so many parts each. Parts are pushed for one key after the other.
    pub(crate) fn of_sizes(sizes: impl IntoIterator<Item = usize>) -> Self {
        let key = |size| OneKey { text: String::new(), size, parts: 0, present: 0, is_none: false };
        let keys: Vec<OneKey> = sizes.into_iter().map(key).collect();
        let found = vec![false; keys.iter().map(|key| key.size).sum()];
        Self { keys, at: 0, found, part: 0, is_forwarded: false }
    }

    #[cfg(test)]
    pub(crate) fn new(fields: &[Field]) -> Self {
        Self::of_sizes([fields.len()])
    }

    pub(crate) fn clear(&mut self) {
        self.at = 0;
        self.part = 0;
        for key in &mut self.keys {
            key.text.clear();
            key.parts = 0;
            key.present = 0;
            key.is_none = false;
        }
    }

    /// Adds the next part. None, nothing and `-` all mean that the record has no such value.
    pub(crate) fn push(&mut self, part: Option<impl AsRef<[u8]>>) {
        let Some(key) = self.keys.get_mut(self.at) else { return };
        let is_there = key.push(part.as_ref().map(AsRef::as_ref));
        if let Some(found) = self.found.get_mut(self.part) {
            *found |= is_there;
        }
        self.part += 1;
        self.at += usize::from(key.parts == key.size);
    }

    /// Adds the part that a field has of a column's value, and of the lines of the header field of
    /// proxies.
    pub(crate) fn push_part(&mut self, field: &Field, value: Option<&[u8]>, lines: &[impl AsRef<[u8]>]) {
        let has_lines = lines.iter().any(|line| !matches!(line.as_ref(), b"" | b"-"));
        let is_list = || value.is_some_and(|value| memchr::memchr(b',', value).is_some());
        self.is_forwarded |= has_lines || (field.clients().is_some() && is_list());
        match value.map(|value| field.part_of(value, lines)) {
            // An IPv4 address has no network: a dimension with such a field is not asked for it. A text
            // that is no address is in no network of a match.
            Some(None) => self.push_none(),
            part => self.push(part.flatten()),
        }
    }

    /// Adds a part because of which the record has no such key.
    fn push_none(&mut self) {
        let Some(key) = self.keys.get_mut(self.at) else { return };
        key.is_none = true;
        // What the record has needs no other name.
        self.found.get_mut(self.part).into_iter().for_each(|found| *found = true);
        self.push(None::<&[u8]>);
    }

    /// Whether any record has had the header field of proxies.
    pub(crate) const fn is_forwarded(&self) -> bool {
        self.is_forwarded
    }

    /// Whether this record has every part.
    pub(crate) fn is_whole(&self) -> bool {
        self.keys.iter().all(|key| key.is_none || key.present == key.size)
    }

    /// The numbers of the parts that no record has had.
    pub(crate) fn never_found(&self) -> impl Iterator<Item = usize> {
        self.found.iter().enumerate().filter(|(_, found)| !**found).map(|(part, _)| part)
    }

    /// The first key; `None` when the record had none of its values.
    #[cfg(test)]
    pub(crate) fn finished(&self) -> Option<&str> {
        self.each().next().flatten()
    }

    /// Every key.
    pub(crate) fn each(&self) -> impl Iterator<Item = Option<&str>> {
        self.keys.iter().map(|key| (key.present > 0 && !key.is_none).then_some(key.text.as_str()))
    }
}

impl OneKey {
    /// Whether there is such a part.
    fn push(&mut self, part: Option<&[u8]>) -> bool {
        if self.parts > 0 {
            self.text.push(' ');
        }
        self.parts += 1;
        let part = part.unwrap_or_default();
        if part.is_empty() || part == b"-" {
            self.text.push('-');
            return false;
        }
        self.present += 1;
        for chunk in part.utf8_chunks() {
            if self.size == 1 || memchr::memchr2(b' ', b'\\', chunk.valid().as_bytes()).is_none() {
                self.text.push_str(chunk.valid());
            } else {
                for char in chunk.valid().chars() {
                    if matches!(char, ' ' | '\\') {
                        self.text.push('\\');
                    }
                    self.text.push(char);
                }
            }
            for byte in chunk.invalid() {
                // Not replaced by a stand-in: that would make one key of different ones.
                self.text.push_str(&format!("\\x{byte:02x}"));
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(parts: &[Option<&[u8]>]) -> Option<String> {
        let fields = vec![Field::User; parts.len()];
        let mut key = KeyText::new(&fields);
        parts.iter().for_each(|part| key.push(*part));
        key.finished().map(str::to_owned)
    }

    #[test]
    fn different_parts_make_different_keys() {
        assert_ne!(key_of(&[Some(b"a b"), Some(b"c")]), key_of(&[Some(b"a"), Some(b"b c")]));
        assert_ne!(key_of(&[Some(b"a\\"), Some(b"b")]), key_of(&[Some(b"a"), Some(b"\\ b")]));
        assert_ne!(key_of(&[Some(b"\xff")]), key_of(&[Some(b"\xfe")]));
        assert_eq!(key_of(&[Some(b"10.0.0.1"), Some(b"/a")]).as_deref(), Some("10.0.0.1 /a"));
        assert_eq!(key_of(&[Some(b"a b")]).as_deref(), Some("a b"), "a single part stays as it is");
    }

    #[test]
    fn a_record_without_any_of_the_values_has_no_key() {
        assert_eq!(key_of(&[None]), None);
        assert_eq!(key_of(&[Some(b"-"), Some(b"")]), None);
        assert_eq!(key_of(&[Some(b"10.0.0.1"), None]).as_deref(), Some("10.0.0.1 -"));
    }

    #[test]
    fn a_path_ends_at_the_query() {
        let part_of = |field: Field, value| field.part_of(value, &[""; 0]).map(Cow::into_owned);
        assert_eq!(part_of(Field::Path, b"/a/b?c=d"), Some(b"/a/b".to_vec()));
        assert_eq!(part_of(Field::Named("url".into()), b"/a/b?c=d"), Some(b"/a/b?c=d".to_vec()));
        assert_eq!(part_of(Field::Path, b"10.0.0.1:80"), Some(b"10.0.0.1:80".to_vec()));
        assert_eq!("column:path".parse(), Ok(Field::Named("path".into())));
    }

    #[test]
    fn a_header_field_is_in_the_columns_of_its_name() {
        let field = |name: &str| name.parse::<Field>().unwrap();
        let plan = field("header.X-Plan");
        assert_eq!((plan.to_string(), plan.option_name()), ("header.x-plan".into(), "header.x-plan".into()));
        let expected = ["header.x-plan", "x-plan", "x_plan", "http_x_plan", "cs(x-plan)"];
        assert_eq!(plan.column_names()[..5], expected);
        assert!(plan.column_names().contains(&"request.headers.x-plan"));
        assert_eq!(field("header."), Field::Named("header.".into()));
        assert_eq!(field("column:host").option_name(), "column:host");
        assert_eq!(field("host"), Field::Host);
    }

    #[test]
    fn a_network_of_clients_is_a_field() {
        let network = Field::Network(48, Clients::default());
        assert_eq!("client/48".parse(), Ok(network.clone()));
        assert_eq!((network.to_string(), network.option_name()), ("client/48".into(), "client/48".into()));
        for name in ["client/0", "client/129", "client/x", "user/48"] {
            assert_eq!(name.parse(), Ok(Field::Named(name.into())));
        }
    }

    #[test]
    fn an_ipv4_address_has_no_key_with_a_network() {
        let fields: Vec<Field> = ["client/48", "path"].map(|name| name.parse().unwrap()).into();
        let mut key = KeyText::new(&fields);
        for (client, expected) in [("192.0.2.7", None), ("2001:db8:1:2::3", Some("2001:db8:1:: /a"))] {
            key.clear();
            let values = [Some(client.as_bytes()), Some(b"/a".as_slice())];
            fields.iter().zip(values).for_each(|(field, value)| key.push_part(field, value, &[""; 0]));
            assert_eq!((key.finished(), key.is_whole()), (expected, true));
        }
        assert_eq!(key.never_found().count(), 0);
    }

    #[test]
    fn parts_that_no_record_has_are_remembered() {
        let mut key = KeyText::of_sizes([2, 1]);
        for parts in [[Some("a"), None, None], [None, None, Some("b")]] {
            key.clear();
            parts.iter().for_each(|part| key.push(part.map(str::as_bytes)));
            assert!(!key.is_whole());
        }
        assert_eq!(key.never_found().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn each_dimension_has_its_own_parts() {
        let mut keys = KeyText::of_sizes([1, 2, 1]);
        for _ in 0..2 {
            keys.clear();
            [Some(b"a b".as_slice()), None, Some(b"c d"), Some(b"-")].into_iter().for_each(|part| keys.push(part));
            assert_eq!(keys.each().collect::<Vec<_>>(), [Some("a b"), Some("- c\\ d"), None]);
        }
    }
}
