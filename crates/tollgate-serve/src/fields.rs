//! The fields of a policy, and where requests have their values.

use std::borrow::Cow;

use http::HeaderName;
use tollgate_policy::{ClientAddress, Matcher, Policy, Value};

/// The longest value of a field, in bytes.
pub(crate) const MAX_VALUE: usize = 1024;

/// The key of Envoy's action `remote_address`.
const REMOTE_ADDRESS: &str = "remote_address";

/// The field with the address of the client.
const CLIENT: &str = "client";

/// The field with the path of the request.
pub(crate) const PATH: &str = "path";

/// What the name of a field begins with that is a header field of the request.
const HEADER: &str = "header.";

/// The fields that a policy names, and the parts of each dimension's keys.
#[derive(Debug)]
pub(crate) struct Fields {
    list: Vec<Field>,
    dimensions: Vec<Vec<Part>>,
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
    /// Whether the policy or the operator named the header field. Only then does `Check` read it.
    pub(crate) is_named: bool,
    /// The rules by which values are addresses, if they are.
    clients: Option<ClientAddress>,
    /// Whether a text that is no address is refused. Otherwise it stands for itself.
    is_strict: bool,
    /// Whether a request may lack it, and the dimensions with it are not asked then.
    pub(crate) is_optional: bool,
    /// Whether a key has it. Other fields are for matches and tiers alone.
    pub(crate) is_in_key: bool,
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

impl Fields {
    /// The fields of the policy, none of them optional, in header fields of their names.
    pub(crate) fn of(policy: &Policy) -> Self {
        let list = Matcher::new(policy).fields().iter().map(|name| Field::new(name, policy.client())).collect();
        let mut fields = Self { list, dimensions: Vec::new() };
        fields.set_dimensions(policy);
        fields
    }

    /// Takes the dimensions of the policy, which name no other fields.
    pub(crate) fn set_dimensions(&mut self, policy: &Policy) {
        let parts = |dimension: &tollgate_policy::Dimension| {
            let parts = dimension.parts();
            parts.filter_map(|(name, bits)| Some(Part { field: self.place(name)?, bits })).collect()
        };
        self.dimensions = policy.dimensions().iter().map(parts).collect();
        for part in self.dimensions.iter().flatten() {
            self.list[part.field].is_in_key = true;
        }
    }

    /// The field of the first network that is none: of no address, or of no bit, or of more than a key
    /// has.
    pub(crate) fn wrong_network(&self) -> Option<&str> {
        let mut parts = self.dimensions.iter().flatten();
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

    /// The fields, in the order of the policy's [`Matcher`].
    pub(crate) fn list(&self) -> &[Field] {
        &self.list
    }

    /// The parts of the keys of each dimension.
    pub(crate) fn dimensions(&self) -> &[Vec<Part>] {
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

    /// The names in quotes, for messages.
    pub(crate) fn in_words(&self) -> String {
        let names: Vec<String> = self.list.iter().map(|field| format!("{:?}", field.name)).collect();
        names.join(", ")
    }
}

/// The values, apart from the request that gave them. A decision on a store may take its time, in
/// which the request is not kept.
pub(crate) fn apart(values: Values<'_>) -> Values<'static> {
    values.into_iter().map(|value| value.map(Value::into_owned)).collect()
}

impl Field {
    fn new(name: &str, clients: &ClientAddress) -> Self {
        let of_request = name.strip_prefix(HEADER);
        let header = match of_request {
            Some(header) => HeaderName::try_from(header).ok(),
            None => HeaderName::try_from(format!("x-tollgate-{name}")).ok(),
        };
        Self {
            name: name.to_owned(),
            is_named: of_request.is_some() && header.is_some(),
            header,
            clients: (name == CLIENT).then(|| clients.clone()),
            is_strict: false,
            is_optional: false,
            is_in_key: false,
        }
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

    /// Words for the field, if a client is to send it in a header field that is named. How proxies send
    /// the others is a matter of the set-up.
    pub(crate) fn wanted(&self) -> Option<String> {
        let header = self.header.as_ref().filter(|_| self.is_named && !self.is_address())?;
        Some(format!("the header field {header}"))
    }

    /// The value with this text. A path is without its query.
    pub(crate) fn value<'a>(&self, text: impl Into<Cow<'a, str>>) -> Result<Value<'a>, Unfit> {
        let is_path = self.name == PATH;
        let text = match text.into() {
            text if !is_path => text,
            Cow::Borrowed(target) => without_query(target).into(),
            Cow::Owned(target) => without_query(&target).to_owned().into(),
        };
        if text.is_empty() {
            return Err(Unfit::Empty);
        }
        match self.clients.as_ref().map(|clients| Value::client(clients, text.as_bytes(), [""; 0])) {
            Some(Ok(client)) => Ok(client),
            Some(Err(_)) if self.is_strict => Err(Unfit::NoAddress),
            // A long path passes no rule by its length.
            _ if text.len() > MAX_VALUE && (self.is_in_key || !is_path) => Err(Unfit::TooLong),
            _ => Ok(Value::Text(text)),
        }
    }

    /// The value of a client by the text of its peer, and the header fields of the request.
    pub(crate) fn of_peer<'a>(
        &self,
        peer: &'a str,
        header: impl Fn(&str) -> Option<&'a String>,
    ) -> Result<Value<'a>, Unfit> {
        let line = self.clients.as_ref().and_then(ClientAddress::header).and_then(header);
        let client = self.clients.as_ref().map(|clients| Value::client(clients, peer.as_bytes(), line));
        match client {
            Some(Ok(client)) => Ok(client),
            _ => self.value(peer),
        }
    }
}

fn without_query(target: &str) -> &str {
    target.split(['?', '#']).next().unwrap_or_default()
}
