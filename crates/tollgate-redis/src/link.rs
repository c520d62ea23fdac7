//! The way to the server: one connection for all calls, and a call with its time-out.
//!
//! A caller may leave at any moment. So each call runs in a task of its own (see `task.rs`), and so
//! does the making of a connection: both come to their end, and are counted, without a caller.

use core::fmt;
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redis::aio::ConnectionLike as _;
use redis::{Cmd, RedisError, Value};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout_at};

use crate::breaker::Breaker;
use crate::call_error::{CallError, of_code, of_error};
use crate::error::{Cause, Unavailable};
use crate::line::{Line, Maker};

/// One connection, made when it is first needed and made anew when it broke.
pub(crate) struct Link {
    maker: Maker,
    timeout: Duration,
    calls: Semaphore,
    breaker: Breaker,
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    /// How many attempts to connect have begun.
    begun: u64,
    state: State,
}

#[derive(Default)]
enum State {
    #[default]
    None,
    /// A task makes one, and tells those that wait.
    Making(watch::Receiver<Outcome>),
    Made(Line),
}

/// What became of an attempt; `None` until it is over.
type Outcome = Option<Result<Line, Cause>>;

impl Link {
    pub(crate) fn new(maker: Maker, timeout: Duration, calls: usize, breaker: Breaker) -> Self {
        let calls = Semaphore::new(calls.clamp(1, Semaphore::MAX_PERMITS));
        Self { maker, timeout, calls, breaker, current: Mutex::default() }
    }

    /// Sends the command, or the other one if the server does not know the script. Sends nothing
    /// while the breaker is open.
    pub(crate) async fn send(
        self: &Arc<Self>,
        by_hash: &Cmd,
        by_text: impl FnOnce() -> Cmd,
    ) -> Result<Value, CallError> {
        let Some(pass) = self.breaker.pass() else {
            return Err(CallError::Unavailable(Unavailable::not_charged(Cause::CircuitOpen)));
        };
        let value = self.call(by_hash, by_text).await;
        match &value {
            Err(CallError::Unavailable(error)) if error.cause().is_failure() => pass.failed(),
            _ => pass.succeeded(),
        }
        value
    }

    async fn call(self: &Arc<Self>, by_hash: &Cmd, by_text: impl FnOnce() -> Cmd) -> Result<Value, CallError> {
        let not_charged = |cause| CallError::Unavailable(Unavailable::not_charged(cause));
        let until = Instant::now() + self.timeout;
        let permit = timeout_at(until, self.calls.acquire()).await;
        let Ok(Ok(_permit)) = permit else { return Err(not_charged(Cause::TooManyInFlight)) };
        let (line, until) = self.line(until).await.map_err(not_charged)?;
        let mut connection = line.connection.clone();
        let mut reply = timeout_at(until, connection.req_packed_command(by_hash)).await;
        if matches!(&reply, Ok(reply) if is_unknown_script(reply)) {
            let by_text = by_text();
            reply = timeout_at(until, connection.req_packed_command(&by_text)).await;
        }
        match reply {
            Ok(Ok(value)) => {
                line.answered();
                match value {
                    Value::ServerError(error) => {
                        Err(of_code(error.code(), error.details())).inspect_err(|error| self.renew(&line, error))
                    }
                    value => Ok(value),
                }
            }
            Ok(Err(error)) => {
                if error.is_io_error() || error.is_unrecoverable_error() {
                    self.give_up(line.number);
                }
                Err(of_error(&error)).inspect_err(|error| self.renew(&line, error))
            }
            Err(_) => {
                if line.timed_out() {
                    self.give_up(line.number);
                }
                Err(CallError::Unavailable(Unavailable::perhaps_charged(Cause::TimedOut)))
            }
        }
    }

    /// The connection, and until when a call by it may take.
    ///
    /// The first attempt of a store is waited for: without it a service would begin with errors. A
    /// later one is made because the server was away. Then a call waits no longer than its own
    /// time.
    async fn line(self: &Arc<Self>, until: Instant) -> Result<(Line, Instant), Cause> {
        let (mut outcome, is_first) = match self.line_or_attempt() {
            Ok(line) => return Ok((line, until)),
            Err(attempt) => attempt,
        };
        let made = outcome.wait_for(Option::is_some);
        let made =
            if is_first { made.await } else { timeout_at(until, made).await.map_err(|_| Cause::NotConnected)? };
        // Without a sender its runtime has stopped.
        let line = made.ok().and_then(|made| made.clone()).unwrap_or(Err(Cause::NotConnected))?;
        Ok((line, if is_first { Instant::now() + self.timeout } else { until }))
    }

    /// The connection; or the attempt that goes on, and whether it is the first. A call that finds
    /// neither begins one.
    fn line_or_attempt(self: &Arc<Self>) -> Result<Line, (watch::Receiver<Outcome>, bool)> {
        let mut current = self.current();
        let outcome = match &current.state {
            State::Made(line) => return Ok(line.clone()),
            // An attempt without a sender has stopped with its runtime.
            State::Making(outcome) if outcome.has_changed().is_ok() => outcome.clone(),
            State::Making(_) | State::None => {
                let (sender, outcome) = watch::channel(None);
                current.begun += 1;
                current.state = State::Making(outcome.clone());
                tokio::spawn(Arc::clone(self).make(current.begun, sender));
                outcome
            }
        };
        Err((outcome, current.begun == 1))
    }

    /// Makes a connection. It is there before those that wait know of it.
    async fn make(self: Arc<Self>, number: u64, sender: watch::Sender<Outcome>) {
        let made = self.maker.make(number).await;
        self.current().state = match &made {
            Ok(line) => State::Made(line.clone()),
            Err(_) => State::None,
        };
        if made.is_ok() {
            self.breaker.probe_now();
        }
        sender.send_replace(Some(made));
    }

    /// A user who has lost a right since: the next connection names it.
    fn renew(&self, line: &Line, error: &CallError) {
        if matches!(error, CallError::Unavailable(error) if error.cause() == Cause::NotPermitted) {
            self.give_up(line.number);
        }
    }

    /// The next call makes another connection, unless one has been made since.
    fn give_up(&self, number: u64) {
        let mut current = self.current();
        if matches!(&current.state, State::Made(line) if line.number == number) {
            current.state = State::None;
        }
    }

    /// No code that holds the lock panics, except outside of a runtime.
    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Link {
    /// Without the address, which may have a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}
/// The server does not know the script, and has done nothing.
fn is_unknown_script(reply: &Result<Value, RedisError>) -> bool {
    match reply {
        Ok(Value::ServerError(error)) => error.code() == "NOSCRIPT",
        Ok(_) => false,
        Err(error) => error.code() == Some("NOSCRIPT"),
    }
}
