//! The connection to the server, and a call with its time-out.

use core::fmt;
use core::time::Duration;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, IntoConnectionInfo, RedisError, Value};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::error::{BuildError, Cause, Unavailable};

/// So many calls in a row that time out give the connection up: nobody may be there any more.
const TIMEOUTS_OF_A_DEAD_CONNECTION: u32 = 3;

/// Why a call has no reply of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallError {
    Unavailable(Unavailable),
    /// The script refused a value: its words.
    Refused(String),
}

/// One connection, made when it is first needed and made anew when it broke. Many calls share it.
pub(crate) struct Link {
    client: Client,
    timeout: Duration,
    in_flight: Semaphore,
    current: Mutex<Current>,
    timeouts: AtomicU32,
    has_warned: AtomicBool,
}

#[derive(Default)]
struct Current {
    /// How many connections there have been.
    made: u64,
    connection: Option<MultiplexedConnection>,
}

impl Link {
    pub(crate) fn new(address: &str, timeout: Duration, in_flight: usize) -> Result<Self, BuildError> {
        let info = address.into_connection_info().map_err(|_| BuildError::Address)?;
        // Small writes must not wait for one another.
        let settings = info.tcp_settings().clone().set_nodelay(true);
        let client = Client::open(info.set_tcp_settings(settings)).map_err(|_| BuildError::Address)?;
        let in_flight = Semaphore::new(in_flight.clamp(1, Semaphore::MAX_PERMITS));
        let (current, timeouts, has_warned) = (Mutex::default(), AtomicU32::new(0), AtomicBool::new(false));
        Ok(Self { client, timeout, in_flight, current, timeouts, has_warned })
    }

    /// Sends the command, or the other one if the server does not know the script.
    pub(crate) async fn call(&self, by_hash: &Cmd, by_text: impl FnOnce() -> Cmd) -> Result<Value, CallError> {
        let until = Instant::now() + self.timeout;
        let not_charged = |cause| CallError::Unavailable(Unavailable::not_charged(cause));
        let permit = timeout_at(until, self.in_flight.acquire()).await;
        let Ok(Ok(_permit)) = permit else { return Err(not_charged(Cause::TooManyInFlight)) };
        let connected = timeout_at(until, self.connect()).await;
        let Ok(connected) = connected else { return Err(not_charged(Cause::NotConnected)) };
        let (number, mut connection) = connected.map_err(|error| match error.kind() {
            ErrorKind::AuthenticationFailed => not_charged(Cause::NotPermitted),
            _ => not_charged(Cause::NotConnected),
        })?;
        let mut reply = timeout_at(until, connection.req_packed_command(by_hash)).await;
        if matches!(&reply, Ok(reply) if is_unknown_script(reply)) {
            let by_text = by_text();
            reply = timeout_at(until, connection.req_packed_command(&by_text)).await;
        }
        match reply {
            Ok(Ok(Value::ServerError(error))) => Err(of_code(error.code(), error.details())),
            Ok(Ok(value)) => {
                self.timeouts.store(0, Ordering::Relaxed);
                Ok(value)
            }
            Ok(Err(error)) => {
                let is_broken = error.is_io_error() || error.is_unrecoverable_error();
                if is_broken {
                    self.give_up(number).await;
                }
                Err(of_error(&error))
            }
            Err(_) => {
                if self.timeouts.fetch_add(1, Ordering::Relaxed) + 1 >= TIMEOUTS_OF_A_DEAD_CONNECTION {
                    self.timeouts.store(0, Ordering::Relaxed);
                    self.give_up(number).await;
                }
                Err(CallError::Unavailable(Unavailable::perhaps_charged(Cause::TimedOut)))
            }
        }
    }

    /// The connection, and its number. One caller makes it, the others wait for that.
    async fn connect(&self) -> Result<(u64, MultiplexedConnection), RedisError> {
        let mut current = self.current.lock().await;
        if let Some(connection) = &current.connection {
            return Ok((current.made, connection.clone()));
        }
        // The time-outs are those of the caller.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        self.warn_of_eviction(connection.clone()).await;
        current.made += 1;
        current.connection = Some(connection.clone());
        Ok((current.made, connection))
    }

    /// Warns once if the server removes keys for want of memory: their permits would be granted
    /// again. A server that does not tell is trusted.
    async fn warn_of_eviction(&self, mut connection: MultiplexedConnection) {
        let info: Result<String, _> = redis::cmd("INFO").arg("memory").query_async(&mut connection).await;
        let info = info.unwrap_or_default();
        let policy = info.lines().find_map(|line| line.strip_prefix("maxmemory_policy:"));
        if policy.is_some_and(|policy| policy.trim() != "noeviction") && !self.has_warned.swap(true, Ordering::Relaxed)
        {
            log::warn!(
                "the server of rate limits may remove keys for want of memory, and then admit more: set maxmemory-policy \
                 noeviction"
            );
        }
    }

    /// The next call makes another connection, unless one has been made since.
    async fn give_up(&self, number: u64) {
        let mut current = self.current.lock().await;
        if current.made == number {
            current.connection = None;
        }
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

fn of_error(error: &RedisError) -> CallError {
    match error.kind() {
        ErrorKind::Server(_) | ErrorKind::Extension => of_code(error.code().unwrap_or_default(), error.detail()),
        _ if error.is_io_error() => CallError::Unavailable(Unavailable::perhaps_charged(Cause::Disconnected)),
        _ => CallError::Unavailable(Unavailable::perhaps_charged(Cause::Protocol)),
    }
}

/// An error that the server answered. With these codes it has not run the script, or the script has
/// stopped before its first write. With any other it is not certain.
fn of_code(code: &str, details: Option<&str>) -> CallError {
    let cause = match code {
        "TOLLGATE" => return CallError::Refused(details.unwrap_or_default().to_owned()),
        "NOSCRIPT" | "OOM" | "READONLY" | "LOADING" | "BUSY" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN"
        | "NOREPLICAS" | "MISCONF" | "MOVED" | "ASK" => Cause::ServerNotReady,
        "NOAUTH" | "WRONGPASS" | "NOPERM" => Cause::NotPermitted,
        "CROSSSLOT" => Cause::OtherSlot,
        _ => return CallError::Unavailable(Unavailable::perhaps_charged(Cause::Protocol)),
    };
    CallError::Unavailable(Unavailable::not_charged(cause))
}
