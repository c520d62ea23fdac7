//! Requests of the same keys and cost that wait for one reply.
//!
//! One call of a key is on its way at a time. Requests that come meanwhile wait, and go together in
//! the next call: the script admits as many of them as fit, at one instant. A task of its own makes
//! that call, so no caller that goes away takes the others with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::asked::{Asked, Request};
use crate::decision::Decision;
use crate::engine::Engine;
use crate::error::{Cause, StoreError, Unavailable};

type Answer = Result<Decision, StoreError>;
type Waiters = Vec<oneshot::Sender<Answer>>;

/// The keys and the cost of requests that can go together.
type Alike = (Vec<Asked>, u32);

/// The requests that wait, by what they ask for. An entry stands for a call that is on its way.
#[derive(Debug, Default)]
pub(crate) struct Flights(Mutex<HashMap<Alike, Waiters>>);

impl Flights {
    /// No code below panics while it holds the lock.
    fn lock(&self) -> MutexGuard<'_, HashMap<Alike, Waiters>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that wait now; if there are none, no call is on its way any more.
    fn next(&self, alike: &Alike) -> Option<Waiters> {
        let mut flights = self.lock();
        let waiters = std::mem::take(flights.get_mut(alike)?);
        if waiters.is_empty() {
            flights.remove(alike);
            return None;
        }
        Some(waiters)
    }
}

impl Engine {
    /// Decides a request, together with others that ask for the same.
    pub(crate) async fn decide_together(self: &Arc<Self>, asked: &[Asked], cost: u32) -> Answer {
        let alike: Alike = (asked.to_vec(), cost);
        let waits = {
            let mut flights = self.flights.lock();
            match flights.get_mut(&alike) {
                Some(waiters) => {
                    let (sender, receiver) = oneshot::channel();
                    waiters.push(sender);
                    Some(receiver)
                }
                None => {
                    flights.insert(alike.clone(), vec![]);
                    None
                }
            }
        };
        if let Some(receiver) = waits {
            // The task that would answer is gone, with its runtime.
            let gone = Unavailable::perhaps_charged(Cause::Disconnected);
            return receiver.await.unwrap_or(Err(gone.into()));
        }
        let _first = First { engine: self, alike: &alike };
        let request = Request { cost, charges: true, tells: false };
        Ok(self.decide_alone(asked, request).await?.into_decision())
    }
}

/// The request whose call is on its way. Ready or dropped, it leaves the others to a task.
struct First<'a> {
    engine: &'a Arc<Engine>,
    alike: &'a Alike,
}

impl Drop for First<'_> {
    fn drop(&mut self) {
        let Some(waiters) = self.engine.flights.next(self.alike) else { return };
        let last = Last { engine: Arc::clone(self.engine), alike: self.alike.clone(), is_over: false };
        // Dropped outside of a runtime, nobody can make calls.
        if let Ok(runtime) = Handle::try_current() {
            drop(runtime.spawn(last.answer(waiters)));
        }
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
        loop {
            let answers = self.engine.decide_many(&self.alike.0, self.alike.1, waiters.len()).await;
            for (waiter, answer) in waiters.into_iter().zip(answers) {
                if let Err(Ok(Decision::Admitted(_))) = waiter.send(answer) {
                    self.engine.counters.abandoned.add();
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
