//! Decisions on the store of a policy: a log is played against a real server.

use core::fmt;
use core::time::Duration;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use tokio::runtime::{Builder, Runtime};
use tollgate::MockClock;
use tollgate_policy::{Given, Policy};
use tollgate_redis::{BuildError, OnFailure, RedisJointLimiter, Secret, Store, StoreError};

use crate::errors::RunError;
use crate::events::Event;
use crate::outcome::Verdict;
use crate::terminal;
use crate::text::harmless;

/// The longest time of a call. A service would not wait so long, but here nobody waits.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A limiter on a store, at the times of a log, under a prefix of its own. Its keys are removed when it
/// is dropped.
pub(crate) struct OnStore {
    limiter: RedisJointLimiter,
    clock: MockClock,
    runtime: Runtime,
    prefix: String,
    /// The keys that the store may have, in their dimensions, each with the place of its tier.
    asked: Vec<HashSet<(Option<usize>, Box<str>)>>,
    /// Requests at times that are no whole microseconds.
    rounded: u64,
}

/// Why no limiter on a store can be made of a policy that has one. Its secret, and an address that is not
/// in the file, need not be here.
pub(crate) fn refusal(policy: &Policy) -> Option<String> {
    let table = policy.store()?;
    let url = if let Given::Text(url) = table.url() { url } else { "redis://localhost" };
    let build = || {
        let store = Store::builder(url, Secret::new("in place of the secret")?);
        let store = store.prefix(table.prefix().unwrap_or("tollgate")).build()?;
        RedisJointLimiter::from_policy_on(&store, policy)?.build()
    };
    build().err().map(|error: BuildError| error.to_string())
}

impl OnStore {
    pub(crate) fn new(policy: &Policy, file: &str) -> Result<Self, RunError> {
        let refused = |error: BuildError| RunError::Options(harmless(&format!("{file}: {error}")));
        let (clock, own) = (MockClock::new(), policy.store().and_then(|store| store.prefix()).unwrap_or("tollgate"));
        let prefix = format!("{own}-replay-{:016x}", RandomState::new().hash_one(std::process::id()));
        let store = Store::from_policy(policy).map_err(refused)?.prefix(&prefix).timeout(TIMEOUT);
        let store = store.log_clock(clock.clone()).build().map_err(refused)?;
        let limiter = RedisJointLimiter::from_policy_on(&store, policy).map_err(refused)?;
        if policy.store().is_some_and(|store| store.lease().is_some()) {
            terminal::complain(&format!(
                "tollgate: {}: the lease is not played: each request is decided by the store, where nodes with leases may \
                 deny requests that these rows admit",
                harmless(file)
            ));
        }
        // Leases and denials are kept by the time of this process, and a store that is away decides nothing.
        let limiter = limiter.lease(0, 0).cache_denials(0).on_failure(OnFailure::Refuse).build().map_err(refused)?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| RunError::Store(format!("no runtime for the store: {error}")))?;
        let asked = vec![HashSet::new(); policy.dimensions().len()];
        Ok(Self { limiter, clock, runtime, prefix, asked, rounded: 0 })
    }

    /// Decides a request with these keys, each by one of the sets of quotas of its dimension.
    pub(crate) fn decide(
        &mut self,
        event: &Event,
        texts: &[Option<&str>],
        sets: &[usize],
    ) -> Result<Verdict, RunError> {
        let before = |_| RunError::Store("the store counts time from 1970, and a request is from before".to_owned());
        self.clock.set(u64::try_from(event.time).map_err(before)?);
        self.rounded += u64::from(event.time % 1_000 != 0);
        // The first set is that of the dimension, and its tiers follow.
        let tiers: Vec<Option<usize>> = sets.iter().map(|set| set.checked_sub(1)).collect();
        for ((asked, text), tier) in self.asked.iter_mut().zip(texts).zip(&tiers) {
            asked.extend(text.map(|text| (*tier, text.into())));
        }
        let keys: Vec<Option<&[u8]>> = texts.iter().map(|text| text.map(str::as_bytes)).collect();
        match self.runtime.block_on(self.limiter.try_acquire_in(&keys, &tiers, event.cost)) {
            Ok(decided) => Ok((*decided).into()),
            Err(StoreError::CostExceedsLimit { .. }) => Ok(Verdict::NeverPasses),
            Err(error) => Err(RunError::Store(error.to_string())),
        }
    }

    /// Removes all keys; the first error ends it.
    async fn remove(&self) -> Result<(), StoreError> {
        let counts = self.limiter.counts();
        if counts.admitted + counts.denied + counts.perhaps_charged == 0 {
            return Ok(());
        }
        for (dimension, asked) in self.asked.iter().enumerate() {
            for (tier, text) in asked {
                self.limiter.forget_in(dimension, *tier, text.as_bytes()).await?;
            }
        }
        Ok(())
    }
}

impl Drop for OnStore {
    fn drop(&mut self) {
        if self.rounded > 0 {
            terminal::complain(&format!(
                "tollgate: the store decided {} requests at whole microseconds: their times have less",
                self.rounded
            ));
        }
        if let Err(error) = self.runtime.block_on(self.remove()) {
            terminal::complain(&format!(
                "tollgate: keys under {}: stay on the store, and expire within a day: {error}",
                harmless(&self.prefix)
            ));
        }
    }
}

impl fmt::Debug for OnStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnStore").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}
