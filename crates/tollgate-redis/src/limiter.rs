//! [`RedisLimiter`]: one key a request.

use std::sync::Arc;

use tollgate::{Decision, Quota, Status};

use crate::asked::Request;
use crate::counts::StoreCounts;
use crate::decision::Decided;
use crate::digest::KeyDigest;
use crate::engine::{Engine, Settings, decision_of};
use crate::error::{BuildError, StoreError};
use crate::faces::limiter_face;
use crate::failure::OnFailure;
use crate::plan::Given;
use crate::receipt::Receipt;
use crate::store::Store;

/// The name of the one dimension.
const DIMENSION: &str = "key";

/// A limit for each of many keys, which all nodes share that use the same store, secret and name.
///
/// A request is admitted if and only if at most N - n permits of its key are live on the server.
/// All of it happens in one script, on the server's clock. A denied request writes nothing.
///
/// ```no_run
/// use tollgate::{Decision, Quota};
/// use tollgate_redis::{RedisLimiter, Secret, Store};
///
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Store::new("redis://127.0.0.1:6379", Secret::new("the secret of all nodes")?)?;
/// let limiter = RedisLimiter::new(&store, "login", Quota::per_minute(5))?;
///
/// match *limiter.try_acquire("alice").await? {
///     Decision::Admitted(_) => println!("200"),
///     Decision::Denied(denial) => println!("429: {denial}"),
/// }
/// # Ok(())
/// # }
/// ```
///
/// A key is bytes: a `&str`, or the text of a number or an address, such as `user.to_string()`. All
/// nodes have to write it alike. A `PolicyLimiter` and `tollgate serve` write numbers and addresses as
/// text.
///
/// A future that is dropped before it is ready may have charged its permits.
#[derive(Debug)]
pub struct RedisLimiter {
    engine: Arc<Engine>,
}

impl RedisLimiter {
    /// Decides a request of one permit.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store did not decide.
    pub async fn try_acquire(&self, key: impl AsRef<[u8]>) -> Result<Decided<Decision>, StoreError> {
        self.try_acquire_n(key, 1).await
    }

    /// Decides a request of `cost` permits, granted together or not at all.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store did not decide, or the cost is more than a limit.
    pub async fn try_acquire_n(&self, key: impl AsRef<[u8]>, cost: u32) -> Result<Decided<Decision>, StoreError> {
        if let Some(admitted) = self.engine.spend(key.as_ref(), cost) {
            return Ok(admitted);
        }
        let request = Request::acquire(cost);
        self.engine.decide(&self.asked(key.as_ref())?, request).await.map(decision_of)
    }

    /// The same, with the permits left, as of one reading of the server's clock.
    ///
    /// ```
    /// use tollgate_redis::{RedisLimiter, StoreError};
    ///
    /// async fn headers(limiter: &RedisLimiter, user: &str) -> Result<(), StoreError> {
    ///     let status = limiter.try_acquire_status(user, 1).await?;
    ///     println!("{} of {} left", status.remaining(), status.limit());
    ///     println!("all of them in {:?}", status.reset_after());
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_acquire_n`](Self::try_acquire_n).
    pub async fn try_acquire_status(&self, key: impl AsRef<[u8]>, cost: u32) -> Result<Decided<Status>, StoreError> {
        let request = Request::acquire(cost).telling();
        self.engine.decide(&self.asked(key.as_ref())?, request).await
    }

    /// Decides a request of one permit that is in flight once it is admitted: it counts in each
    /// [concurrency limit](tollgate::Quota::concurrent) until its [guard](crate::InFlight) is dropped,
    /// on whichever node. A request by any other method is over at once there.
    ///
    /// A request enters if fewer others count than the limit. It counts until it leaves, and for at most
    /// the quota's [`max_hold`](tollgate::Quota::held_at_most): so one whose process dies counts no
    /// longer, and neither does one that takes longer. One call of the script decides on it and on the
    /// other quotas of the request; to leave is another call.
    ///
    /// ```
    /// use tollgate_redis::{InFlight, RedisLimiter, StoreError};
    ///
    /// /// The quota of the limiter is `Quota::concurrent(2)`.
    /// async fn begin(limiter: &RedisLimiter, user: &str) -> Result<Option<InFlight>, StoreError> {
    ///     let decided = limiter.try_enter(user).await?;
    ///     Ok(if decided.is_admitted() { Some(decided.enter().0) } else { None })
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire). A request that is perhaps charged leaves by itself. While
    /// the store is away, [`OnFailure::Local`] lets in the share of a node, and [`OnFailure::Admit`] any
    /// number.
    #[doc(alias = "semaphore", alias = "concurrency")]
    pub async fn try_enter(&self, key: impl AsRef<[u8]>) -> Result<Decided<Decision>, StoreError> {
        self.engine.enter(&self.asked(key.as_ref())?, Request::acquire(1)).await.map(decision_of)
    }

    /// What a request of `cost` permits would be told now. Nothing is charged or written. A cost of
    /// zero asks for the permits left alone.
    ///
    /// # Errors
    ///
    /// As [`try_acquire_n`](Self::try_acquire_n); nothing is ever charged.
    pub async fn peek(&self, key: impl AsRef<[u8]>, cost: u32) -> Result<Decided<Status>, StoreError> {
        let request = Request::peek(cost);
        self.engine.decide(&self.asked(key.as_ref())?, request).await
    }

    /// Gives the permits of a receipt back, as far as they still count. Returns how many.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store did not answer; the refund may have been made all the same. An
    /// error if the receipt is of another limiter.
    pub async fn refund(&self, receipt: Receipt) -> Result<u32, StoreError> {
        self.engine.refund(receipt).await
    }

    /// Charges what a request has cost in fact, and not what its receipt was charged, in one call
    /// of the script. Returns the permits that are charged then.
    ///
    /// It does what [`tollgate::Limiter::settle`] does: less is refunded, as far as it still
    /// counts, and more is *debt*, also above the limit, that the next requests of all nodes wait
    /// for. A receipt of a cost of zero is always to be had, so this charges work that cannot be
    /// refused, too.
    ///
    /// ```
    /// use tollgate_redis::{RedisLimiter, StoreError};
    ///
    /// async fn answer(limiter: &RedisLimiter, user: &str) -> Result<(), StoreError> {
    ///     let estimated = limiter.try_acquire_n(user, 300).await?;
    ///     if estimated.is_admitted() {
    ///         let tokens = 1_900; // The model has answered.
    ///         assert_eq!(limiter.settle(estimated.into_receipt(), tokens).await?, tokens);
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// How long debt lasts, and how much of it is kept, are those of the limiter in process.
    /// Besides:
    ///
    /// - A leaky queue refunds no place: a request that cost less stays charged what it was.
    /// - Permits of a [lease](RedisLimiterBuilder::lease) are settled as others. But a debt does
    ///   not recall leases: each node may admit what its lease of the key has left, at most its
    ///   `most`, until the step is over.
    /// - A receipt of a request that the store did not charge is settled without a call, and
    ///   nothing is charged: the request was denied, or admitted while the store was away
    ///   ([`OnFailure`]).
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store did not answer. The receipt is spent, so nothing is charged twice:
    /// the request stays charged what it was, or, if the error
    /// [says so](crate::Unavailable::is_perhaps_charged), it may have been settled.
    /// [`StoreCounts::unsettled`] counts it. An error if the receipt is of another limiter.
    #[doc(alias = "adjust")]
    pub async fn settle(&self, receipt: Receipt, actual: u32) -> Result<u32, StoreError> {
        self.engine.settle(receipt, actual).await
    }

    /// Forgets the key: all its permits are free. Returns whether the store knew it.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store did not answer.
    pub async fn forget(&self, key: impl AsRef<[u8]>) -> Result<bool, StoreError> {
        self.engine.forget((0, self.digest(key))).await
    }

    /// A limiter of one quota. Limiters of the same name share their permits, and each decides by
    /// its own quota; another window is [warned of](crate#a-name-and-a-change-of-its-policy). A key
    /// under another name is another key.
    ///
    /// # Errors
    ///
    /// [`BuildError`] for a quota that the store cannot keep exactly.
    pub fn new(store: &Store, name: &str, quota: Quota) -> Result<Self, BuildError> {
        Self::builder(store, name, quota).build()
    }

    /// A limiter of several quotas, or with other settings.
    pub fn builder(store: &Store, name: &str, quota: Quota) -> RedisLimiterBuilder {
        RedisLimiterBuilder {
            store: store.clone(),
            name: name.to_owned(),
            quotas: vec![quota],
            settings: Settings::default(),
        }
    }

    /// The quotas of each key, in the given order.
    #[must_use]
    pub fn quotas(&self) -> Arc<[Quota]> {
        Arc::clone(&self.engine.dimensions[0].quotas)
    }

    /// The digest of a key, as errors and the server's names of keys have it.
    #[must_use]
    pub fn digest(&self, key: impl AsRef<[u8]>) -> KeyDigest {
        self.engine.digest(0, key.as_ref())
    }

    fn asked(&self, key: &[u8]) -> Result<Vec<(usize, KeyDigest)>, StoreError> {
        self.engine.asked(&[Some(key)])
    }
}

limiter_face!(RedisLimiter, RedisLimiterBuilder);

/// The settings of a [`RedisLimiter`].
///
/// ```
/// use tollgate::Quota;
/// use tollgate_redis::{RedisLimiter, Secret, Store};
///
/// let store = Store::new("redis://127.0.0.1:6379", Secret::new("the secret of all nodes")?)?;
/// let builder = RedisLimiter::builder(&store, "api", Quota::per_second(10));
/// let limiter = builder.and(Quota::per_minute(100)).build()?;
/// assert_eq!(limiter.quotas().len(), 2);
/// # Ok::<(), tollgate_redis::BuildError>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct RedisLimiterBuilder {
    store: Store,
    name: String,
    quotas: Vec<Quota>,
    settings: Settings,
}

impl RedisLimiterBuilder {
    /// Adds a quota. Several quotas of a key are sliding window logs, and all of them must admit.
    pub fn and(mut self, quota: Quota) -> Self {
        self.quotas.push(quota);
        self
    }

    /// Takes permits in advance, in leases of at most `most`, and spends them without a round trip
    /// until the step is over that they were taken in. It needs one quota, a
    /// [quantised log](Quota::quantised_log), whose resolution is the step. None if it is not set.
    ///
    /// No window holds more than N, also if a node dies or is stopped. But permits that other nodes
    /// have leased and not spent deny requests, so waits are upper bounds.
    ///
    /// A lease is taken with a request that the store decides. The first request of a key takes
    /// none; the next ones take 1, 3, 7 permits and so on, at most an eighth of those that are
    /// left. So a limit below 8 has no leases. In later steps as many are taken as were spent. What
    /// was not spent is given back with the key's next call, or counts until its window is over. So
    /// take a step in which a node has tens of requests of a busy key.
    ///
    /// [`peek`](RedisLimiter::peek) and [`try_acquire_status`](RedisLimiter::try_acquire_status)
    /// ask the store, where a lease counts as taken. A machine that is suspended stops the clock by
    /// which it spends its leases, and can spend what they have left when it goes on.
    ///
    /// Leases are kept in so many slots. A key whose slot another one has in this step takes none,
    /// so give several times as many slots as there are busy keys.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    /// use tollgate_redis::{BuildError, RedisLimiter, Secret, Store};
    ///
    /// let store = Store::new("redis://127.0.0.1:6379", Secret::new("sixteen bytes or more")?)?;
    /// // At most 10,000 a minute, in steps of a second.
    /// let quota = Quota::quantised_log(10_000, Duration::from_secs(60), Duration::from_secs(1));
    /// let limiter = RedisLimiter::builder(&store, "api", quota).lease(100, 4096).build()?;
    /// // Only a quantised log has steps.
    /// let builder = RedisLimiter::builder(&store, "api", Quota::per_minute(10_000)).lease(100, 4096);
    /// assert!(matches!(builder.build(), Err(BuildError::NoLease { .. })));
    /// # Ok::<(), BuildError>(())
    /// ```
    pub fn lease(mut self, most: u32, slots: usize) -> Self {
        self.settings.leases = (most, slots);
        self
    }

    /// The limiter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] for quotas that the store cannot keep exactly.
    pub fn build(self) -> Result<RedisLimiter, BuildError> {
        let dimensions = vec![Given { name: DIMENSION.to_owned(), tier: None, quotas: self.quotas }];
        Ok(RedisLimiter { engine: Engine::new(&self.store, &self.name, dimensions, None, self.settings)? })
    }
}
