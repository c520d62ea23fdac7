//! Requests of the same keys and cost that wait for one reply.
//!
//! One call of a key is on its way at a time. Requests that come meanwhile wait, and go together in
//! the next call: the script admits as many of them as fit, at one instant. A task makes these
//! calls, so no caller that goes away takes the others with it.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::asked::{Asked, Request};
use crate::engine::{Engine, decision_of};
use crate::task::stopped;
use crate::waiters::{Alike, Answer, Waiters};

impl Engine {
    /// Decides a request, together with others that ask for the same.
    pub(crate) async fn decide_together(self: &Arc<Self>, asked: &[Asked], cost: u32) -> Answer {
        let request = Request::acquire(cost);
        let (sender, receiver) = oneshot::channel();
        match self.flights.lock().entry((asked.to_vec(), cost)) {
            Entry::Occupied(mut waiters) => waiters.get_mut().push(sender),
            Entry::Vacant(place) => {
                let last = Last { engine: Arc::clone(self), alike: place.key().clone(), is_over: false };
                place.insert(vec![]);
                // Outside of a runtime this panics, and `last` removes the entry.
                tokio::spawn(last.answer(vec![sender]));
            }
        }
        let answer = receiver.await.unwrap_or_else(|_| Err(self.undecided(request, 1, stopped())));
        answer.or_else(|error| self.without_the_store(asked, request, error).map(decision_of))
    }
}

/// The task that answers. If it is dropped with its runtime, no call is on its way any more.
struct Last {
    engine: Arc<Engine>,
    alike: Alike,
    is_over: bool,
}

impl Last {
    /// Answers those that wait, as long as there are any.
    async fn answer(mut self, mut waiters: Waiters) {
        let request = Request::acquire(self.alike.1);
        loop {
            let answers = self.engine.decide_many(&self.alike.0, self.alike.1, waiters.len()).await;
            for (waiter, answer) in waiters.into_iter().zip(answers) {
                if let Err(answer) = waiter.send(answer) {
                    self.engine.abandon(request, answer);
                }
            }
            match self.engine.flights.next(&self.alike) {
                Some(next) => waiters = next,
                None => break,
            }
        }
        self.is_over = true;
    }
}

impl Drop for Last {
    fn drop(&mut self) {
        if !self.is_over {
            drop(self.engine.flights.lock().remove(&self.alike));
        }
    }
}
