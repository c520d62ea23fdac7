//! [`Value`] and [`Key`]: the values of a request, and the keys that they make.

use core::hash::{Hash, Hasher};
use core::net::{IpAddr, Ipv6Addr};
use std::borrow::Cow;
use std::sync::Arc;

use tollgate::{AsKey, Tier};
use tollgate_address::{ClientAddress, ClientError, ipv6_network};

/// The value of a field of a request.
///
/// ```
/// use tollgate_policy::{ClientAddress, Value};
///
/// let client = Value::client(&ClientAddress::peer(), b"2001:db8::7", [""; 0])?;
/// assert_eq!(client.to_string(), "2001:db8::");
/// assert_eq!(Value::from("alice").to_string(), "alice");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// A client.
    Client {
        /// Its address, by which matches find it.
        address: IpAddr,
        /// Its [key](ClientAddress::key), by which limits count it.
        key: IpAddr,
    },
}

impl<'a> Value<'a> {
    /// A client by the text of its peer and the lines of the header field, as
    /// [`ClientAddress::address_of_text`] reads them.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if there is no address.
    pub fn client<L>(clients: &ClientAddress, peer: &[u8], lines: L) -> Result<Self, ClientError>
    where
        L: IntoIterator<Item: AsRef<[u8]>, IntoIter: DoubleEndedIterator>,
    {
        clients.address_of_text(peer, lines).map(|address| Self::address(clients, address))
    }

    /// The client with this address.
    #[must_use]
    pub fn address(clients: &ClientAddress, address: IpAddr) -> Self {
        Self::Client { address, key: clients.key_of(address) }
    }

    /// The value, apart from the request that gave it.
    #[must_use]
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Self::Client { address, key } => Value::Client { address, key },
        }
    }

    /// The text by which matches find it.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Client { .. } => None,
        }
    }

    /// The first address of the network of so many bits; `None` for what is no IPv6 client.
    fn network(&self, bits: u8) -> Option<Ipv6Addr> {
        let Self::Client { key: IpAddr::V6(address), .. } = self else { return None };
        Some(ipv6_network(*address, bits))
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

/// The value as a part of a key: a text, or the key of a client.
impl core::fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Client { key, .. } => key.fmt(f),
        }
    }
}

/// A part of a key: the value of a field, or of an IPv6 client its network of so many bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// The place of the field.
    pub(crate) field: usize,
    pub(crate) bits: Option<u8>,
}

impl Part {
    /// The name of the field in a part of a key, and the bits if it is a network: `client/48`. More
    /// bits than a number has are 0.
    pub(crate) fn parse(name: &str) -> (&str, Option<u8>) {
        match name.rsplit_once('/') {
            Some((field, bits)) if !bits.is_empty() && bits.bytes().all(|digit| digit.is_ascii_digit()) => {
                (field, Some(bits.parse().unwrap_or(0)))
            }
            _ => (name, None),
        }
    }

    /// Whether the values have this part; `None` if an IPv4 client has no such network.
    pub(crate) fn is_in(self, values: &[Option<Value<'_>>]) -> Option<bool> {
        match (values.get(self.field).and_then(Option::as_ref), self.bits) {
            (None, _) => Some(false),
            (Some(_), None) => Some(true),
            (Some(value), Some(bits)) => value.network(bits).map(|_| true),
        }
    }
}

/// The key of one dimension of a request: the values of its fields, and its tier. A
/// [`RequestLimiter`](crate::RequestLimiter) makes it.
///
/// ```
/// use tollgate_policy::{Asked, Key, Policy};
///
/// let text = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]";
/// let limiter = Policy::from_toml(text)?.request_limiter()?;
/// let Asked::Limits(keys) = limiter.ask(vec![Some("alice".into())]) else { panic!("no rule") };
/// let key: &Key = keys[0].as_ref().expect("the user is there");
/// assert_eq!(key.tier_place(), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Key {
    /// Those of all fields, which the keys of a request share.
    pub(crate) values: Arc<[Option<Value<'static>>]>,
    pub(crate) parts: Arc<[Part]>,
    pub(crate) tier: Tier,
    /// The place of the tier in the dimension.
    pub(crate) place: Option<usize>,
}

impl Key {
    /// The parts of the key as texts, one for each field of the dimension.
    ///
    /// ```
    /// use tollgate_policy::{Asked, Policy};
    ///
    /// let text = "[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]";
    /// let limiter = Policy::from_toml(text)?.request_limiter()?;
    /// let Asked::Limits(keys) = limiter.ask(vec![Some("alice".into())]) else { panic!("no rule") };
    /// assert_eq!(keys[0].as_ref().unwrap().texts().collect::<Vec<_>>(), ["alice"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn texts(&self) -> impl ExactSizeIterator<Item = Cow<'_, str>> {
        self.parts.iter().map(|part| match (self.values.get(part.field), part.bits) {
            (Some(Some(value)), Some(bits)) => {
                Cow::Owned(value.network(bits).map_or_else(String::new, |it| it.to_string()))
            }
            (Some(Some(Value::Text(text))), None) => Cow::Borrowed(&**text),
            (Some(Some(Value::Client { key, .. })), None) => Cow::Owned(key.to_string()),
            // A dimension without all values has no key.
            _ => Cow::Borrowed(""),
        })
    }

    /// The place of the key's tier among those of its dimension; `None` in the dimension's own.
    #[must_use]
    pub const fn tier_place(&self) -> Option<usize> {
        self.place
    }
}

impl Hash for Value<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Text(text) => text.hash(state),
            Self::Client { key, .. } => key.hash(state),
        }
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // A dimension has always as many, so that their number says nothing.
        for part in &*self.parts {
            let value = self.values.get(part.field);
            match part.bits {
                None => value.hash(state),
                Some(bits) => value.and_then(|value| value.as_ref()?.network(bits)).hash(state),
            }
        }
    }
}

impl AsKey<Self> for Key {
    fn hash_key<H: Hasher>(&self, state: &mut H) {
        self.hash(state);
    }

    fn tier(&self) -> Tier {
        self.tier
    }
}
