//! [`RedisJointLimiter`]: several keys a request, charged to all or to none.

use std::sync::Arc;

use tollgate::{Decision, Quota, Status};
#[cfg(feature = "policy")]
use tollgate_policy::PolicyTier;

use crate::asked::Request;
use crate::counts::StoreCounts;
use crate::decision::Decided;
use crate::digest::KeyDigest;
use crate::engine::{Engine, Settings, decision_of};
use crate::error::{BuildError, StoreError};
use crate::faces::limiter_face;
use crate::failure::OnFailure;
use crate::plan::Given;
#[cfg(feature = "policy")]
use crate::plan::Tier;
use crate::receipt::Receipt;
use crate::store::Store;

/// A limit on several keys of a request at once, charged to all or to none, at one instant.
///
/// A request gives a key for each dimension, or `None` where it has none.
///
/// ```no_run
/// use tollgate::Quota;
/// use tollgate_redis::{RedisJointLimiter, Secret, Store};
///
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Store::new("redis://127.0.0.1:6379", Secret::new("the secret of all nodes")?)?;
/// let limiter = RedisJointLimiter::builder(&store, "api")
///     .dimension("user", [Quota::per_second(10), Quota::per_minute(100)])
///     .dimension("tenant", [Quota::per_minute(300)])
///     .build()?;
/// let tenant = 7_u64.to_string();
/// let decision = limiter.try_acquire(&[Some(b"alice"), Some(tenant.as_bytes())]).await?;
/// if let Err(denial) = decision.into_result() {
///     println!("by {}", limiter.dimension(denial.dimension()));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RedisJointLimiter {
    engine: Arc<Engine>,
}

impl RedisJointLimiter {
    /// Decides a request of one permit in each dimension.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store did not decide, or the keys are not those of the dimensions.
    pub async fn try_acquire(&self, keys: &[Option<&[u8]>]) -> Result<Decided<Decision>, StoreError> {
        self.try_acquire_n(keys, 1).await
    }

    /// Decides a request of `cost` permits in each dimension, granted together or not at all.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire), and if the cost is more than a limit.
    pub async fn try_acquire_n(&self, keys: &[Option<&[u8]>], cost: u32) -> Result<Decided<Decision>, StoreError> {
        if let &[Some(key)] = keys
            && let Some(admitted) = self.engine.spend(key, cost)
        {
            return Ok(admitted);
        }
        let request = Request::acquire(cost);
        self.engine.decide(&self.engine.asked(keys)?, request).await.map(decision_of)
    }

    /// The same, with the permits left.
    ///
    /// # Errors
    ///
    /// As [`try_acquire_n`](Self::try_acquire_n).
    pub async fn try_acquire_status(&self, keys: &[Option<&[u8]>], cost: u32) -> Result<Decided<Status>, StoreError> {
        let request = Request::acquire(cost).telling();
        self.engine.decide(&self.engine.asked(keys)?, request).await
    }

    /// The same, without a round trip where a [lease](RedisJointLimiterBuilder::lease) or a
    /// [cached denial](RedisJointLimiterBuilder::cache_denials) decides.
    ///
    /// By a lease, the permits left are what the store said to the key's last call, less what was
    /// spent here since. What other nodes took since is not known. By a cached denial the only quota
    /// that is told is the one that decides the wait. [`try_acquire_status`](Self::try_acquire_status)
    /// always asks the store.
    ///
    /// ```
    /// use tollgate_redis::{DecidedBy, RedisJointLimiter, StoreError};
    ///
    /// async fn is_told_by_the_store(limiter: &RedisJointLimiter, user: &[u8]) -> Result<bool, StoreError> {
    ///     let status = limiter.try_acquire_known(&[Some(user)], 1).await?;
    ///     println!("{} left", status.remaining());
    ///     Ok(status.decided_by() == DecidedBy::Store)
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_acquire_n`](Self::try_acquire_n).
    pub async fn try_acquire_known(&self, keys: &[Option<&[u8]>], cost: u32) -> Result<Decided<Status>, StoreError> {
        self.engine.decide_known(&self.engine.asked(keys)?, cost).await
    }

    /// Decides a request of one permit that is in flight once it is admitted, until its
    /// [guard](crate::InFlight) is dropped: see [`RedisLimiter::try_enter`](crate::RedisLimiter::try_enter).
    /// One call of the script decides on all quotas of the request.
    ///
    /// ```
    /// use tollgate_redis::{InFlight, RedisJointLimiter, StoreError};
    ///
    /// /// The dimensions are requests a minute, and requests in flight.
    /// async fn begin(limiter: &RedisJointLimiter, user: &[u8]) -> Result<Option<InFlight>, StoreError> {
    ///     let decided = limiter.try_enter(&[Some(user), Some(user)]).await?;
    ///     Ok(if decided.is_admitted() { Some(decided.enter().0) } else { None })
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`RedisLimiter::try_enter`](crate::RedisLimiter::try_enter).
    #[doc(alias = "semaphore", alias = "concurrency")]
    pub async fn try_enter(&self, keys: &[Option<&[u8]>]) -> Result<Decided<Decision>, StoreError> {
        self.try_enter_n(keys, 1).await
    }

    /// As [`try_enter`](Self::try_enter), with a cost in the other quotas. A request of any cost is
    /// one in flight.
    ///
    /// # Errors
    ///
    /// As [`try_acquire_n`](Self::try_acquire_n).
    pub async fn try_enter_n(&self, keys: &[Option<&[u8]>], cost: u32) -> Result<Decided<Decision>, StoreError> {
        self.engine.enter(&self.engine.asked(keys)?, Request::acquire(cost)).await.map(decision_of)
    }

    /// What a request of `cost` permits would be told now. Nothing is charged or written.
    ///
    /// # Errors
    ///
    /// As [`try_acquire_n`](Self::try_acquire_n); nothing is ever charged.
    pub async fn peek(&self, keys: &[Option<&[u8]>], cost: u32) -> Result<Decided<Status>, StoreError> {
        let request = Request::peek(cost);
        self.engine.decide(&self.engine.asked(keys)?, request).await
    }

    /// Decides a request as [`try_acquire_n`](Self::try_acquire_n) does, with keys in these tiers, by
    /// their places in the policy.
    ///
    /// # Errors
    ///
    /// As [`try_acquire_n`](Self::try_acquire_n).
    #[cfg(feature = "policy")]
    #[doc(hidden)]
    pub async fn try_acquire_in(
        &self,
        keys: &[Option<&[u8]>],
        tiers: &[Option<usize>],
        cost: u32,
    ) -> Result<Decided<Decision>, StoreError> {
        if tiers.iter().all(Option::is_none) {
            return self.try_acquire_n(keys, cost).await;
        }
        let request = Request::acquire(cost);
        self.engine.decide(&self.engine.asked_in(keys, tiers)?, request).await.map(decision_of)
    }

    /// Decides a request as [`try_acquire_known`](Self::try_acquire_known) or [`peek`](Self::peek) does,
    /// with keys in these tiers, by their places in the policy.
    ///
    /// # Errors
    ///
    /// As [`try_acquire_n`](Self::try_acquire_n).
    #[cfg(feature = "policy")]
    #[doc(hidden)]
    pub async fn decide_in(
        &self,
        keys: &[Option<&[u8]>],
        tiers: &[Option<usize>],
        cost: u32,
        is_peek: bool,
    ) -> Result<Decided<Status>, StoreError> {
        let asked = self.engine.asked_in(keys, tiers)?;
        match is_peek {
            true => self.engine.decide(&asked, Request::peek(cost)).await,
            false => self.engine.decide_known(&asked, cost).await,
        }
    }

    /// Decides a request as [`try_enter_n`](Self::try_enter_n) does, with keys in these tiers, by their
    /// places in the policy, and tells what is left as far as it is known.
    ///
    /// # Errors
    ///
    /// As [`try_acquire_n`](Self::try_acquire_n).
    #[cfg(feature = "policy")]
    #[doc(hidden)]
    pub async fn enter_in(
        &self,
        keys: &[Option<&[u8]>],
        tiers: &[Option<usize>],
        cost: u32,
    ) -> Result<Decided<Status>, StoreError> {
        self.engine.enter(&self.engine.asked_in(keys, tiers)?, Request::acquire(cost).telling()).await
    }

    /// The quotas of a tier, by its place in the policy.
    #[cfg(feature = "policy")]
    #[doc(hidden)]
    #[must_use]
    pub fn quotas_in(&self, dimension: usize, tier: usize) -> Option<Arc<[Quota]>> {
        let place = self.engine.place(dimension, Some(tier))?;
        Some(Arc::clone(&self.engine.dimensions[place].quotas))
    }

    /// Gives the permits of a receipt back in all dimensions at once, as far as they still count.
    /// Returns the largest number that was given back in a dimension.
    ///
    /// # Errors
    ///
    /// As [`RedisLimiter::refund`](crate::RedisLimiter::refund).
    pub async fn refund(&self, receipt: Receipt) -> Result<u32, StoreError> {
        self.engine.refund(receipt).await
    }

    /// Charges each key of a receipt what its request has cost in fact, and not what it was
    /// charged. All of them change at one instant. Returns the permits that are charged then, in
    /// the dimension with the fewest. See [`RedisLimiter::settle`](crate::RedisLimiter::settle).
    ///
    /// ```
    /// use tollgate_redis::{RedisJointLimiter, StoreError};
    ///
    /// async fn answer(limiter: &RedisJointLimiter, user: &[u8], tenant: &[u8]) -> Result<(), StoreError> {
    ///     let estimated = limiter.try_acquire_n(&[Some(user), Some(tenant)], 300).await?;
    ///     if estimated.is_admitted() {
    ///         // The model has answered.
    ///         limiter.settle(estimated.into_receipt(), 1_900).await?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`RedisLimiter::settle`](crate::RedisLimiter::settle). If one key cannot be settled, none
    /// is.
    #[doc(alias = "adjust")]
    pub async fn settle(&self, receipt: Receipt, actual: u32) -> Result<u32, StoreError> {
        self.engine.settle(receipt, actual).await
    }

    /// Forgets a key of one dimension: all its permits are free. Returns whether the store knew it.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if there is no such dimension, or the store did not answer.
    pub async fn forget(&self, dimension: usize, key: impl AsRef<[u8]>) -> Result<bool, StoreError> {
        self.forget_in(dimension, None, key).await
    }

    /// Forgets a key in a tier, by its place in the policy.
    ///
    /// # Errors
    ///
    /// As [`forget`](Self::forget), and if there is no such tier.
    #[doc(hidden)]
    pub async fn forget_in(
        &self,
        dimension: usize,
        tier: Option<usize>,
        key: impl AsRef<[u8]>,
    ) -> Result<bool, StoreError> {
        let wrong = StoreError::WrongKeys { keys: dimension + 1, dimensions: self.engine.own };
        let place = self.engine.place(dimension, tier).ok_or(wrong)?;
        self.engine.forget((place, self.digest(place, key))).await
    }

    /// A limiter of dimensions that are still to be given.
    pub fn builder(store: &Store, name: &str) -> RedisJointLimiterBuilder {
        let (store, name, settings) = (store.clone(), name.to_owned(), Settings::default());
        RedisJointLimiterBuilder { store, name, dimensions: vec![], tiers: vec![], tag: None, settings }
    }

    /// The name of a dimension.
    ///
    /// # Panics
    ///
    /// If there is no such dimension.
    #[must_use]
    pub fn dimension(&self, dimension: usize) -> &str {
        &self.engine.dimensions[dimension].name
    }

    /// The name and the quotas of each dimension.
    ///
    /// ```
    /// use tollgate::Quota;
    /// use tollgate_redis::{RedisJointLimiter, Secret, Store};
    ///
    /// let store = Store::new("redis://127.0.0.1:6379", Secret::new("sixteen bytes or more")?)?;
    /// let limiter = RedisJointLimiter::builder(&store, "api").dimension("user", [Quota::per_minute(5)]).build()?;
    /// assert_eq!(limiter.dimensions().next(), Some(("user", [Quota::per_minute(5)].into())));
    /// # Ok::<(), tollgate_redis::BuildError>(())
    /// ```
    #[must_use]
    pub fn dimensions(&self) -> impl ExactSizeIterator<Item = (&str, Arc<[Quota]>)> {
        let own = self.engine.dimensions[..self.engine.own].iter();
        own.map(|dimension| (dimension.name.as_str(), Arc::clone(&dimension.quotas)))
    }

    /// The digest of a key, as errors and the server's names of keys have it.
    #[must_use]
    pub fn digest(&self, dimension: usize, key: impl AsRef<[u8]>) -> KeyDigest {
        self.engine.digest(dimension, key.as_ref())
    }
}

limiter_face!(RedisJointLimiter, RedisJointLimiterBuilder);

/// The settings of a [`RedisJointLimiter`].
///
/// ```
/// use tollgate::Quota;
/// use tollgate_redis::{BuildError, RedisJointLimiter, Secret, Store};
///
/// let store = Store::new("redis://127.0.0.1:6379", Secret::new("the secret of all nodes")?)?;
/// let builder = RedisJointLimiter::builder(&store, "api").dimension("user", [Quota::per_minute(5)]);
/// assert!(builder.hash_tag("api").build().is_ok());
/// // There are no dimensions.
/// assert!(RedisJointLimiter::builder(&store, "api").build().is_err());
/// # Ok::<(), BuildError>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct RedisJointLimiterBuilder {
    store: Store,
    name: String,
    dimensions: Vec<Given>,
    tiers: Vec<Given>,
    tag: Option<String>,
    settings: Settings,
}

impl RedisJointLimiterBuilder {
    /// Adds a dimension with its quotas.
    pub fn dimension(mut self, name: impl Into<String>, quotas: impl IntoIterator<Item = Quota>) -> Self {
        self.dimensions.push(Given { name: name.into(), tier: None, quotas: quotas.into_iter().collect() });
        self
    }

    /// Adds a tier to a dimension, at this place of the dimension's tiers.
    #[cfg(feature = "policy")]
    pub(crate) fn tier(mut self, dimension: usize, place: usize, tier: &PolicyTier) -> Self {
        let name = self.dimensions[dimension].name.clone();
        let quotas = tier.quotas().to_vec();
        self.tiers.push(Given { name, tier: Some(Tier { dimension, place, name: tier.name().to_owned() }), quotas });
        self
    }

    /// Puts all keys of this limiter on one node of a cluster, where one script can reach them.
    ///
    /// Without it each key is on a node of its own. Then a cluster refuses requests with more than
    /// one key ([`Cause::OtherSlot`](crate::Cause::OtherSlot)).
    pub fn hash_tag(mut self, tag: impl Into<String>) -> Self {
        self.tag = Some(tag.into());
        self
    }

    /// Takes permits in advance, in leases of at most `most` in so many slots, and spends them without
    /// a round trip: see [`RedisLimiterBuilder::lease`](crate::RedisLimiterBuilder::lease). It needs
    /// one dimension with one quota, a [quantised log](Quota::quantised_log). None if it is not set.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    /// use tollgate_redis::{BuildError, RedisJointLimiter, Secret, Store};
    ///
    /// let store = Store::new("redis://127.0.0.1:6379", Secret::new("the secret of all nodes")?)?;
    /// // At most 10,000 a minute, in steps of a second.
    /// let quota = Quota::quantised_log(10_000, Duration::from_secs(60), Duration::from_secs(1));
    /// let builder = RedisJointLimiter::builder(&store, "api").dimension("user", [quota]).lease(100, 4096);
    /// assert!(builder.build().is_ok());
    /// let builder = RedisJointLimiter::builder(&store, "api").dimension("user", [quota]).lease(100, 4096);
    /// let error = builder.dimension("tenant", [quota]).build().unwrap_err();
    /// assert!(matches!(error, BuildError::NoLease { .. }));
    /// # Ok::<(), BuildError>(())
    /// ```
    pub fn lease(mut self, most: u32, slots: usize) -> Self {
        self.settings.leases = (most, slots);
        self
    }

    #[cfg(feature = "policy")]
    pub(crate) fn local_keys(mut self, key_cap: Option<usize>, at_key_cap: tollgate::AtKeyCap) -> Self {
        self.settings.local_keys = (key_cap, at_key_cap);
        self
    }

    /// The limiter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] for dimensions that the store cannot keep exactly.
    pub fn build(self) -> Result<RedisJointLimiter, BuildError> {
        let Self { store, name, mut dimensions, tiers, tag, settings } = self;
        dimensions.extend(tiers);
        Ok(RedisJointLimiter { engine: Engine::new(&store, &name, dimensions, tag.as_deref(), settings)? })
    }
}
