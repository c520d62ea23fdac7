//! Why a limiter could not be built, and why a request was not decided.

use core::fmt;
use core::time::Duration;

use tollgate::Quota;

use crate::digest::KeyDigest;

/// Why a store or a limiter could not be built.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Quota;
/// use tollgate_redis::{BuildError, RedisLimiter, Secret, Store};
///
/// let store = Store::new("redis://127.0.0.1", Secret::new("sixteen bytes or more")?)?;
/// let quota = Quota::new(5, Duration::from_nanos(1_500));
/// let error = RedisLimiter::new(&store, "login", quota).unwrap_err();
/// assert!(matches!(error, BuildError::NotWholeMicroseconds { .. }));
/// # Ok::<(), BuildError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The address of the server cannot be used. It is not shown, because it may have a password.
    Address,
    /// The secret has too few bytes.
    ShortSecret {
        /// The given number of bytes.
        bytes: usize,
        /// The fewest that are allowed.
        least: usize,
    },
    /// The prefix of keys or the hash tag is empty, or has a brace, a space or a control character.
    BadPrefix,
    /// The quotas cannot be used, in process neither.
    Quotas(tollgate::BuildError),
    /// A time of a quota is no whole number of microseconds. The server's clock has no less.
    NotWholeMicroseconds {
        /// The quota.
        quota: Box<Quota>,
    },
    /// The numbers of a quota have products above 2^53, which the server cannot compute exactly.
    TooLarge {
        /// The quota.
        quota: Box<Quota>,
    },
    /// A node's share of a limit is less than one permit.
    NoShare {
        /// The quota.
        quota: Box<Quota>,
        /// The number of nodes.
        nodes: u32,
    },
    /// The number of nodes that share the limits while the store is away is zero.
    NoNodes,
    /// Permits of this quota cannot be leased: only a quantised log has steps, and only the permits
    /// of one quota of one dimension are leased.
    NoLease {
        /// The quota.
        quota: Box<Quota>,
    },
    /// The store does not keep quotas of this kind.
    NotKept {
        /// The quota.
        quota: Box<Quota>,
    },
    /// The policy makes no limiter in process, where one is needed. (Feature `policy`.)
    #[cfg(feature = "policy")]
    InProcess(tollgate_policy::BuilderError),
    /// The policy has no `[store]`.
    NoStore,
    /// A value of the policy's `[store]` could not be read from where it is.
    Unread {
        /// The field of the table.
        field: &'static str,
        /// Where it should be.
        place: String,
        /// The reason.
        reason: String,
    },
    /// A queue of the policy delays requests, and with a `PolicyLimiter` on a store none waits.
    QueueOnStore {
        /// The name of the dimension.
        dimension: String,
    },
    /// The policy has something that is decided in process alone.
    NotOnAStore {
        /// The field of the policy.
        what: &'static str,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address => f.write_str("the address of the server cannot be used: write redis://host:port"),
            Self::ShortSecret { bytes, least } => {
                write!(f, "a secret of {bytes} bytes is too short: give at least {least}")
            }
            Self::BadPrefix => f.write_str(
                "the prefix or the hash tag cannot be used: give at least one character, without braces and spaces",
            ),
            Self::Quotas(error) => write!(f, "{error}"),
            Self::NotWholeMicroseconds { quota } => {
                write!(f, "the store counts in microseconds, and {quota} has a time of less: give whole microseconds")
            }
            Self::TooLarge { quota } => write!(
                f,
                "the store cannot compute {quota} exactly: give smaller numbers, or take a sliding window log"
            ),
            Self::NoShare { quota, nodes } => write!(
                f,
                "a share of one in {nodes} of {quota} is less than one permit: refuse requests while the store is away"
            ),
            Self::NoNodes => f.write_str(
                "the local shares of no nodes cannot be computed: give the number of nodes, at least 1, in \
                 `OnFailure::Local`",
            ),
            Self::NoLease { quota } => {
                write!(
                    f,
                    "permits of {quota} cannot be leased: give one dimension one quota, a quantised log, whose resolution is \
                     the step"
                )
            }
            Self::NotKept { quota } => write!(f, "the store does not keep {quota}: decide it in process"),
            #[cfg(feature = "policy")]
            Self::InProcess(error) => write!(f, "{error}"),
            Self::NoStore => f.write_str("the policy has no `[store]`: add one, or decide in process"),
            Self::Unread { field, place, reason } => {
                write!(f, "`{field}` of the store can't be read from {place}: {reason}")
            }
            Self::QueueOnStore { dimension } => write!(
                f,
                "the queue of the dimension {dimension:?} delays requests, and on the store none waits: take a leaky bucket, \
                 or remove `[store]`"
            ),
            Self::NotOnAStore { what } => {
                write!(f, "a store keeps no `{what}`: remove it from the policy, or remove `[store]`")
            }
        }
    }
}

impl core::error::Error for BuildError {}

#[cfg(feature = "policy")]
impl From<tollgate_policy::BuilderError> for BuildError {
    fn from(error: tollgate_policy::BuilderError) -> Self {
        Self::InProcess(error)
    }
}

impl From<tollgate::BuildError> for BuildError {
    fn from(error: tollgate::BuildError) -> Self {
        Self::Quotas(error)
    }
}

/// Why a request was not decided.
///
/// No text has an address, a secret or a key; a key is named by its [digest](KeyDigest).
///
/// ```
/// use tollgate::Quota;
/// use tollgate_redis::{RedisLimiter, Secret, Store, StoreError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Nobody listens there.
/// let store = Store::new("redis+unix:///no/such/socket", Secret::new("sixteen bytes or more")?)?;
/// let limiter = RedisLimiter::new(&store, "login", Quota::per_minute(5))?;
/// let StoreError::Unavailable(error) = limiter.try_acquire("alice").await.unwrap_err() else { panic!() };
/// assert!(!error.is_perhaps_charged());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The store did not answer, or refused.
    Unavailable(Unavailable),
    /// The request asks for more permits than the limit, so no wait would help. The store was not
    /// asked.
    CostExceedsLimit {
        /// The cost of the request.
        cost: u32,
        /// The most permits that a request can be granted.
        limit: u32,
    },
    /// The request has another number of keys than the limiter has dimensions, or none at all. The
    /// store was not asked.
    WrongKeys {
        /// The number of given keys.
        keys: usize,
        /// The number of dimensions.
        dimensions: usize,
    },
    /// The server has a value under this key that is not one of ours: of another type, truncated,
    /// or written by something else. Nothing was overwritten, and nothing charged.
    ForeignValue {
        /// The digest in the name of the key.
        key: KeyDigest,
    },
    /// The server's clock is further behind the newest permit of this key than clocks may differ:
    /// see [`StoreBuilder::max_clock_skew`](crate::StoreBuilder::max_clock_skew). Nothing was
    /// charged. [`forget`](crate::RedisLimiter::forget) frees the key.
    ClockWentBack {
        /// The digest in the name of the key.
        key: KeyDigest,
        /// How far the clock is behind.
        by: Duration,
    },
    /// The clocks of the server and of this process differ by more than a window of the
    /// [calendar](tollgate::Quota::calendar), so this process does not know the window that the server
    /// is in. Nothing was charged.
    ClocksDiffer {
        /// The digest in the name of the key.
        key: KeyDigest,
    },
    /// A receipt of another limiter.
    OtherLimiter,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(error) => write!(f, "{error}"),
            Self::CostExceedsLimit { cost, limit } => write!(
                f,
                "a request of cost {cost} can never be admitted under a limit of {limit}: ask for at most {limit}"
            ),
            Self::WrongKeys { keys, dimensions } => {
                write!(f, "{keys} keys for {dimensions} dimensions: give one for each, and at least one")
            }
            Self::ForeignValue { key } => write!(
                f,
                "the value under the key {key} was not written by this version: remove it, or take another prefix"
            ),
            Self::ClockWentBack { key, by } => write!(
                f,
                "the server's clock is {by:?} behind the newest permit of the key {key}: set the clock, or forget the key"
            ),
            Self::ClocksDiffer { key } => write!(
                f,
                "the clocks of the server and of this process differ by more than a window of the key {key}: set them"
            ),
            Self::OtherLimiter => f.write_str("the receipt is of another limiter: refund it there"),
        }
    }
}

impl core::error::Error for StoreError {}

impl From<Unavailable> for StoreError {
    fn from(error: Unavailable) -> Self {
        Self::Unavailable(error)
    }
}

/// The store did not decide a request.
///
/// `is_perhaps_charged` says whether the permits may have been charged all the same: the request
/// was sent, and no answer came. Permits are then counted for nobody, so the store never admits
/// more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unavailable {
    cause: Cause,
    perhaps_charged: bool,
}

impl Unavailable {
    pub(crate) const fn not_charged(cause: Cause) -> Self {
        Self { cause, perhaps_charged: false }
    }

    pub(crate) const fn perhaps_charged(cause: Cause) -> Self {
        Self { cause, perhaps_charged: true }
    }

    /// What went wrong.
    #[must_use]
    pub const fn cause(&self) -> Cause {
        self.cause
    }

    /// Whether the permits may have been charged: `false` only if that is certain.
    #[must_use]
    pub const fn is_perhaps_charged(&self) -> bool {
        self.perhaps_charged
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let charged = if self.perhaps_charged { "perhaps charged" } else { "not charged" };
        write!(f, "the store did not decide the request: {} ({charged})", self.cause)
    }
}

impl core::error::Error for Unavailable {}

/// What kept the store from a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// No connection could be made.
    NotConnected,
    /// The connection broke before the answer came.
    Disconnected,
    /// The answer did not come in time.
    TimedOut,
    /// Several calls in a row have failed, so the store is not asked for a while: see
    /// [`StoreBuilder::breaker`](crate::StoreBuilder::breaker).
    CircuitOpen,
    /// As many requests as allowed are on their way.
    TooManyInFlight,
    /// The server cannot answer now: it loads its data, runs a long script, is a replica, has no
    /// memory left, or waits for its cluster.
    ServerNotReady,
    /// The slot of the key is on another node of a cluster, or on its way there. Requests for the
    /// slots of this node go on: it is no failure for the
    /// [breaker](crate::StoreBuilder::breaker).
    OtherNode,
    /// The server does not let this user run scripts, or the password is wrong. If the request is
    /// perhaps charged, the user has lost a right since the connection was made; the next request
    /// names it.
    NotPermitted,
    /// The server does not let this user run a command on keys of the store's prefix. Nothing was
    /// written. The README lists the commands.
    CommandNotPermitted {
        /// The name of the command.
        command: &'static str,
    },
    /// The keys of the dimensions are on different nodes of a cluster: see
    /// [`RedisJointLimiterBuilder::hash_tag`](crate::RedisJointLimiterBuilder::hash_tag).
    OtherSlot,
    /// The server answered something else than this version expects.
    Protocol,
}

impl Cause {
    /// Whether it says that the store is away, so that the next call would fail as well.
    pub(crate) const fn is_failure(self) -> bool {
        !matches!(self, Self::TooManyInFlight | Self::OtherNode | Self::OtherSlot | Self::CircuitOpen)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotConnected => "no connection to the server",
            Self::Disconnected => "the connection broke before the answer",
            Self::TimedOut => "no answer in time",
            Self::CircuitOpen => "the store has failed several times, and is not asked for a while",
            Self::TooManyInFlight => "too many requests are on their way",
            Self::ServerNotReady => "the server is not ready",
            Self::OtherNode => "the slot of the key is on another node of the cluster",
            Self::NotPermitted => "the server does not permit scripts to this user",
            Self::CommandNotPermitted { command } => {
                return write!(
                    f,
                    "the server does not permit {command} to this user on keys of the store's prefix: grant it by ACL \
                     SETUSER"
                );
            }
            Self::OtherSlot => "the keys are on different nodes of a cluster: set a hash tag",
            Self::Protocol => "the answer is not one of this protocol",
        })
    }
}
