//! What the limiters share: from keys to a call of the script, and from its reply to a decision.

use core::time::Duration;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use redis::{Cmd, Value};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tollgate::{Admission, Algorithm, AtKeyCap, Decision, Denial, Quota, QuotaStatus, Status, format_duration};

use crate::asked::{Asked, Request};
use crate::cache::Cache;
use crate::call_error::CallError;
use crate::counts::Counters;
use crate::decision::{Decided, DecidedBy};
use crate::digest::KeyDigest;
use crate::error::{BuildError, Cause, StoreError, Unavailable};
use crate::failure::{Fallback, OnFailure};
use crate::lease::Leases;
use crate::plan::{Dimension, Given, Shared, plan};
use crate::receipt::{Charges, Receipt};
use crate::reply::{Denied, Left, Reply};
use crate::script::Argument;
use crate::store::{Store, check_word};
use crate::task::{in_task, stopped};
use crate::waiters::{Answer, Flights};

/// What a limiter does besides asking.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Settings {
    /// The slots for cached denials.
    pub(crate) cached_denials: usize,
    /// The most permits of a lease, and the slots for leases.
    pub(crate) leases: (u32, usize),
    pub(crate) on_failure: OnFailure,
    /// The most keys of the local limiter, and its answer to a new key then.
    pub(crate) local_keys: (Option<usize>, AtKeyCap),
}

#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) store: Store,
    name: String,
    /// The dimensions, and then the tiers of them.
    pub(crate) dimensions: Vec<Dimension>,
    /// How many are dimensions.
    pub(crate) own: usize,
    /// Tells receipts of this limiter from others.
    pub(crate) id: u64,
    pub(crate) flights: Flights,
    pub(crate) counters: Counters,
    pub(crate) cache: Cache,
    /// The dimensions that were warned of, as bits.
    warned: AtomicU64,
    pub(crate) leases: Arc<Leases>,
    fallback: Fallback,
    /// How many requests have had a number to leave by.
    pub(crate) entries: AtomicU64,
}

impl Engine {
    /// Decides a request by a task. Without its answer, the limiter does what it does then.
    pub(crate) async fn decide_by_task(
        self: &Arc<Self>,
        asked: &[Asked],
        request: Request,
        work: impl Future<Output = Result<Decided<Status>, StoreError>> + Send + 'static,
    ) -> Result<Decided<Status>, StoreError> {
        let (sender, receiver) = oneshot::channel();
        let engine = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(answer) = sender.send(work.await) {
                engine.abandon(request, answer.map(decision_of));
            }
        });
        let answer = receiver.await.unwrap_or_else(|_| Err(self.undecided(request, 1, stopped())));
        answer.or_else(|error| self.without_the_store(asked, request, error))
    }
}

impl Engine {
    pub(crate) fn new(
        store: &Store,
        name: &str,
        dimensions: Vec<Given>,
        tag: Option<&str>,
        settings: Settings,
    ) -> Result<Arc<Self>, BuildError> {
        tag.map_or(Ok(()), check_word)?;
        let dimensions = plan(dimensions, Shared { prefix: &store.inner.prefix, tag })?;
        let all: Vec<Quota> = dimensions.iter().flat_map(|dimension| dimension.quotas.iter().copied()).collect();
        Ok(Arc::new(Self {
            store: store.clone(),
            name: name.to_owned(),
            id: RandomState::new().hash_one(name),
            flights: Flights::default(),
            counters: Counters::default(),
            cache: Cache::new(settings.cached_denials),
            warned: AtomicU64::new(0),
            entries: AtomicU64::new(0),
            leases: Arc::new(Leases::new(settings.leases.0, settings.leases.1, &all)?),
            fallback: Fallback::new(settings.on_failure, settings.local_keys, &dimensions)?,
            own: dimensions.iter().filter(|it| it.tier.is_none()).count(),
            dimensions,
        }))
    }

    pub(crate) fn digest(&self, dimension: usize, key: &[u8]) -> KeyDigest {
        let secret = &self.store.inner.secret;
        let (name, its) = (self.name.as_bytes(), self.dimensions.get(dimension));
        let of_dimension = its.map_or(name, |it| it.name.as_bytes());
        match its.and_then(|it| it.tier.as_ref()) {
            None => secret.digest([name, of_dimension, key]),
            Some(tier) => secret.digest([name, of_dimension, tier.name.as_bytes(), key]),
        }
    }

    /// The keys of a request, without the dimensions in which it has none.
    pub(crate) fn asked(&self, keys: &[Option<&[u8]>]) -> Result<Vec<Asked>, StoreError> {
        self.asked_in(keys, &[])
    }

    /// The same, with keys in these tiers.
    pub(crate) fn asked_in(&self, keys: &[Option<&[u8]>], tiers: &[Option<usize>]) -> Result<Vec<Asked>, StoreError> {
        let wrong = || StoreError::WrongKeys { keys: keys.len(), dimensions: self.own };
        let mut asked = Vec::with_capacity(keys.len());
        for (dimension, key) in keys.iter().enumerate() {
            let Some(key) = key else { continue };
            let place = self.place(dimension, tiers.get(dimension).copied().flatten()).ok_or_else(wrong)?;
            asked.push((place, self.digest(place, key)));
        }
        if keys.len() == self.own && !asked.is_empty() { Ok(asked) } else { Err(wrong()) }
    }

    /// The place of a dimension, or of its tier in this place.
    pub(crate) fn place(&self, dimension: usize, tier: Option<usize>) -> Option<usize> {
        let Some(tier) = tier else { return (dimension < self.own).then_some(dimension) };
        let is_it = |it: &Dimension| it.tier.as_ref().is_some_and(|of| (of.dimension, of.place) == (dimension, tier));
        self.dimensions.iter().position(is_it)
    }

    pub(crate) async fn decide(
        self: &Arc<Self>,
        asked: &[Asked],
        request: Request,
    ) -> Result<Decided<Status>, StoreError> {
        self.check_cost(asked, request.cost)?;
        if !request.charges || request.tells || request.cost == 0 {
            return self.decide_alone(asked, request).await;
        }
        if let Some(denial) = self.cached_denial(asked, request.cost) {
            return Ok(bare(denied_by_cache(denial)));
        }
        if let Some(taking) = self.begin_taking(asked, request.cost) {
            return self.take(asked, request.cost, taking).await;
        }
        // Each place of a queue has a delay of its own.
        let has_queue = |&(dimension, _): &Asked| {
            let quotas = &self.dimensions[dimension].quotas;
            quotas.iter().any(|quota| quota.algorithm() == Algorithm::LeakyQueue)
        };
        if asked.iter().any(has_queue) {
            return self.decide_alone(asked, request).await;
        }
        self.decide_together(asked, request.cost).await.map(bare)
    }

    /// Decides a request, with what is left as far as it is known, and without a call if possible.
    pub(crate) async fn decide_known(
        self: &Arc<Self>,
        asked: &[Asked],
        cost: u32,
    ) -> Result<Decided<Status>, StoreError> {
        self.check_cost(asked, cost)?;
        if cost > 0 {
            if let Some(status) = self.spend_status(asked, cost) {
                return Ok(status);
            }
            if let Some(denial) = self.cached_denial(asked, cost) {
                return Ok(self.known_denial(asked, denial, cost));
            }
            if let Some(taking) = self.begin_taking(asked, cost) {
                return self.take(asked, cost, taking).await;
            }
        }
        self.decide_alone(asked, Request::acquire(cost).telling()).await
    }

    pub(crate) fn check_cost(&self, asked: &[Asked], cost: u32) -> Result<(), StoreError> {
        let limit = asked.iter().map(|&(dimension, _)| self.dimensions[dimension].least).min().unwrap_or(0);
        if cost > limit { Err(StoreError::CostExceedsLimit { cost, limit }) } else { Ok(()) }
    }

    /// A cached denial knows the quota that decides its wait.
    pub(crate) fn known_denial(&self, asked: &[Asked], denial: Denial, cost: u32) -> Decided<Status> {
        let (wait, dimension, quota) = (denial.retry_after(), denial.dimension(), denial.quota());
        let limit = Dimension::told(&self.dimensions, asked, dimension)
            .and_then(|its| its.quotas.get(quota))
            .map_or(0, Quota::limit);
        // More than that would admit it.
        let left = QuotaStatus::new((dimension, quota), (limit, cost.saturating_sub(1), wait, wait));
        denied_by_cache(denial).map(|decision| Status::new(decision, cost, [left]))
    }

    /// The denial of a request, if it is certain without the store.
    pub(crate) fn cached_denial(&self, asked: &[Asked], cost: u32) -> Option<Denial> {
        let denial = self.cache.find(asked, cost)?;
        self.counters.denied_by_cache.add();
        Some(denial)
    }

    /// Decides one request by a call of its own.
    pub(crate) async fn decide_alone(
        self: &Arc<Self>,
        asked: &[Asked],
        request: Request,
    ) -> Result<Decided<Status>, StoreError> {
        let (engine, its) = (Arc::clone(self), asked.to_vec());
        let work = async move {
            let answer = engine.ask(&its, request, 1).await;
            let (sent_at, reply) = answer.map_err(|error| engine.undecided(request, 1, error))?;
            Ok(engine.status(&its, request, sent_at, &reply))
        };
        self.decide_by_task(asked, request, work).await
    }

    /// Decides so many requests of the same cost by one call, in the task of the caller.
    pub(crate) async fn decide_many(&self, asked: &[Asked], cost: u32, times: usize) -> Vec<Answer> {
        let request = Request::acquire(cost);
        let reply = self.ask(asked, request, times as u64).await;
        let reply = reply.map_err(|error| self.undecided(request, times as u64, error));
        let each = (0..times as u64).map(|number| {
            let (sent_at, reply) = reply.as_ref().map_err(StoreError::clone)?;
            Ok(self.decision(asked, request, (*sent_at, reply), number < reply.granted))
        });
        each.collect()
    }

    /// The answer to a single request, noted.
    pub(crate) fn status(&self, asked: &[Asked], request: Request, sent_at: Instant, reply: &Reply) -> Decided<Status> {
        let decided = self.decision(asked, request, (sent_at, reply), reply.granted > 0);
        let quotas = if request.tells { self.quotas(asked, &reply.left) } else { vec![] };
        decided.map(|decision| Status::new(decision, request.cost, quotas))
    }

    /// Counts a decision of the store, and keeps a denial.
    fn note(&self, asked: &[Asked], request: Request, sent_at: Instant, decision: Decision) {
        match decision {
            _ if !request.charges => {}
            Decision::Admitted(_) => self.counters.admitted.add(),
            Decision::Denied(denial) => {
                self.counters.denied.add();
                self.cache.keep(asked, request.cost, sent_at, denial);
            }
        }
    }

    /// Counts so many requests that the store did not decide.
    pub(crate) fn undecided(&self, request: Request, requests: u64, error: StoreError) -> StoreError {
        if let (StoreError::Unavailable(unavailable), true) = (&error, request.charges) {
            self.counters.unavailable.add_many(requests);
            if unavailable.is_perhaps_charged() {
                self.counters.perhaps_charged.add_many(requests);
            }
        }
        error
    }

    /// Counts an answer whose caller went away.
    pub(crate) fn abandon(&self, request: Request, answer: Answer) {
        if request.charges && answer.is_ok_and(|decided| decided.is_admitted()) {
            self.counters.abandoned.add();
        }
    }

    /// The answer to a request that the store did not decide.
    pub(crate) fn without_the_store(
        &self,
        asked: &[Asked],
        request: Request,
        error: StoreError,
    ) -> Result<Decided<Status>, StoreError> {
        let StoreError::Unavailable(unavailable) = &error else { return Err(error) };
        // That is no matter of being away.
        if unavailable.cause() == Cause::OtherSlot {
            return Err(error);
        }
        let Some(status) = self.fallback.decide(&self.dimensions, asked, request) else { return Err(error) };
        match status.decision() {
            _ if !request.charges => {}
            Decision::Admitted(admission) if admission.is_counted() => self.counters.admitted_locally.add(),
            Decision::Admitted(_) => self.counters.admitted_uncounted.add(),
            Decision::Denied(_) => self.counters.denied_locally.add(),
        }
        Ok(status)
    }

    /// Asks the store about so many requests of the same kind. Tells when it was asked.
    pub(crate) async fn ask(
        &self,
        asked: &[Asked],
        request: Request,
        times: u64,
    ) -> Result<(Instant, Reply), StoreError> {
        let charges = request.charges;
        let acts = match request.enters {
            Some(_) => "e",
            None if charges => "a",
            None => "p",
        };
        let arguments = self.arguments(asked, acts, request, times);
        if charges {
            self.counters.calls.add();
        }
        let sent_at = Instant::now();
        let value = self.call(asked, &arguments, charges).await?;
        // The script has run, but what it said is not known.
        let reply = Reply::read(&value, asked.len()).ok_or_else(|| protocol(charges))?;
        if let Some((place, window)) = reply.shared {
            self.warn_of_another(asked.get(place).map_or(0, |&(dimension, _)| dimension), window);
        }
        Ok((sent_at, reply))
    }

    /// Warns once, for each dimension, of a limiter of the same name that has another window.
    fn warn_of_another(&self, dimension: usize, window: Duration) {
        let bit = 1 << dimension;
        if self.warned.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
            return;
        }
        let Dimension { name, quotas, .. } = &self.dimensions[dimension];
        let quotas: Vec<String> = quotas.iter().map(ToString::to_string).collect();
        log::warn!(
            "the limiter {:?}, whose dimension {name:?} has {}, shares its permits with a limiter of the same name that \
             has a window of {}: give one of them another name, unless a policy is being changed",
            self.name,
            quotas.join(" and "),
            format_duration(window),
        );
    }

    /// The answer to one of the requests that a reply is about, noted.
    fn decision(
        &self,
        asked: &[Asked],
        request: Request,
        (sent_at, reply): (Instant, &Reply),
        is_admitted: bool,
    ) -> Decided<Decision> {
        let (decision, receipt) = if is_admitted {
            let charges = asked.iter().zip(&reply.at).map(|(&(dimension, key), &at)| (dimension, key, at));
            let charges = Charges::Several(charges.collect());
            let receipt = Receipt { limiter: self.id, cost: request.cost, charges };
            let receipt = if request.charges { receipt } else { Receipt::nothing() };
            (Decision::Admitted(Admission::after(reply.delay)), receipt)
        } else {
            (Decision::Denied(self.denial(asked, reply.denied)), Receipt::nothing())
        };
        self.note(asked, request, sent_at, decision);
        Decided::new(decision, DecidedBy::Store, receipt)
    }

    fn denial(&self, asked: &[Asked], denied: Denied) -> Denial {
        let dimension_of = |place: usize| asked.get(place).map_or(0, |&(dimension, _)| dimension);
        let dimension = dimension_of(denied.place);
        let quota = self.dimensions[dimension].order.get(denied.quota).copied().unwrap_or(0);
        let violated = (0..asked.len()).filter(|place| denied.violated & (1 << place) != 0);
        let told = |dimension: usize| self.dimensions[dimension].told;
        let violated = violated.map(|place| told(dimension_of(place)));
        match denied.wait {
            // Others have a wait.
            Duration::ZERO => Denial::in_flight(told(dimension), violated),
            wait => Denial::by_quotas(wait, (told(dimension), quota), violated),
        }
    }

    /// What each quota leaves, in the order in which the quotas were given.
    pub(crate) fn quotas(&self, asked: &[Asked], left: &[Left]) -> Vec<QuotaStatus> {
        let in_order = asked.iter().flat_map(|&(dimension, _)| {
            let its = &self.dimensions[dimension];
            its.order.iter().map(move |&quota| (its, quota, its.quotas[quota].limit()))
        });
        let told = in_order.zip(left).map(|((its, quota, limit), left)| match its.counts_requests {
            true => QuotaStatus::in_flight((its.told, quota), (limit, left.remaining)),
            false => QuotaStatus::new((its.told, quota), (limit, left.remaining, left.next_after, left.reset_after)),
        });
        let mut quotas: Vec<QuotaStatus> = told.collect();
        quotas.sort_by_key(|left| (left.dimension(), left.quota()));
        quotas
    }

    /// Removes what the store knows of a key: whether there was something.
    pub(crate) async fn forget(self: &Arc<Self>, (dimension, key): Asked) -> Result<bool, StoreError> {
        let engine = Arc::clone(self);
        in_task(async move {
            let mut command = redis::cmd("UNLINK");
            command.arg(engine.dimensions[dimension].names.name(key));
            let value = engine.send(&command).await?;
            engine.cache.clear();
            engine.leases.remove(key);
            Ok(matches!(value, Value::Int(1..)))
        })
        .await
    }

    /// Sends a command that changes a key, and that is no script.
    pub(crate) async fn send(&self, command: &Cmd) -> Result<Value, StoreError> {
        let value = self.store.inner.link.send(command, || command.clone()).await;
        value.map_err(|error| self.told(&[], error, true))
    }

    /// The arguments of the script. `times` is what a receipt that is settled has cost in fact.
    pub(crate) fn arguments(&self, asked: &[Asked], acts: &'static str, request: Request, times: u64) -> Vec<Argument> {
        let Request { cost, tells, enters, .. } = request;
        let skew = u64::try_from(self.store.inner.skew.as_micros()).unwrap_or(u64::MAX);
        let since_1970 = self.store.inner.script.since_1970();
        let mut arguments = vec![
            Argument::Word(acts),
            Argument::Number(cost.into()),
            Argument::Number(times),
            Argument::Word(if tells { "1" } else { "0" }),
            Argument::Number(skew),
        ];
        for &(dimension, _) in asked {
            arguments.extend(self.dimensions[dimension].arguments(since_1970, enters));
        }
        arguments
    }

    pub(crate) async fn call(
        &self,
        asked: &[Asked],
        arguments: &[Argument],
        charges: bool,
    ) -> Result<Value, StoreError> {
        let keys: Vec<String> = asked.iter().map(|&(place, key)| self.dimensions[place].names.name(key)).collect();
        let script = &self.store.inner.script;
        let value =
            self.store.inner.link.send(&script.by_hash(&keys, arguments), || script.by_text(&keys, arguments)).await;
        value.map_err(|error| self.told(asked, error, charges))
    }

    /// The error of a call that would charge, or not.
    fn told(&self, asked: &[Asked], error: CallError, charges: bool) -> StoreError {
        let words = match error {
            CallError::Unavailable(error) if charges => return error.into(),
            CallError::Unavailable(error) => return Unavailable::not_charged(error.cause()).into(),
            CallError::Refused(words) => words,
        };
        let mut words = words.split_ascii_whitespace();
        let (what, place, by) = (words.next(), words.next(), words.next());
        let place = place.and_then(|place| place.parse::<usize>().ok()?.checked_sub(1));
        let Some(&(_, key)) = place.and_then(|place| asked.get(place)) else { return protocol(charges) };
        match (what, by.map(str::parse)) {
            (Some("SKEW"), Some(Ok(by))) => StoreError::ClockWentBack { key, by: Duration::from_micros(by) },
            (Some("CALENDAR"), _) => StoreError::ClocksDiffer { key },
            (Some("WRONGTYPE" | "FOREIGN"), _) => StoreError::ForeignValue { key },
            _ => protocol(charges),
        }
    }
}

/// The decision alone.
pub(crate) fn decision_of(decided: Decided<Status>) -> Decided<Decision> {
    decided.map(|status| status.decision())
}

/// A decision whose permits left are not asked for.
fn bare(decided: Decided<Decision>) -> Decided<Status> {
    decided.map(|decision| Status::new(decision, 0, []))
}

fn denied_by_cache(denial: Denial) -> Decided<Decision> {
    Decided::uncharged(Decision::Denied(denial), DecidedBy::CachedDenial)
}

pub(crate) fn protocol(charges: bool) -> StoreError {
    let unavailable = if charges { Unavailable::perhaps_charged } else { Unavailable::not_charged };
    unavailable(Cause::Protocol).into()
}
