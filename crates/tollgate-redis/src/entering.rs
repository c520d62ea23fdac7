//! How a request enters and leaves on the store.
//!
//! The store has an entry for each request in flight, under a number that this process made. So the
//! request can leave by any process that knows the number, and also if no answer tells whether it
//! has entered. An entry counts until the request leaves, and for at most the quota's `max_hold`.

use core::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use redis::Value;
use tollgate::Status;

use crate::asked::{Asked, Request};
use crate::decision::Decided;
use crate::engine::{Engine, protocol};
use crate::error::StoreError;
use crate::in_flight::{Entered, Entry, InFlight, Leave};
use crate::plan::halves;
use crate::task::in_task;

impl Leave for Engine {
    fn leave(self: Arc<Self>, entry: Entry) -> Pin<Box<dyn Future<Output = Result<bool, StoreError>> + Send>> {
        Box::pin(async move { self.leave_all(&entry).await })
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
        let number = self.new_entry();
        let entered = Entered::new(Arc::clone(self) as Arc<dyn Leave>, Entry { number, keys });
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
                return Ok(status.in_flight(Some(InFlight::on_store(entered))));
            }
            entered.never_entered();
            Ok(status)
        };
        self.decide_by_task(asked, request, work).await
    }

    /// Ends the request of a token: whether it was in flight.
    pub(crate) async fn release(self: &Arc<Self>, token: &str) -> Result<bool, StoreError> {
        let counts = |&(place, _): &Asked| self.dimensions.get(place).is_some_and(|it| it.counts_requests);
        let is_known = |entry: &Entry| !entry.keys.is_empty() && entry.keys.iter().all(counts);
        let Some(entry) = Entry::from_token(token).filter(is_known) else { return Ok(false) };
        in_task(Arc::clone(self).leave(entry)).await
    }

    /// A number that no other request has, and that is not guessed from others.
    fn new_entry(&self) -> u128 {
        let count = self.entries.fetch_add(1, Ordering::Relaxed);
        self.store.inner.secret.digest([b"in flight".as_slice(), &self.id.to_be_bytes(), &count.to_be_bytes()]).0
    }

    /// Ends a request, key by key. A key that is not told counts it until its time is over.
    async fn leave_all(&self, entry: &Entry) -> Result<bool, StoreError> {
        let mut left = Ok(false);
        for asked in &entry.keys {
            match (self.leave_one(*asked, entry.number).await, &mut left) {
                (Ok(was_there), Ok(left)) => *left |= was_there,
                (Err(error), Ok(_)) => left = Err(error),
                (_, Err(_)) => {}
            }
        }
        match left {
            Ok(true) => self.counters.released.add(),
            // It was over before.
            Ok(false) => {}
            Err(_) => self.counters.unreleased.add(),
        }
        left
    }

    async fn leave_one(&self, (place, key): Asked, number: u128) -> Result<bool, StoreError> {
        let [high, low] = halves(number);
        let mut command = redis::cmd("ZREM");
        command.arg(self.dimensions[place].names.name(key)).arg(format!("{high}:{low}"));
        match self.send(&command).await? {
            Value::Int(number) => Ok(number > 0),
            _ => Err(protocol(true)),
        }
    }
}
