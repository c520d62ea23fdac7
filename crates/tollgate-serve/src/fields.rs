//! The fields of a policy: the values that requests give, from which the keys are made.

use core::hash::{Hash, Hasher};
use core::net::IpAddr;
use std::borrow::Cow;

use http::HeaderName;
use tollgate::AsKey;
use tollgate_http::ClientAddress;
use tollgate_policy::Policy;

/// The longest value of a field, in bytes.
pub(crate) const MAX_VALUE: usize = 1024;

/// The key of Envoy's action `remote_address`.
const REMOTE_ADDRESS: &str = "remote_address";

/// The fields that the dimensions of a policy name, and the place of each dimension's fields.
#[derive(Debug)]
pub(crate) struct Fields {
    list: Vec<Field>,
    dimensions: Vec<Vec<usize>>,
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
    /// Whether values are addresses.
    pub(crate) is_address: bool,
    /// Whether a request may lack it.
    pub(crate) is_optional: bool,
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Text(Cow<'a, str>),
    /// The address of a client, or of its IPv6 network.
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

/// The type of the keys of each dimension. A request makes them of the values of its fields.
pub(crate) type Key = Vec<String>;

/// The values of a request, in the order of the fields; `None` for those that it lacks.
pub(crate) type Values<'a> = Vec<Option<Value<'a>>>;

/// The key of one dimension: the values of its fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfDimension<'a> {
    values: &'a [Option<Value<'a>>],
    fields: &'a [usize],
}

impl Fields {
    /// The fields of the policy, all of them required, in header fields of their names.
    pub(crate) fn of(policy: &Policy) -> Self {
        let mut list: Vec<Field> = Vec::new();
        let mut place = |name: &str| {
            list.iter().position(|field| field.name == name).unwrap_or_else(|| {
                list.push(Field::new(name));
                list.len() - 1
            })
        };
        let dimensions = policy.dimensions().iter().map(|dimension| dimension.key().map(&mut place).collect());
        Self { dimensions: dimensions.collect(), list }
    }

    /// The fields, in the order in which the policy names them first.
    pub(crate) fn list(&self) -> &[Field] {
        &self.list
    }

    /// The places of the fields of each dimension.
    pub(crate) fn dimensions(&self) -> &[Vec<usize>] {
        &self.dimensions
    }

    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.list.iter().position(|field| field.name == name)
    }

    /// The place of the field with this entry of a descriptor: that of its name. Envoy calls the
    /// client's address [`REMOTE_ADDRESS`], which is that of the only address among the fields.
    pub(crate) fn place_of_entry(&self, key: &str) -> Option<usize> {
        let mut addresses = self.list.iter().enumerate().filter(|(_, field)| field.is_address);
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

    /// The key of each dimension: none where a field has no value.
    pub(crate) fn keys<'a>(
        &'a self,
        values: &'a [Option<Value<'a>>],
    ) -> impl Iterator<Item = Option<OfDimension<'a>>> + 'a {
        self.dimensions.iter().map(move |fields| {
            let is_whole = fields.iter().all(|&field| values.get(field).is_some_and(Option::is_some));
            is_whole.then_some(OfDimension { values, fields })
        })
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
}

/// The values, apart from the request that gave them. A decision on a store may take its time, in
/// which the request is not kept.
pub(crate) fn apart(values: Values<'_>) -> Values<'static> {
    values.into_iter().map(|value| value.map(Value::into_owned)).collect()
}

impl Field {
    fn new(name: &str) -> Self {
        let header = HeaderName::try_from(format!("x-tollgate-{name}")).ok();
        Self { name: name.to_owned(), header, is_named: false, is_address: false, is_optional: false }
    }

    /// The value with this text.
    pub(crate) fn value<'a>(&self, text: impl Into<Cow<'a, str>>) -> Result<Value<'a>, Unfit> {
        let text = text.into();
        if text.is_empty() {
            return Err(Unfit::Empty);
        }
        if text.len() > MAX_VALUE {
            return Err(Unfit::TooLong);
        }
        if !self.is_address {
            return Ok(Value::Text(text));
        }
        let address: IpAddr = text.trim().parse().map_err(|_| Unfit::NoAddress)?;
        // The network of an IPv6 host, which can use any address of it.
        let key = ClientAddress::peer().key(address, core::iter::empty::<&[u8]>());
        key.map(Value::Address).map_err(|_| Unfit::NoAddress)
    }
}

#[cfg(feature = "redis")]
impl OfDimension<'_> {
    /// The key as all nodes of a store write it: the text of the only field, as a limiter of a program
    /// in Rust has it; of several fields, each text after its length in eight bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let texts = self.fields.iter().map(|&field| match self.values.get(field) {
            Some(Some(Value::Text(text))) => Cow::Borrowed(&**text),
            Some(Some(Value::Address(address))) => Cow::Owned(address.to_string()),
            // A dimension without all values has no key.
            _ => Cow::Borrowed(""),
        });
        if self.fields.len() == 1 {
            return texts.flat_map(|text| text.into_owned().into_bytes()).collect();
        }
        let mut bytes = Vec::new();
        for text in texts {
            bytes.extend((text.len() as u64).to_be_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes
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

impl AsKey<Key> for OfDimension<'_> {
    fn hash_key<H: Hasher>(&self, state: &mut H) {
        // A dimension has always as many, so that their number says nothing.
        for &field in self.fields {
            self.values.get(field).hash(state);
        }
    }
}
