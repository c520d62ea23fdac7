//! [`OnFailure`]: what a limiter does while its store is away.

use core::hash::{Hash, Hasher};
use core::time::Duration;
use std::sync::Arc;

use tollgate::{
    Admission, Algorithm, AsKey, AtKeyCap, Decision, JointLimiter, Quota, QuotaStatus, ReserveError, Status, Tier,
};

use crate::asked::{Asked, Request};
use crate::decision::{Decided, DecidedBy};
use crate::error::BuildError;
use crate::in_flight::InFlight;
use crate::plan::Dimension;

/// What a limiter does with requests that its store does not decide.
///
/// | | while the store is away | keeps |
/// |---|---|---|
/// | `Refuse` | an [error](crate::Unavailable) | never over N |
/// | `Local { nodes }` | each of the nodes decides by N / nodes of its own | at most 2 N in a window |
/// | `Admit` | all are admitted, and none counted | no bound |
///
/// A request that was sent and not answered is perhaps charged in the store all the same.
///
/// ```
/// use tollgate::Quota;
/// use tollgate_redis::{OnFailure, RedisLimiter, Secret, Store};
///
/// let store = Store::new("redis://127.0.0.1", Secret::new("sixteen bytes or more")?)?;
/// let builder = RedisLimiter::builder(&store, "api", Quota::per_minute(100));
/// assert!(builder.on_failure(OnFailure::Local { nodes: 4 }).build().is_ok());
/// // Less than one permit for each node.
/// let builder = RedisLimiter::builder(&store, "login", Quota::per_minute(3));
/// assert!(builder.on_failure(OnFailure::Local { nodes: 4 }).build().is_err());
/// # Ok::<(), tollgate_redis::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnFailure {
    /// Fail closed: the request is an error, and is not admitted. No window holds more than N.
    #[default]
    Refuse,
    /// Fail open: the request is admitted without a charge. There is no bound.
    /// [`Admission::is_counted`] tells, and [`DecidedBy::Nobody`].
    Admit,
    /// Fall back: a limiter in this process decides, with the share of one node of each limit. A
    /// window that spans a change holds at most N permits of the store and N of all nodes, together
    /// 2 N. N alone is exceeded as soon as the store admits as well.
    Local {
        /// How many nodes there are, at least one. More nodes than this exceed the bound.
        nodes: u32,
    },
}

/// The same, ready to decide.
#[derive(Debug)]
pub(crate) enum Fallback {
    Refuse,
    Admit,
    Local(Box<Local>),
}

/// A limiter in process, and its tiers by their places among the dimensions and tiers.
#[derive(Debug)]
pub(crate) struct Local {
    limiter: Arc<JointLimiter<[LocalKey]>>,
    tiers: Vec<Tier>,
}

/// The digest of a key, and its tier.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct LocalKey {
    digest: u128,
    tier: Tier,
}

impl AsKey<Self> for LocalKey {
    fn hash_key<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }

    fn tier(&self) -> Tier {
        self.tier
    }
}

impl Fallback {
    pub(crate) fn new(
        on_failure: OnFailure,
        (key_cap, at_key_cap): (Option<usize>, AtKeyCap),
        dimensions: &[Dimension],
    ) -> Result<Self, BuildError> {
        let OnFailure::Local { nodes } = on_failure else {
            return Ok(if on_failure == OnFailure::Admit { Self::Admit } else { Self::Refuse });
        };
        if nodes == 0 {
            return Err(BuildError::NoNodes);
        }
        let mut builder = JointLimiter::<[LocalKey]>::builder().at_key_cap(at_key_cap);
        if let Some(key_cap) = key_cap {
            builder = builder.key_cap(key_cap);
        }
        for dimension in dimensions {
            let shares = dimension.quotas.iter().map(|quota| share(quota, nodes)).collect::<Result<Vec<_>, _>>()?;
            builder = match &dimension.tier {
                None => builder.dimension(dimension.name.as_str(), shares),
                Some(tier) => builder.tier(tier.dimension, tier.name.as_str(), shares),
            };
        }
        let limiter = Arc::new(builder.build()?);
        let tier = |it: &Dimension| limiter.tier(it.told, &it.tier.as_ref()?.name);
        let tiers = dimensions.iter().map(|it| tier(it).unwrap_or_default()).collect();
        Ok(Self::Local(Box::new(Local { limiter, tiers })))
    }

    /// The answer to a request that the store does not decide; `None` if there is none.
    pub(crate) fn decide(
        &self,
        dimensions: &[Dimension],
        asked: &[Asked],
        request: Request,
    ) -> Option<Decided<Status>> {
        match self {
            Self::Refuse => None,
            // What is left is not known.
            Self::Admit if !request.charges => None,
            Self::Admit => {
                let all = asked.iter().flat_map(|&(place, _)| {
                    let dimension = &dimensions[place];
                    dimension.quotas.iter().enumerate().map(move |(quota, it)| untouched((dimension.told, quota), it))
                });
                let status = Status::new(Decision::Admitted(Admission::UNCOUNTED), request.cost, all);
                Some(Decided::uncharged(status, DecidedBy::Nobody))
            }
            Self::Local(local) => {
                let Local { limiter, tiers } = &**local;
                let mut keys: Vec<Option<LocalKey>> = vec![None; limiter.dimensions().len()];
                for &(place, digest) in asked {
                    keys[dimensions[place].told] = Some(LocalKey { digest: digest.0, tier: tiers[place] });
                }
                // A cost above the share is never admitted here, so the store's answer stands.
                let (status, in_flight) = match request {
                    Request { enters: Some(_), cost, .. } => enter(limiter, &keys, cost)?,
                    Request { charges: true, cost, .. } => (limiter.try_acquire_n_status(&*keys, cost).ok()?, None),
                    Request { cost, .. } => (limiter.peek_n(&*keys, cost).ok()?, None),
                };
                // What is left of the share, under the limit of all nodes.
                let quotas = status.quotas().map(|left| {
                    let (dimension, quota) = (left.dimension(), left.quota());
                    let limit = Dimension::told(dimensions, asked, dimension).map_or(0, |it| it.quotas[quota].limit());
                    if left.counts_requests() {
                        return QuotaStatus::in_flight((dimension, quota), (limit, left.remaining()));
                    }
                    let numbers = (limit, left.remaining(), left.next_after(), left.reset_after());
                    QuotaStatus::new((dimension, quota), numbers)
                });
                let status = Status::new(status.decision(), request.cost, quotas);
                Some(Decided::uncharged(status, DecidedBy::Local).in_flight(in_flight))
            }
        }
    }
}

/// A quota of which nothing is taken.
fn untouched(place: (usize, usize), quota: &Quota) -> QuotaStatus {
    let limit = quota.limit();
    match quota.algorithm() {
        Algorithm::Concurrency => QuotaStatus::in_flight(place, (limit, limit)),
        _ => QuotaStatus::new(place, (limit, limit, Duration::ZERO, Duration::ZERO)),
    }
}

/// Decides a request that is in flight once it is admitted.
fn enter(
    limiter: &Arc<JointLimiter<[LocalKey]>>,
    keys: &[Option<LocalKey>],
    cost: u32,
) -> Option<(Status, Option<InFlight>)> {
    match limiter.reserve_owned(keys, cost) {
        Ok(reservation) => {
            let status = reservation.status().clone();
            let (guard, _) = reservation.enter();
            let in_flight = guard.counts().then(|| InFlight::local(guard));
            Some((status, in_flight))
        }
        Err(ReserveError::Denied(denial)) => {
            let left = limiter.peek_n(keys, cost).ok()?;
            Some((Status::new(Decision::Denied(denial), cost, left.quotas()), None))
        }
        Err(_) => None,
    }
}

/// The share of one of so many nodes, rounded down.
fn share(quota: &Quota, nodes: u32) -> Result<Quota, BuildError> {
    let (permits, per) = quota.rate().unwrap_or_default();
    let (limit, slower) = (quota.limit() / nodes, per.saturating_mul(nodes));
    if limit == 0 {
        return Err(BuildError::NoShare { quota: Box::new(*quota), nodes });
    }
    let share = match quota.algorithm() {
        Algorithm::TokenBucket => Quota::token_bucket(limit, permits, slower),
        Algorithm::LeakyBucket => Quota::leaky_bucket(limit, permits, slower),
        Algorithm::LeakyQueue => Quota::leaky_queue(permits, slower, quota.max_delay().unwrap_or_default()),
        Algorithm::FixedWindow => match quota.calendar_window() {
            Some((calendar, zone)) => Quota::calendar(limit, calendar, zone),
            None => Quota::fixed_window(limit, quota.window()),
        },
        Algorithm::SlidingCounter => Quota::sliding_counter(limit, quota.window() / 2),
        Algorithm::Concurrency => Quota::concurrent(limit),
        Algorithm::QuantisedLog => {
            let resolution = quota.resolution().unwrap_or_default();
            Quota::quantised_log(limit, quota.window() - resolution, resolution)
        }
        _ => Quota::new(limit, quota.window()),
    };
    Ok(quota.start().map_or(share, |start| share.starting_with(start / nodes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_all_nodes_are_no_more_than_the_whole() {
        let minute = Duration::from_secs(60);
        for (quota, expected) in [
            (Quota::per_minute(100), Quota::per_minute(33)),
            (Quota::token_bucket(10, 7, minute), Quota::token_bucket(3, 7, minute * 3)),
            (Quota::leaky_bucket(10, 7, minute), Quota::leaky_bucket(3, 7, minute * 3)),
            (Quota::fixed_window(10, minute), Quota::fixed_window(3, minute)),
            (Quota::concurrent(10), Quota::concurrent(3)),
            (Quota::sliding_counter(10, minute), Quota::sliding_counter(3, minute)),
            (
                Quota::quantised_log(10, minute, Duration::from_secs(1)),
                Quota::quantised_log(3, minute, Duration::from_secs(1)),
            ),
            (
                Quota::token_bucket(9, 1, minute).starting_with(5),
                Quota::token_bucket(3, 1, minute * 3).starting_with(1),
            ),
        ] {
            assert_eq!(share(&quota, 3).unwrap(), expected);
        }
        assert!(share(&Quota::per_minute(2), 3).is_err());
    }
}
