//! [`InFlight`]: a request in flight on the store, from where it enters until it leaves.
//!
//! The store has an entry for each such request, under a number that this process made. So the
//! request can leave by any process that knows the number, and also if no answer tells whether it
//! has entered. An entry counts until the request leaves, and for at most the quota's `max_hold`.

use core::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use redis::Value;
use tokio::runtime::Handle;
use tollgate::Status;

use crate::asked::{Asked, Request};
use crate::decision::Decided;
use crate::digest::KeyDigest;
use crate::engine::{Engine, protocol};
use crate::error::StoreError;
use crate::failure::LocalInFlight;
use crate::plan::halves;
use crate::task::in_task;

/// An admitted request, which is in flight until this is dropped.
///
/// [`RedisLimiter::try_enter`](crate::RedisLimiter::try_enter) makes it. While it lasts, the request
/// counts in each [concurrency limit](tollgate::Quota::concurrent) that it was asked of, on all nodes.
/// When it is dropped, a task tells the store; [`leave`](Self::leave) waits for that.
///
/// If its process dies, the request counts until the quota's
/// [`max_hold`](tollgate::Quota::held_at_most) is over. A request that takes longer counts no more, so
/// set it above the longest. A request whose answer was lost leaves by itself.
///
/// ```
/// use tollgate_redis::{RedisLimiter, StoreError};
///
/// async fn export(limiter: &RedisLimiter, user: &str) -> Result<&'static str, StoreError> {
///     let decided = limiter.try_enter(user).await?;
///     if decided.is_denied() {
///         return Ok("429: too many exports at a time");
///     }
///     let (_in_flight, _) = decided.enter();
///     // Work that takes a while.
///     Ok("200")
/// }
/// ```
#[must_use = "a request is over as soon as this is dropped"]
pub struct InFlight {
    place: Place,
}

enum Place {
    /// No concurrency limit counts the request.
    Nowhere,
    OnStore(Entered),
    Local(LocalInFlight),
}

impl InFlight {
    pub(crate) const fn nowhere() -> Self {
        Self { place: Place::Nowhere }
    }

    pub(crate) const fn local(in_flight: LocalInFlight) -> Self {
        Self { place: Place::Local(in_flight) }
    }

    /// Whether the request counts in a concurrency limit: on the store, or in the local limiter while
    /// the store is away ([`OnFailure::Local`](crate::OnFailure::Local)).
    ///
    /// ```
    /// use tollgate_redis::InFlight;
    ///
    /// fn has_place(in_flight: &InFlight) -> bool {
    ///     in_flight.counts()
    /// }
    /// ```
    #[must_use]
    pub const fn counts(&self) -> bool {
        match &self.place {
            Place::Nowhere => false,
            Place::OnStore(_) => true,
            Place::Local(in_flight) => in_flight.counts(),
        }
    }

    /// Ends the request, and waits until the store knows. To drop the guard does the same in a task,
    /// which a service that stops may not see to its end.
    ///
    /// ```
    /// use tollgate_redis::{InFlight, StoreError};
    ///
    /// async fn stop(jobs: Vec<InFlight>) -> Result<(), StoreError> {
    ///     for job in jobs {
    ///         job.leave().await?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store did not answer. The request may count until its time is over.
    pub async fn leave(self) -> Result<(), StoreError> {
        let Place::OnStore(entered) = self.place else { return Ok(()) };
        entered.leave().await
    }

    /// Keeps the request in flight after this guard, until
    /// [`release`](crate::RedisLimiter::release) is told the token, by any process. `None` if the
    /// request does not count on the store; then it is over now.
    ///
    /// A token is text of letters, digits and hyphens. Without the limiter's secret it cannot be
    /// guessed.
    ///
    /// ```
    /// use tollgate_redis::{RedisLimiter, StoreError};
    ///
    /// async fn enqueue(limiter: &RedisLimiter, tenant: &str) -> Result<Option<String>, StoreError> {
    ///     // A worker releases it when the job is done.
    ///     let (in_flight, _) = limiter.try_enter(tenant).await?.enter();
    ///     Ok(in_flight.into_token())
    /// }
    /// ```
    #[must_use = "the request leaves by the token alone"]
    pub fn into_token(self) -> Option<String> {
        let Place::OnStore(mut entered) = self.place else { return None };
        entered.entry.take().map(|entry| entry.to_string())
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

/// A request that may be in flight on the store. It leaves when this is dropped.
pub(crate) struct Entered {
    engine: Arc<Engine>,
    /// Guards may be dropped outside of it.
    runtime: Handle,
    /// `None` if it does not leave by this.
    entry: Option<Entry>,
}

impl Entered {
    /// With a number that no other request has, for the keys that count it.
    fn new(engine: &Arc<Engine>, keys: Vec<Asked>) -> (Self, u128) {
        let number = engine.new_entry();
        let entry = Some(Entry { number, keys });
        (Self { engine: Arc::clone(engine), runtime: Handle::current(), entry }, number)
    }

    /// It is not in flight.
    fn never_entered(mut self) {
        self.entry = None;
    }

    async fn leave(mut self) -> Result<(), StoreError> {
        let Some(entry) = self.entry.take() else { return Ok(()) };
        let engine = Arc::clone(&self.engine);
        in_task(async move { engine.leave(&entry).await }).await?;
        Ok(())
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            let engine = Arc::clone(&self.engine);
            self.runtime.spawn(async move { engine.leave(&entry).await });
        }
    }
}

/// A request on the store: its number, and the keys that count it.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    number: u128,
    keys: Vec<Asked>,
}

/// The text of a token: the number, and for each key its place and its digest.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.number)?;
        self.keys.iter().try_for_each(|(place, key)| write!(f, "-{place}-{key}"))
    }
}

impl Entry {
    /// The longest token: a request asks eight keys.
    const LONGEST: usize = 32 + 8 * 40;

    fn from_token(token: &str) -> Option<Self> {
        let number = |text: &str| u128::from_str_radix(text, 16).ok();
        let mut parts = token.split('-');
        let mut entry = Self { number: number(parts.next()?)?, keys: vec![] };
        while let Some(place) = parts.next() {
            entry.keys.push((place.parse().ok()?, KeyDigest(number(parts.next()?)?)));
        }
        // In no other way than it was written.
        (token.len() <= Self::LONGEST && entry.to_string() == token).then_some(entry)
    }
}

impl Engine {
    /// Decides a request that is in flight once it is admitted, if a concurrency limit counts it.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        asked: &[Asked],
        request: Request,
    ) -> Result<Decided<Status>, StoreError> {
        let counts = |&(place, _): &Asked| self.dimensions[place].counts_requests;
        let keys: Vec<Asked> = asked.iter().copied().filter(counts).collect();
        if keys.is_empty() || request.cost == 0 {
            return match request.tells {
                true => self.decide_known(asked, request.cost).await,
                false => self.decide(asked, request).await,
            };
        }
        self.check_cost(asked, request.cost)?;
        if let Some(denial) = self.cached_denial(asked, request.cost) {
            return Ok(self.known_denial(asked, denial, request.cost));
        }
        let (entered, number) = Entered::new(self, keys);
        let request = Request { enters: Some(number), ..request };
        let (engine, its) = (Arc::clone(self), asked.to_vec());
        let work = async move {
            let (sent_at, reply) = match engine.ask(&its, request, 1).await {
                Ok(answer) => answer,
                Err(error) => {
                    // Without an answer it may be in flight: then it leaves.
                    if !matches!(&error, StoreError::Unavailable(error) if error.is_perhaps_charged()) {
                        entered.never_entered();
                    }
                    return Err(engine.undecided(request, 1, error));
                }
            };
            let status = engine.status(&its, request, sent_at, &reply);
            if status.is_admitted() {
                return Ok(status.in_flight(Some(InFlight { place: Place::OnStore(entered) })));
            }
            entered.never_entered();
            Ok(status)
        };
        self.decide_by_task(asked, request, work).await
    }

    /// Ends the request of a token: whether it was in flight.
    pub(crate) async fn release(self: &Arc<Self>, token: &str) -> Result<bool, StoreError> {
        let is_known = |entry: &Entry| entry.keys.iter().all(|&(place, _)| place < self.dimensions.len());
        let Some(entry) = Entry::from_token(token).filter(is_known) else { return Ok(false) };
        let engine = Arc::clone(self);
        in_task(async move { engine.leave(&entry).await }).await
    }

    /// A number that no other request has, and that is not guessed from others.
    fn new_entry(&self) -> u128 {
        let count = self.entries.fetch_add(1, Ordering::Relaxed);
        self.store.inner.secret.digest([b"in flight".as_slice(), &self.id.to_be_bytes(), &count.to_be_bytes()]).0
    }

    /// Ends a request, key by key. A key that is not told counts it until its time is over.
    async fn leave(&self, entry: &Entry) -> Result<bool, StoreError> {
        let mut left = Ok(false);
        for asked in &entry.keys {
            match (self.leave_one(*asked, entry.number).await, &mut left) {
                (Ok(was_there), Ok(left)) => *left |= was_there,
                (Err(error), Ok(_)) => left = Err(error),
                (_, Err(_)) => {}
            }
        }
        match left {
            Ok(_) => self.counters.released.add(),
            Err(_) => self.counters.unreleased.add(),
        }
        left
    }

    async fn leave_one(&self, (place, key): Asked, number: u128) -> Result<bool, StoreError> {
        let [high, low] = halves(number);
        let mut command = redis::cmd("ZREM");
        command.arg(self.dimensions[place].names.name(key)).arg(format!("{high}:{low}"));
        let again = command.clone();
        let value = self.store.inner.link.send(&command, || again).await;
        match value.map_err(|error| self.told(&[], error, true))? {
            Value::Int(number) => Ok(number > 0),
            _ => Err(protocol(true)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written_and_in_no_other_way() {
        let entry = Entry { number: 7, keys: vec![(0, KeyDigest(1 << 127)), (15, KeyDigest(9))] };
        let token = entry.to_string();
        assert_eq!(Entry::from_token(&token), Some(entry));
        let longer = format!("{token}{}", token[32..].repeat(9));
        for wrong in ["", "7", &token[1..], &format!("{token}-"), &format!("+{}", &token[1..]), &longer] {
            assert_eq!(Entry::from_token(wrong), None, "{wrong}");
        }
    }
}
