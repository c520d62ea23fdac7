//! The fields of a policy: the values that requests give, from which the keys are made.

use core::hash::{Hash, Hasher};
use core::net::{IpAddr, Ipv6Addr};
use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderName;
use tollgate::by_value;
use tollgate_address::{ClientAddress, ipv6_network};
use tollgate_policy::Policy;

/// The longest value of a field, in bytes.
pub(crate) const MAX_VALUE: usize = 1024;

/// The key of Envoy's action `remote_address`.
const REMOTE_ADDRESS: &str = "remote_address";

/// The field with the address of the client.
const CLIENT: &str = "client";

/// The fields that the dimensions of a policy name, and the parts of each dimension's keys.
#[derive(Debug)]
pub(crate) struct Fields {
    list: Vec<Field>,
    dimensions: Vec<Arc<[Part]>>,
}

/// A part of a key: the value of a field, or of an IPv6 address its network of so many bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    /// The place of the field.
    pub(crate) field: usize,
    bits: Option<u8>,
}

/// A field.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// The header field that `/auth_request` and `/authz` read. `None` if the name of the field can't
    /// be part of one, until one is named.
    pub(crate) header: Option<HeaderName>,
    /// Whether the operator named the header field. Only then does `Check` read it.
    pub(crate) is_named: bool,
    /// The rules by which values are addresses, if they are.
    clients: Option<ClientAddress>,
    /// Whether a text that is no address is refused. Otherwise it stands for itself.
    is_strict: bool,
    /// Whether a request may lack it.
    pub(crate) is_optional: bool,
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Text(Cow<'a, str>),
    /// The key of a client: its address, or that of its IPv6 network.
    Address(IpAddr),
}

/// Why a value is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfit {
    Empty,
    TooLong,
    NoAddress,
}

impl Unfit {
    pub(crate) const fn in_words(self) -> &'static str {
        match self {
            Self::Empty => "is empty",
            Self::TooLong => "is longer than 1024 bytes",
            Self::NoAddress => "is not an IP address",
        }
    }
}

/// The value of the field at this place is there twice, or not as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) field: usize,
}

/// The values of a request, in the order of the fields; `None` for those that it lacks.
pub(crate) type Values<'a> = Vec<Option<Value<'a>>>;

/// The key of one dimension: the values of its fields.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    /// Those of all fields, which the keys of a request share.
    values: Arc<[Option<Value<'static>>]>,
    parts: Arc<[Part]>,
}

/// The name of the field in a part of a key, and the bits if it is a network: `client/48`. More bits
/// than a number has are 0.
fn part_of(name: &str) -> (&str, Option<u8>) {
    match name.rsplit_once('/') {
        Some((field, bits)) if !bits.is_empty() && bits.bytes().all(|digit| digit.is_ascii_digit()) => {
            (field, Some(bits.parse().unwrap_or(0)))
        }
        _ => (name, None),
    }
}

impl Fields {
    /// The fields of the policy, all of them required, in header fields of their names.
    pub(crate) fn of(policy: &Policy) -> Self {
        let mut fields = Self { list: Vec::new(), dimensions: Vec::new() };
        fields.set_dimensions(policy);
        fields
    }

    /// Takes the dimensions of the policy. Fields that are known stay as they are.
    pub(crate) fn set_dimensions(&mut self, policy: &Policy) {
        let list = &mut self.list;
        let mut part = |name: &str| {
            let (name, bits) = part_of(name);
            let field = list.iter().position(|field| field.name == name).unwrap_or_else(|| {
                list.push(Field::new(name, policy.client()));
                list.len() - 1
            });
            Part { field, bits }
        };
        let dimensions = policy.dimensions().iter().map(|dimension| dimension.key().map(&mut part).collect());
        self.dimensions = dimensions.collect();
    }

    /// The field of the first network that is none: of no address, or of no bit, or of more than a key
    /// has.
    pub(crate) fn wrong_network(&self) -> Option<&str> {
        let mut parts = self.dimensions.iter().flat_map(|parts| &**parts);
        let is_wrong = |part: &&Part| {
            let most = self.list.get(part.field).and_then(|field| Some(field.clients.as_ref()?.prefix()));
            part.bits.is_some_and(|bits| !(1..=most.unwrap_or(0)).contains(&bits))
        };
        parts.find(is_wrong).and_then(|part| Some(self.list.get(part.field)?.name.as_str()))
    }

    /// Whether the values of the field of this name are addresses.
    pub(crate) fn is_address(&self, name: &str) -> bool {
        self.list.iter().any(|field| field.name == name && field.is_address())
    }

    /// The fields, in the order in which the policy names them first.
    pub(crate) fn list(&self) -> &[Field] {
        &self.list
    }

    /// The parts of the keys of each dimension.
    pub(crate) fn dimensions(&self) -> &[Arc<[Part]>] {
        &self.dimensions
    }

    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.list.iter().position(|field| field.name == name)
    }

    /// The place of the field with this entry of a descriptor: that of its name. Envoy calls the
    /// client's address [`REMOTE_ADDRESS`], which is that of the only address among the fields.
    pub(crate) fn place_of_entry(&self, key: &str) -> Option<usize> {
        let mut addresses = self.list.iter().enumerate().filter(|(_, field)| field.is_address());
        let only = || match (addresses.next(), addresses.next()) {
            (Some((place, _)), None) if key == REMOTE_ADDRESS => Some(place),
            _ => None,
        };
        self.place(key).or_else(only)
    }

    pub(crate) fn find(&mut self, name: &str) -> Option<&mut Field> {
        self.list.iter_mut().find(|field| field.name == name)
    }

    /// No values yet.
    pub(crate) fn none(&self) -> Values<'static> {
        vec![None; self.list.len()]
    }

    /// The key of each dimension: none where a field has no value, or an IPv4 address has no network.
    pub(crate) fn keys(&self, values: Values<'static>) -> impl Iterator<Item = Option<Key>> {
        let values: Arc<[_]> = values.into();
        self.dimensions.iter().map(move |parts| {
            let is_whole = parts.iter().all(|part| match (values.get(part.field), part.bits) {
                (Some(Some(value)), Some(bits)) => value.network(bits).is_some(),
                (Some(value), None) => value.is_some(),
                _ => false,
            });
            is_whole.then(|| Key { values: Arc::clone(&values), parts: Arc::clone(parts) })
        })
    }

    /// The values that `read` finds for the fields, apart from the request.
    ///
    /// # Errors
    ///
    /// `read` has an error.
    pub(crate) fn read<'a, E>(
        &self,
        read: impl Fn(&Field) -> Result<Option<Value<'a>>, E>,
    ) -> Result<Values<'static>, Malformed> {
        let values =
            self.list.iter().enumerate().map(|(place, field)| read(field).map_err(|_| Malformed { field: place }));
        values.collect::<Result<Values<'_>, _>>().map(apart)
    }

    /// The first required field without a value.
    pub(crate) fn missing(&self, values: &[Option<Value<'_>>]) -> Option<&Field> {
        self.list
            .iter()
            .zip(values)
            .find(|(field, value)| !field.is_optional && value.is_none())
            .map(|(field, _)| field)
    }

    /// The names in quotes, for messages.
    pub(crate) fn in_words(&self) -> String {
        let names: Vec<String> = self.list.iter().map(|field| format!("{:?}", field.name)).collect();
        names.join(", ")
    }
}

impl Value<'_> {
    /// The value, apart from the request that gave it.
    pub(crate) fn into_owned(self) -> Value<'static> {
        match self {
            Self::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Self::Address(address) => Value::Address(address),
        }
    }

    /// The first address of the network of so many bits; `None` for what is no IPv6 address.
    fn network(&self, bits: u8) -> Option<Ipv6Addr> {
        let Self::Address(IpAddr::V6(address)) = self else { return None };
        Some(ipv6_network(*address, bits))
    }
}

/// The values, apart from the request that gave them. A decision on a store may take its time, in
/// which the request is not kept.
pub(crate) fn apart(values: Values<'_>) -> Values<'static> {
    values.into_iter().map(|value| value.map(Value::into_owned)).collect()
}

impl Field {
    fn new(name: &str, clients: &ClientAddress) -> Self {
        let header = HeaderName::try_from(format!("x-tollgate-{name}")).ok();
        let clients = (name == CLIENT).then(|| clients.clone());
        Self { name: name.to_owned(), header, is_named: false, clients, is_strict: false, is_optional: false }
    }

    /// Whether values are addresses.
    pub(crate) const fn is_address(&self) -> bool {
        self.clients.is_some()
    }

    /// Has values be addresses, by these rules, and refuses other texts.
    pub(crate) fn set_address(&mut self, clients: ClientAddress) {
        self.clients = Some(clients);
        self.is_strict = true;
    }

    /// Words for the field, if a client is to send it in a header field that the operator named. How
    /// proxies send the others is a matter of the set-up.
    pub(crate) fn wanted(&self) -> Option<String> {
        let header = self.header.as_ref().filter(|_| self.is_named && !self.is_address())?;
        Some(format!("the header field {header}"))
    }

    /// The value with this text.
    pub(crate) fn value<'a>(&self, text: impl Into<Cow<'a, str>>) -> Result<Value<'a>, Unfit> {
        let text = text.into();
        if text.is_empty() {
            return Err(Unfit::Empty);
        }
        let key = self.clients.as_ref().map(|clients| clients.key_of_text(text.as_bytes(), [""; 0]));
        match key {
            Some(Ok(address)) => Ok(Value::Address(address)),
            Some(Err(_)) if self.is_strict => Err(Unfit::NoAddress),
            _ if text.len() > MAX_VALUE => Err(Unfit::TooLong),
            _ => Ok(Value::Text(text)),
        }
    }
}

#[cfg(feature = "redis")]
impl tollgate_redis::StoreKey for Key {
    /// The text of the only field, as a limiter of a program in Rust has it; of several fields, each
    /// text after its length in eight bytes.
    fn put(&self, bytes: &mut Vec<u8>) {
        let texts = self.parts.iter().map(|part| match (self.values.get(part.field), part.bits) {
            (Some(Some(value)), Some(bits)) => {
                Cow::Owned(value.network(bits).map_or_else(String::new, |it| it.to_string()))
            }
            (Some(Some(Value::Text(text))), None) => Cow::Borrowed(&**text),
            (Some(Some(Value::Address(address))), None) => Cow::Owned(address.to_string()),
            // A dimension without all values has no key.
            _ => Cow::Borrowed(""),
        });
        for text in texts {
            if self.parts.len() > 1 {
                bytes.extend((text.len() as u64).to_be_bytes());
            }
            bytes.extend(text.as_bytes());
        }
    }
}

impl Hash for Value<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Text(text) => text.hash(state),
            Self::Address(address) => address.hash(state),
        }
    }
}

by_value!(Key);

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
