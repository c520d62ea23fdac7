//! [`Test`]: whether the value of a field is one of those that a match names.

use core::fmt;
use core::net::IpAddr;
use std::borrow::Cow;
use std::collections::HashSet;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use matchit::Router;
use prefix_trie::joint::JointPrefixSet;

use crate::values::Value;

/// The values of a field, made ready to test by.
#[derive(Debug, Clone)]
pub(crate) enum Test {
    /// Exactly one of these texts.
    Texts(HashSet<Box<str>>),
    /// A path of one of these patterns.
    Paths(Vec<Router<()>>),
    /// A host: one of these names, or a name under one of these.
    Hosts { names: HashSet<Box<str>>, under: Vec<Box<str>> },
    /// A client in one of these networks.
    Networks(Box<JointPrefixSet<IpNet>>),
}

/// Why a value of a match is none.
///
/// ```
/// use tollgate_policy::{MatchError, Policy, PolicyProblem};
///
/// let dimension = "[[dimension]]\nname = \"login\"\nkey = [\"client\"]\nmatch = { path = \"login\" }\n";
/// let text = format!("{dimension}quota = [{{ limit = 5, per = \"1m\" }}]");
/// let error = Policy::from_toml(&text).unwrap_err();
/// let PolicyProblem::Match { error, .. } = error.problem() else { panic!("{error}") };
/// assert_eq!(**error, MatchError::Path { value: "login".into() });
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatchError {
    /// It is empty.
    Empty,
    /// It comes twice.
    Repeated {
        /// The value.
        value: String,
    },
    /// No path has this pattern.
    Path {
        /// The value.
        value: String,
    },
    /// No method has this name.
    Method {
        /// The value.
        value: String,
    },
    /// No host has this name.
    Host {
        /// The value.
        value: String,
    },
    /// It is no network.
    Network {
        /// The value.
        value: String,
    },
    /// The network has bits after its prefix.
    BitsAfterPrefix {
        /// The value.
        value: String,
        /// The network of this prefix.
        network: String,
    },
    /// The network overlaps with another of the list.
    Overlap {
        /// The value.
        value: String,
        /// The other network.
        other: String,
    },
}

impl fmt::Display for MatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a value is empty: write one, or leave the field out"),
            Self::Repeated { value } => write!(f, "{value:?} comes twice: leave one out"),
            Self::Path { value } => write!(
                f,
                "{value:?} is no pattern of a path: write one that begins with / and does not end with it, such as \"/login\", \
                 \"/users/{{id}}\" or \"/static/{{*rest}}\""
            ),
            Self::Method { value } => write!(f, "{value:?} is no method: write one in upper case, such as \"POST\""),
            Self::Host { value } => write!(
                f,
                "{value:?} is no host: write a name without a port, such as \"example.com\", or \"*.example.com\" for \
                 all names under it"
            ),
            Self::Network { value } => write!(
                f,
                "{value:?} is no network: write an address such as \"192.0.2.7\", or a network such as \
                 \"192.0.2.0/24\" or \"2001:db8::/32\""
            ),
            Self::BitsAfterPrefix { value, network } => {
                write!(f, "{value:?} has bits after its prefix: write \"{network}\", or one address alone")
            }
            Self::Overlap { value, other } => {
                write!(f, "{value:?} overlaps with \"{other}\" of the same list: leave one out")
            }
        }
    }
}

impl core::error::Error for MatchError {}

impl Test {
    /// A test of a field by these values. An error is that of the value in this place.
    pub(crate) fn new(field: &str, values: &[Box<str>]) -> Result<Self, (usize, MatchError)> {
        if let Some(at) = values.iter().position(|value| value.trim().is_empty()) {
            return Err((at, MatchError::Empty));
        }
        match field {
            "client" => networks(values),
            "path" => each(values, path).map(Self::Paths),
            "host" => hosts(values),
            "method" => texts(values, is_method, |value| MatchError::Method { value }),
            _ => texts(values, |_| true, |value| MatchError::Repeated { value }),
        }
    }

    /// Whether the value is one of them.
    pub(crate) fn holds(&self, value: &Value<'_>) -> bool {
        match (self, value) {
            (Self::Networks(networks), Value::Client { address, .. }) => {
                networks.get_lpm(&IpNet::from(*address)).is_some()
            }
            (Self::Texts(texts), Value::Text(text)) => texts.contains(&**text),
            (Self::Paths(patterns), Value::Text(path)) => {
                let path = normal_path(path);
                patterns.iter().any(|pattern| pattern.at(&path).is_ok())
            }
            (Self::Hosts { names, under }, Value::Text(host)) => {
                let host = host_name(host);
                let is_under = |under: &str| host.strip_suffix(under).is_some_and(|rest| !rest.is_empty());
                names.contains(&*host) || under.iter().any(|under| is_under(under))
            }
            // A client that is no address is in no network.
            _ => false,
        }
    }
}

fn each<T>(values: &[Box<str>], make: impl Fn(&str) -> Result<T, MatchError>) -> Result<Vec<T>, (usize, MatchError)> {
    values.iter().enumerate().map(|(at, value)| make(value).map_err(|error| (at, error))).collect()
}

fn texts(
    values: &[Box<str>],
    is_one: fn(&str) -> bool,
    error: fn(String) -> MatchError,
) -> Result<Test, (usize, MatchError)> {
    let mut texts = HashSet::new();
    for (at, value) in values.iter().enumerate() {
        if !is_one(value) {
            return Err((at, error(value.to_string())));
        }
        if !texts.insert(value.clone()) {
            return Err((at, MatchError::Repeated { value: value.to_string() }));
        }
    }
    Ok(Test::Texts(texts))
}

fn is_method(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_' | b'0'..=b'9'))
}

fn path(text: &str) -> Result<Router<()>, MatchError> {
    let mut router = Router::new();
    // A slash that ends a path does not count.
    let can_match = text.starts_with('/') && (text == "/" || !text.ends_with('/')) && !text.contains(['?', '#']);
    if can_match && router.insert(text, ()).is_ok() {
        Ok(router)
    } else {
        Err(MatchError::Path { value: text.to_owned() })
    }
}

/// The path of a target in its normal form: without its query, decoded, without `.`, `..`, empty
/// segments and a slash at the end. So a client can't ask for a path in a form that no match names.
fn normal_path(target: &str) -> Cow<'_, str> {
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let is_normal = !path.contains('%') && !path.contains("//") && !path.contains("/.");
    if is_normal && path.starts_with('/') && (path.len() == 1 || !path.ends_with('/')) {
        return path.into();
    }
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match &*decoded(segment) {
            "" | "." => {}
            ".." => drop(segments.pop()),
            decoded => segments.push(decoded.to_owned()),
        }
    }
    format!("/{}", segments.join("/")).into()
}

/// A segment without its escapes; as it is, if it then had a slash or no text.
fn decoded(segment: &str) -> Cow<'_, str> {
    let decoded = percent_encoding::percent_decode_str(segment).decode_utf8();
    decoded.ok().filter(|decoded| !decoded.contains('/')).unwrap_or(Cow::Borrowed(segment))
}

fn hosts(values: &[Box<str>]) -> Result<Test, (usize, MatchError)> {
    let (mut names, mut under) = (HashSet::new(), Vec::new());
    for (at, value) in values.iter().enumerate() {
        let (name, is_under) = value.strip_prefix('*').map_or((&**value, false), |name| (name, true));
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        let is_address = || name.starts_with('[') && name[1..].trim_end_matches(']').parse::<IpAddr>().is_ok();
        let is_host = if is_under {
            name.len() > 1 && name.starts_with('.') && is_name(name)
        } else {
            is_name(name) || is_address()
        };
        if !is_host {
            return Err((at, MatchError::Host { value: value.to_string() }));
        }
        let name: Box<str> = name.to_ascii_lowercase().into();
        if is_under {
            under.push(name);
        } else {
            names.insert(name);
        }
    }
    Ok(Test::Hosts { names, under })
}

/// A host in lower case, without its port.
fn host_name(host: &str) -> String {
    let end = match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') => colon,
        _ => host.len(),
    };
    host[..end].trim_end_matches('.').to_ascii_lowercase()
}

fn networks(values: &[Box<str>]) -> Result<Test, (usize, MatchError)> {
    let mut networks = JointPrefixSet::new();
    for (at, value) in values.iter().enumerate() {
        let network = network(value).map_err(|error| (at, error))?;
        let inside = networks.children(&network).next();
        if let Some(other) = networks.get_lpm(&network).or(inside) {
            return Err((at, MatchError::Overlap { value: value.to_string(), other: other.to_string() }));
        }
        networks.insert(network);
    }
    Ok(Test::Networks(networks.into()))
}

/// The network with this text. IPv4 in IPv6 is IPv4.
fn network(text: &str) -> Result<IpNet, MatchError> {
    let network = match text.parse::<IpAddr>() {
        Ok(address) => IpNet::from(address),
        Err(_) => text.parse().map_err(|_| MatchError::Network { value: text.to_owned() })?,
    };
    let network = match network {
        IpNet::V6(v6) => folded(v6).map_or(network, IpNet::V4),
        IpNet::V4(_) => network,
    };
    let whole = network.trunc();
    if whole != network {
        return Err(MatchError::BitsAfterPrefix { value: text.to_owned(), network: whole.to_string() });
    }
    Ok(network)
}

/// The IPv4 network in `::ffff:0:0/96`.
fn folded(network: Ipv6Net) -> Option<Ipv4Net> {
    let address = network.addr().to_ipv4_mapped()?;
    Ipv4Net::new(address, network.prefix_len().checked_sub(96)?).ok()
}
