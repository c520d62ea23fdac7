//! The keys of a request as a policy file names them.

use core::fmt;
use std::borrow::Cow;
use std::sync::Arc;

use tollgate_policy::{Asked, Key, RequestLimiter, Requests, Value};

use super::super::key_error::KeyError;
use super::client_ip::ClientIp;
use super::extractor::Extractor;
use super::framework::Framework;
use super::header::Header;

/// The keys of a request as a policy file names them, for the limiter of a [`RequestLimiter`]. It heeds
/// the rules, the matches and the tiers of the file.
///
/// It finds the fields `client`, `method`, `path` (without the query), `host` and `header.` with the
/// name of a header field. Any other field is a matter of the program: [`field`](Self::field).
///
/// A request that a rule admits, or that no limit is for, is skipped. One that a rule denies is
/// answered with 403. One that lacks a field of a limit that it is asked of has no key.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_http::middleware::{Framework, PolicyKey};
/// use tollgate_policy::{Policy, RequestLimiter};
///
/// fn keys<W: Framework<Name: Send + Sync>>(limiter: &RequestLimiter) -> PolicyKey<W> {
///     PolicyKey::new(limiter).field("tenant", |head| {
///         let path = W::path(W::uri(head));
///         path.split('/').nth(1).map(str::to_owned)
///     })
/// }
/// ```
pub struct PolicyKey<W: Framework> {
    requests: Arc<Requests>,
    /// Of each field, in the order of the policy.
    sources: Arc<[Source<W>]>,
    client: ClientIp<W>,
    optional: Arc<[bool]>,
}

/// Where the value of a field is found.
enum Source<W: Framework> {
    Client,
    Method,
    Path,
    Host,
    Header(Header<W::Name>),
    Function(Arc<Function<W>>),
    /// The program has not said it.
    Unknown,
}

type Function<W> = dyn Fn(&<W as Framework>::Head<'_>) -> Option<String> + Send + Sync;

impl<W: Framework> PolicyKey<W> {
    /// The keys for this limiter.
    #[must_use]
    pub fn new<L>(limiter: &RequestLimiter<L>) -> Self {
        let requests = Arc::clone(limiter.requests());
        let source = |field: &String| match field.as_str() {
            "client" => Source::Client,
            "method" => Source::Method,
            "path" => Source::Path,
            "host" => Source::Host,
            field => {
                let name = field.strip_prefix("header.").and_then(W::name);
                name.map_or(Source::Unknown, |name| Source::Header(Header::new(name)))
            }
        };
        let sources = requests.fields().iter().map(source).collect();
        let optional = vec![false; requests.fields().len()].into();
        Self { client: ClientIp::new(requests.client().clone()), requests, sources, optional }
    }

    /// The value of a field, by a function of the head; `None` for a request that lacks it. A name that
    /// the policy does not have is left alone.
    #[must_use]
    pub fn field(self, name: &str, value: impl Fn(&W::Head<'_>) -> Option<String> + Send + Sync + 'static) -> Self {
        let mut value = Some(Source::Function(Arc::new(value)));
        let named = self.requests.fields().iter().zip(self.sources.iter());
        let sources = named.map(|(field, source)| match value.take_if(|_| field == name) {
            Some(value) => value,
            None => source.clone(),
        });
        Self { sources: sources.collect(), ..self }
    }

    /// Requests may lack this field: then the dimensions with it are not asked.
    #[must_use]
    pub fn optional(self, name: &str) -> Self {
        let fields = self.requests.fields().iter().zip(self.optional.iter());
        let optional = fields.map(|(field, optional)| *optional || field == name).collect();
        Self { optional, ..self }
    }

    /// Finds the peer by this function, as [`ClientIp::peer_from`] does.
    #[must_use]
    pub fn peer_from(
        self,
        peer: impl Fn(&W::Connection) -> Option<tollgate_address::Peer> + Send + Sync + 'static,
    ) -> Self {
        Self { client: self.client.peer_from(peer), ..self }
    }
}

impl<W: Framework<Name: Send + Sync>> PolicyKey<W> {
    fn value<'h>(&self, source: &Source<W>, head: &'h W::Head<'_>) -> Result<Option<Value<'h>>, KeyError> {
        let text = |text: Option<&'h str>| Ok(text.filter(|text| !text.is_empty()).map(Value::from));
        match source {
            Source::Client => match self.client.address(head) {
                Ok(address) => Ok(Some(Value::address(self.requests.client(), address))),
                Err(error) => lacking(Err(error)),
            },
            Source::Method => text(Some(W::method(head))),
            Source::Path => text(Some(W::path(W::uri(head)))),
            Source::Host => text(W::host(head)),
            Source::Header(header) => lacking(header.text::<W>(head).map(Value::from)),
            Source::Function(value) => Ok(value(head).map(Value::from)),
            Source::Unknown => Err(KeyError::not_provided().closed()),
        }
    }

    /// What the policy asks of the request.
    fn asked(&self, head: &W::Head<'_>) -> Result<Asked, KeyError> {
        let values = self.sources.iter().map(|source| self.value(source, head));
        Ok(self.requests.ask(values.collect::<Result<_, _>>()?, |field| self.optional[field]))
    }

    fn in_words(&self, field: usize) -> Option<Cow<'_, str>> {
        match self.sources.get(field)? {
            Source::Client => Some(super::CLIENT_IN_WORDS.into()),
            Source::Header(header) => Extractor::<W>::wants(header),
            _ => Some(format!("the field {}", self.requests.fields()[field]).into()),
        }
    }
}

/// A value that a request may lack.
fn lacking<T>(found: Result<T, KeyError>) -> Result<Option<T>, KeyError> {
    match found {
        Err(error) if error.is_missing() => Ok(None),
        found => found.map(Some),
    }
}

impl<W: Framework<Name: Send + Sync>> Extractor<W> for PolicyKey<W> {
    type Key = Vec<Option<Key>>;

    fn extract(&self, head: &W::Head<'_>) -> Result<Self::Key, KeyError> {
        match self.asked(head)? {
            Asked::Limits(keys) if keys.iter().any(Option::is_some) => Ok(keys),
            Asked::Admitted { .. } | Asked::Limits(_) => Err(KeyError::skipped()),
            Asked::Denied { .. } => Err(KeyError::by_rule()),
            // The peer is a matter of the server, and so are the fields of the program.
            Asked::Lacks { field } => match self.sources[field] {
                Source::Client | Source::Function(_) => Err(KeyError::not_provided()),
                _ => Err(KeyError::not_sent()),
            },
        }
    }

    fn lacks(&self, head: &W::Head<'_>, error: KeyError) -> Option<Cow<'_, str>> {
        match self.asked(head) {
            Ok(Asked::Lacks { field }) => self.in_words(field),
            _ if error == KeyError::by_rule() => None,
            _ => {
                let place = self.sources.iter().position(|source| self.value(source, head).is_err())?;
                self.in_words(place)
            }
        }
    }
}

impl<W: Framework> Clone for PolicyKey<W> {
    fn clone(&self) -> Self {
        Self {
            requests: Arc::clone(&self.requests),
            sources: Arc::clone(&self.sources),
            client: self.client.clone(),
            optional: Arc::clone(&self.optional),
        }
    }
}

impl<W: Framework> Clone for Source<W> {
    fn clone(&self) -> Self {
        match self {
            Self::Client => Self::Client,
            Self::Method => Self::Method,
            Self::Path => Self::Path,
            Self::Host => Self::Host,
            Self::Header(header) => Self::Header(header.clone()),
            Self::Function(value) => Self::Function(Arc::clone(value)),
            Self::Unknown => Self::Unknown,
        }
    }
}

impl<W: Framework> fmt::Debug for PolicyKey<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyKey").field("requests", &self.requests).finish_non_exhaustive()
    }
}
