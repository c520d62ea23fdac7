//! [`Store`]: a server that several limiters share.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use tollgate::AnyClock;

use crate::breaker::Breaker;
use crate::error::BuildError;
use crate::line::Maker;
use crate::link::Link;
use crate::names::{Secret, beginning};
use crate::script::Scripted;

/// A Redis or Valkey server, on which limiters keep their permits. It is cheap to clone; clones
/// share one connection.
///
/// Nothing is sent before the first request, so a service starts while its store is away.
///
/// ```
/// use tollgate_redis::{Secret, Store};
///
/// let store = Store::new("redis://127.0.0.1:6379", Secret::new("sixteen bytes or more")?)?;
/// // Neither the address nor the secret is shown.
/// assert!(!format!("{store:?}").contains("127.0.0.1"));
/// # Ok::<(), tollgate_redis::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) link: Arc<Link>,
    pub(crate) script: Scripted,
    pub(crate) secret: Secret,
    pub(crate) prefix: String,
    pub(crate) skew: Duration,
}

impl Store {
    /// A store at this address: `redis://user:password@host:port/db`, or `redis+unix:///path`.
    ///
    /// # Errors
    ///
    /// [`BuildError`] for an address that cannot be used.
    pub fn new(address: &str, secret: Secret) -> Result<Self, BuildError> {
        Self::builder(address, secret).build()
    }

    /// A store with other settings.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_redis::{Secret, Store};
    ///
    /// let builder = Store::builder("redis://127.0.0.1:6379", Secret::new("sixteen bytes or more")?);
    /// let store = builder.prefix("shop").timeout(Duration::from_millis(20)).build()?;
    /// # Ok::<(), tollgate_redis::BuildError>(())
    /// ```
    pub fn builder(address: &str, secret: Secret) -> StoreBuilder {
        StoreBuilder {
            address: address.to_owned(),
            secret,
            prefix: "tollgate".to_owned(),
            timeout: Duration::from_millis(50),
            connect_timeout: Duration::from_secs(1),
            max_calls: 4096,
            skew: Duration::from_secs(60),
            breaker: (5, Duration::from_secs(1)),
            script: Scripted::production(),
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("prefix", &self.inner.prefix).field("link", &self.inner.link).finish()
    }
}

/// The settings of a [`Store`].
///
/// ```
/// use std::time::Duration;
/// use tollgate_redis::{Secret, Store};
///
/// let builder = Store::builder("redis://127.0.0.1:6379", Secret::new("sixteen bytes or more")?);
/// let builder = builder.max_calls(1000).max_clock_skew(Duration::from_secs(5));
/// assert!(builder.build().is_ok());
/// # Ok::<(), tollgate_redis::BuildError>(())
/// ```
#[must_use]
pub struct StoreBuilder {
    address: String,
    secret: Secret,
    prefix: String,
    timeout: Duration,
    connect_timeout: Duration,
    max_calls: usize,
    skew: Duration,
    breaker: (u32, Duration),
    script: Scripted,
}

impl StoreBuilder {
    /// What the names of all keys begin with; `tollgate` if it is not set. Limiters with another
    /// prefix share nothing.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The longest time of a call of the server: 50 ms if it is not set. A request that was sent
    /// and not answered by then is perhaps charged.
    ///
    /// If the caller leaves before, the call goes on, is counted, and counts for the
    /// [breaker](Self::breaker). Three calls in a row that time out give their connection up.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The longest time that making a connection takes: a second if it is not set. It takes several
    /// round trips, and more with TLS.
    ///
    /// Requests wait so long for the first connection of a store, and then for the answer. For a
    /// later one, which is made because the server was away, they wait no longer than the
    /// [time-out](Self::timeout) of a call. It is made all the same, and the next requests use it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_redis::{Secret, Store};
    ///
    /// // A server in another country.
    /// let builder = Store::builder("redis://10.0.0.7", Secret::new("sixteen bytes or more")?);
    /// let builder = builder.connect_timeout(Duration::from_secs(5));
    /// assert!(builder.build().is_ok());
    /// # Ok::<(), tollgate_redis::BuildError>(())
    /// ```
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// The most calls that are on their way at once: 4096 if it is not set. Requests beyond it wait
    /// for as long as the [time-out](Self::timeout).
    pub fn max_calls(mut self, calls: usize) -> Self {
        self.max_calls = calls;
        self
    }

    /// How far the server's clock may be behind the newest permit of a key: a minute if it is not
    /// set. Within it the newest permit's time counts, so a clock that was set back denies for
    /// longer. Beyond it requests of the key are errors
    /// ([`StoreError::ClockWentBack`](crate::StoreError::ClockWentBack)).
    pub fn max_clock_skew(mut self, skew: Duration) -> Self {
        self.skew = skew;
        self
    }

    /// After so many calls in a row that failed, the store is not asked for this time, and then by
    /// one call alone until one succeeds: 5 calls and a second if it is not set.
    pub fn breaker(mut self, failures: u32, pause: Duration) -> Self {
        self.breaker = (failures, pause);
        self
    }

    /// Decides at the time of this clock, counted from 1970 in whole microseconds, in place of the
    /// server's: to play a log. Keys are removed a day after the last write. Services share no such
    /// clock, so it is not for them.
    ///
    /// ```
    /// use tollgate::MockClock;
    /// use tollgate_redis::{Secret, Store};
    ///
    /// let clock = MockClock::new();
    /// let builder = Store::builder("redis://127.0.0.1:6379", Secret::new("sixteen bytes or more")?);
    /// let store = builder.prefix("replay").log_clock(clock.clone()).build()?;
    /// // The time of the first line.
    /// clock.set(1_772_438_400_000_000_000);
    /// # Ok::<(), tollgate_redis::BuildError>(())
    /// ```
    pub fn log_clock(self, clock: impl Into<AnyClock>) -> Self {
        self.script(Scripted::on_clock(clock.into()))
    }

    pub(crate) fn script(mut self, script: Scripted) -> Self {
        self.script = script;
        self
    }

    /// The store.
    ///
    /// # Errors
    ///
    /// [`BuildError`] for an address or a prefix that cannot be used.
    pub fn build(self) -> Result<Store, BuildError> {
        check_word(&self.prefix)?;
        let maker = Maker::new(&self.address, self.connect_timeout, beginning(&self.prefix))?;
        let breaker = Breaker::new(self.breaker.0, self.breaker.1);
        let link = Arc::new(Link::new(maker, self.timeout, self.max_calls, breaker));
        let Self { secret, prefix, skew, script, .. } = self;
        Ok(Store { inner: Arc::new(Inner { link, script, secret, prefix, skew }) })
    }
}

impl fmt::Debug for StoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreBuilder").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// Checks a part of the names of keys: braces would be hash tags.
pub(crate) fn check_word(word: &str) -> Result<(), BuildError> {
    let is_allowed = |it: char| it.is_ascii_graphic() && !matches!(it, '{' | '}');
    if word.is_empty() || !word.chars().all(is_allowed) { Err(BuildError::BadPrefix) } else { Ok(()) }
}
