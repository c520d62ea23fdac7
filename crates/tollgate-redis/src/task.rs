//! Calls that go on though their caller leaves: a caller may drop its future at any moment, and
//! what it sent is charged, timed and counted all the same.

use crate::error::{Cause, StoreError, Unavailable};

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
