//! Calls that go on though their caller leaves: a caller may drop its future at any moment, and
//! what it sent is charged, timed and counted all the same.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::engine::{Asked, Engine, Request};
use crate::error::{Cause, StoreError, Unavailable};
use crate::status::Status;

/// Does some work in a task of its own. An error if the task stopped with its runtime.
pub(crate) async fn in_task<T: Send + 'static>(
    work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(stopped()),
    }
}

/// The task that would answer is gone, with its runtime.
pub(crate) fn stopped() -> StoreError {
    Unavailable::perhaps_charged(Cause::Disconnected).into()
}

impl Engine {
    /// Decides a request by a task. Without its answer, the limiter does what it does then.
    pub(crate) async fn decide_by_task(
        self: &Arc<Self>,
        asked: &[Asked],
        request: Request,
        work: impl Future<Output = Result<Status, StoreError>> + Send + 'static,
    ) -> Result<Status, StoreError> {
        let (sender, receiver) = oneshot::channel();
        let engine = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(answer) = sender.send(work.await) {
                engine.abandon(request, answer.map(Status::into_decision));
            }
        });
        let answer = receiver.await.unwrap_or_else(|_| Err(self.undecided(request, 1, stopped())));
        answer.or_else(|error| self.without_the_store(asked, request, error))
    }
}
