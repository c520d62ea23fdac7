//! A connection to the server: how it is made, and when it is taken for dead.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, IntoConnectionInfo, RedisError};
use tokio::time::timeout;

use crate::error::{BuildError, Cause};

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
    has_warned: AtomicBool,
}

impl Maker {
    pub(crate) fn new(address: &str, timeout: Duration) -> Result<Self, BuildError> {
        let info = address.into_connection_info().map_err(|_| BuildError::Address)?;
        // Small writes must not wait for one another.
        let settings = info.tcp_settings().clone().set_nodelay(true);
        let client = Client::open(info.set_tcp_settings(settings)).map_err(|_| BuildError::Address)?;
        Ok(Self { client, timeout, has_warned: AtomicBool::new(false) })
    }

    /// A connection with this number.
    pub(crate) async fn make(&self, number: u64) -> Result<Line, Cause> {
        match timeout(self.timeout, self.connect()).await {
            Ok(Ok(connection)) => Ok(Line { number, connection, timeouts: Arc::default() }),
            Ok(Err(error)) if error.kind() == ErrorKind::AuthenticationFailed => Err(Cause::NotPermitted),
            Ok(Err(_)) | Err(_) => Err(Cause::NotConnected),
        }
    }

    async fn connect(&self) -> Result<MultiplexedConnection, RedisError> {
        // The time of each call is measured by the call.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        self.warn_of_eviction(connection.clone()).await;
        Ok(connection)
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
