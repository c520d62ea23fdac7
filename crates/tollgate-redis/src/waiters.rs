//! The requests that wait for a call which is on its way.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tollgate::Decision;

use crate::asked::Asked;
use crate::decision::Decided;
use crate::error::StoreError;

pub(crate) type Answer = Result<Decided<Decision>, StoreError>;
pub(crate) type Waiters = Vec<oneshot::Sender<Answer>>;

/// The keys and the cost of requests that can go together.
pub(crate) type Alike = (Vec<Asked>, u32);

/// The requests that wait, by what they ask for. An entry stands for a call that is on its way.
#[derive(Debug, Default)]
pub(crate) struct Flights(Mutex<HashMap<Alike, Waiters>>);

impl Flights {
    /// No code panics while it holds the lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<Alike, Waiters>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that wait now; if there are none, no call is on its way any more.
    pub(crate) fn next(&self, alike: &Alike) -> Option<Waiters> {
        let mut flights = self.lock();
        let waiters = std::mem::take(flights.get_mut(alike)?);
        if waiters.is_empty() {
            flights.remove(alike);
            return None;
        }
        Some(waiters)
    }
}
