//! [`Guard`]: the limiter of a policy, and what it decides on the values of a request.

use core::cell::Cell;
use std::sync::Arc;

use bytes::Bytes;
use tollgate_http::DenialKind;
use tollgate_http::middleware::{Limits, Options};
use tollgate_policy::{Asked, Key, RequestLimiter, Requests};
#[cfg(feature = "redis")]
use tollgate_redis::InFlight;

use crate::ask::{Ask, Decided};
use crate::counts::Counts;
use crate::fields::{Field, Fields, Values};
use crate::held::{Held, Token};
use crate::limiter::{Limiter, in_process};
use crate::trouble::Trouble;

/// Decides requests by a policy.
#[derive(Debug)]
pub(crate) struct Guard {
    limits: Limits<Limiter, Bytes>,
    requests: Arc<Requests>,
    pub(crate) fields: Fields,
    pub(crate) counts: Counts,
    /// `None` if the policy has no concurrency limit.
    held: Option<Held>,
}

/// The request lacks the field in this place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lacks {
    field: usize,
}

/// What the policy says of a request before its limits.
enum Before {
    Admitted,
    Denied,
    /// The keys of the dimensions that are asked; at least one.
    Asked(Vec<Option<Key>>),
    /// No limit is for it.
    Unlimited,
}

impl Guard {
    pub(crate) fn new(limiter: &RequestLimiter<Limiter>, fields: Fields, counts: Counts, held: Option<Held>) -> Self {
        let limits = Limits::new(Arc::clone(limiter.limiter()), Options::default());
        Self { limits, requests: Arc::clone(limiter.requests()), fields, counts, held }
    }

    pub(crate) fn limiter(&self) -> &Limiter {
        self.limits.limiter()
    }

    /// The field that a request lacks.
    pub(crate) fn lacked(&self, Lacks { field }: Lacks) -> &Field {
        &self.fields.list()[field]
    }

    /// Decides a request with these values: charges all dimensions that it is asked of, or none. Where a
    /// concurrency limit counts it, it is over at once.
    ///
    /// # Errors
    ///
    /// [`Lacks`] if it has no value for a key.
    pub(crate) async fn decide(&self, values: Values<'static>, ask: Ask) -> Result<Decided, Lacks> {
        match self.before(values, &ask)? {
            Before::Asked(keys) => Ok(self.at_once(&keys, ask).await),
            before => Ok(self.without_limits(&before, ask)),
        }
    }

    /// As [`decide`](Self::decide). Where a concurrency limit counts the request, it is in flight until
    /// the token is [released](Self::release), or its time is over.
    ///
    /// # Errors
    ///
    /// As [`decide`](Self::decide).
    pub(crate) async fn acquire(&self, values: Values<'static>, ask: Ask) -> Result<(Decided, Option<String>), Lacks> {
        let keys = match self.before(values, &ask)? {
            Before::Asked(keys) => keys,
            before => return Ok((self.without_limits(&before, ask), None)),
        };
        #[cfg(feature = "redis")]
        if let (Some(limiter), false) = (self.limiter().on_store(), ask.is_peek) {
            let (decided, in_flight) = self.limits.enter_on_store(limiter, &keys, ask.cost).await;
            self.counts.decided(&decided, &keys);
            return Ok((decided, in_flight.and_then(InFlight::into_token)));
        }
        let held = self.held.as_ref().filter(|_| !ask.is_peek).and_then(|held| Some((held, held.time(&keys)?)));
        Ok(match held {
            Some((held, time)) => self.hold(held, &keys, ask.cost, time),
            None => (self.at_once(&keys, ask).await, None),
        })
    }

    /// Releases the request in flight with this token. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// [`Trouble::StoreAway`] if the store does not say.
    pub(crate) async fn release(&self, token: &str) -> Result<bool, Trouble> {
        #[cfg(feature = "redis")]
        if let Some(limiter) = self.limiter().on_store() {
            return limiter.release(token).await.map_err(|_| Trouble::StoreAway);
        }
        Ok(self.held.as_ref().zip(Token::from_text(token)).is_some_and(|(held, token)| held.release(token)))
    }

    async fn at_once(&self, keys: &Vec<Option<Key>>, ask: Ask) -> Decided {
        self.held.iter().for_each(Held::end_overdue);
        let decided = self.limits.by_dimension(keys, ask.cost, ask.is_peek).await;
        if !ask.is_peek {
            self.counts.decided(&decided, keys);
        }
        decided
    }

    fn hold(&self, held: &Held, keys: &Vec<Option<Key>>, cost: u32, time: u64) -> (Decided, Option<String>) {
        held.end_overdue();
        // Before the request is charged, since there may be none.
        let Some(token) = Token::new() else {
            self.counts.result("undecided");
            return (Decided::denied(DenialKind::Undecided), None);
        };
        let (decided, in_flight) = self.limits.enter_by_dimension(keys, cost);
        self.counts.decided(&decided, keys);
        // One that counts in no limit takes no room: nothing else bounds them.
        let Some(in_flight) = in_flight else { return (decided, None) };
        held.hold(token, in_flight, time);
        (decided, Some(token.to_string()))
    }

    /// The decision of a request of which no limit is asked.
    fn without_limits(&self, before: &Before, ask: Ask) -> Decided {
        let (decided, result) = match before {
            Before::Admitted => (Decided::uncounted(), "admitted_by_rule"),
            Before::Denied => (Decided::denied(DenialKind::Rule), "denied_by_rule"),
            Before::Asked(_) | Before::Unlimited => (Decided::uncounted(), "unlimited"),
        };
        if !ask.is_peek {
            self.counts.result(result);
        }
        decided
    }

    fn before(&self, values: Values<'static>, ask: &Ask) -> Result<Before, Lacks> {
        let lacked = Cell::new(None);
        let may_lack = |field: usize| {
            lacked.set(lacked.get().or(Some(field)));
            ask.asks.is_some() || self.fields.list()[field].is_optional
        };
        let mut keys = match self.requests.ask(values, may_lack) {
            Asked::Admitted { .. } => return Ok(Before::Admitted),
            Asked::Denied { .. } => return Ok(Before::Denied),
            Asked::Lacks { field } => return Err(Lacks { field }),
            Asked::Limits(keys) => keys,
        };
        if let Some(asks) = &ask.asks {
            keys.iter_mut().zip(asks).filter(|(_, asks)| !**asks).for_each(|(key, _)| *key = None);
        }
        match lacked.get() {
            _ if keys.iter().any(Option::is_some) => Ok(Before::Asked(keys)),
            // It has none of the optional fields.
            Some(field) if ask.asks.is_none() => Err(Lacks { field }),
            _ => Ok(Before::Unlimited),
        }
    }

    /// The text of `/metrics`.
    pub(crate) fn metrics(&self) -> String {
        let unknown_tiers = self.requests.unknown_tiers();
        #[cfg(feature = "redis")]
        if let Some(limiter) = self.limiter().on_store() {
            return self.counts.text_on_store(unknown_tiers, &limiter.counts());
        }
        let held = self.held.as_ref().map(|held| (held.count(), held.overdue()));
        in_process(self.limiter())
            .map_or_else(String::new, |limiter| self.counts.text_in_process(unknown_tiers, &limiter.counts(), held))
    }
}
