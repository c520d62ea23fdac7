//! A connection to the server: how it is made, and when it is taken for dead.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, IntoConnectionInfo};
use tokio::time::timeout;

use crate::call_error::{CallError, of_error};
use crate::error::{BuildError, Cause};
use crate::script::RIGHTS;

/// So many calls in a row that time out give the connection up: nobody may be there any more.
const TIMEOUTS_OF_A_DEAD_LINE: u32 = 3;

/// A connection that many calls share.
#[derive(Clone)]
pub(crate) struct Line {
    /// Tells it from the other connections of the store.
    pub(crate) number: u64,
    pub(crate) connection: MultiplexedConnection,
    timeouts: Arc<AtomicU32>,
}

impl Line {
    /// The server answered something.
    pub(crate) fn answered(&self) {
        self.timeouts.store(0, Ordering::Relaxed);
    }

    /// A call timed out. Whether too many have in a row.
    pub(crate) fn timed_out(&self) -> bool {
        self.timeouts.fetch_add(1, Ordering::Relaxed) + 1 >= TIMEOUTS_OF_A_DEAD_LINE
    }
}

/// Makes connections.
pub(crate) struct Maker {
    client: Client,
    /// The longest time that making one takes.
    timeout: Duration,
    /// What the names of all keys begin with.
    key: String,
    has_warned: AtomicBool,
    has_named_a_right: AtomicBool,
}

/// The commands whose rights are looked at. A script may stop in the midst of its writes for want
/// of one, so they are looked at before.
const COMMANDS: [&str; 18] = [
    "EVAL",
    "EVALSHA",
    "TIME",
    "STRLEN",
    "GET",
    "GETRANGE",
    "PTTL",
    "APPEND",
    "SET",
    "SETRANGE",
    "PEXPIREAT",
    "DEL",
    "UNLINK",
    "ZRANGE",
    "ZCOUNT",
    "ZADD",
    "ZREM",
    "ZREMRANGEBYSCORE",
];

impl Maker {
    pub(crate) fn new(address: &str, timeout: Duration, key: String) -> Result<Self, BuildError> {
        let info = address.into_connection_info().map_err(|_| BuildError::Address)?;
        // Small writes must not wait for one another.
        let settings = info.tcp_settings().clone().set_nodelay(true);
        let client = Client::open(info.set_tcp_settings(settings)).map_err(|_| BuildError::Address)?;
        let (has_warned, has_named_a_right) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Self { client, timeout, key, has_warned, has_named_a_right })
    }

    /// A connection with this number, whose user has all rights.
    pub(crate) async fn make(&self, number: u64) -> Result<Line, Cause> {
        let connection = timeout(self.timeout, self.connect()).await.unwrap_or(Err(Cause::NotConnected))?;
        Ok(Line { number, connection, timeouts: Arc::default() })
    }

    async fn connect(&self) -> Result<MultiplexedConnection, Cause> {
        // The time of each call is measured by the call.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let connection = self.client.get_multiplexed_async_connection_with_config(&config).await;
        let connection = connection.map_err(|error| match error.kind() {
            ErrorKind::AuthenticationFailed => Cause::NotPermitted,
            _ => Cause::NotConnected,
        })?;
        // One round trip for both.
        let ((), rights) =
            tokio::join!(self.warn_of_eviction(connection.clone()), self.check_rights(connection.clone()));
        rights?;
        Ok(connection)
    }

    /// Whether the user may use all commands of a store. Warns once.
    async fn check_rights(&self, mut connection: MultiplexedConnection) -> Result<(), Cause> {
        let mut command = redis::cmd("EVAL");
        command.arg(RIGHTS).arg(0).arg(&self.key);
        let lacks: String = command.query_async(&mut connection).await.map_err(|error| match of_error(&error) {
            CallError::Unavailable(error) if error.cause() != Cause::Disconnected => error.cause(),
            _ => Cause::NotConnected,
        })?;
        let Some(command) = COMMANDS.into_iter().find(|command| *command == lacks) else { return Ok(()) };
        let cause = Cause::CommandNotPermitted { command };
        if !self.has_named_a_right.swap(true, Ordering::Relaxed) {
            log::warn!("rate limits are not decided on their store: {cause}");
        }
        Err(cause)
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
}
