//! [`StoreCounts`]: what a limiter has done.

use std::sync::atomic::{AtomicU64, Ordering};

/// The numbers of requests of a limiter since it was built, by what became of them.
///
/// A request whose caller went away before the answer is counted by what became of it, as any
/// other.
///
/// The requests that the store charged are those `admitted`, and at most those `perhaps_charged`.
/// With leases it has charged besides the permits that are `leased` and at most those
/// `perhaps_leased`, without those `given_back`. Receipts that are
/// [settled](crate::RedisLimiter::settle) change what their requests are charged.
///
/// ```
/// use tollgate::Quota;
/// use tollgate_redis::{RedisLimiter, Secret, Store, StoreCounts};
///
/// let store = Store::new("redis://127.0.0.1", Secret::new("sixteen bytes or more")?)?;
/// let limiter = RedisLimiter::new(&store, "login", Quota::per_minute(5))?;
/// assert_eq!(limiter.counts(), StoreCounts::default());
/// # Ok::<(), tollgate_redis::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StoreCounts {
    /// Admitted and charged by the store.
    pub admitted: u64,
    /// Admitted by permits that were leased, without the store.
    pub admitted_by_lease: u64,
    /// Denied by the store.
    pub denied: u64,
    /// Denied by a cached denial, without the store.
    pub denied_by_cache: u64,
    /// Not decided by the store.
    pub unavailable: u64,
    /// Of these, those that the store may have charged.
    pub perhaps_charged: u64,
    /// Of those not decided, those that the limiter admitted without a charge.
    pub admitted_uncounted: u64,
    /// Of those not decided, those that the local limiter admitted.
    pub admitted_locally: u64,
    /// Of those not decided, those that the local limiter denied.
    pub denied_locally: u64,
    /// Of those admitted by the store, those whose caller went away before the answer.
    pub abandoned: u64,
    /// Permits taken in advance, by leases.
    pub leased: u64,
    /// Permits of leases that the store may have charged, and did not tell.
    pub perhaps_leased: u64,
    /// Permits of leases that nobody spent, and that the store took back.
    pub given_back: u64,
    /// Receipts that the store settled or refunded, also such of which nothing counted any more.
    pub settled: u64,
    /// Receipts that were not settled or refunded, because the store did not answer, or refused. It
    /// may have done it all the same.
    pub unsettled: u64,
    /// Requests in flight that have left.
    pub released: u64,
    /// Requests whose leaving the store did not answer, or refused. Each may count until its
    /// `max_hold` is over.
    pub unreleased: u64,
    /// Calls of the store that decided requests. Requests that waited for one reply took one call.
    pub calls: u64,
}

macro_rules! counters {
    ($($name:ident),+) => {
        /// The same as counters.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)+
        }

        impl Counters {
            pub(crate) fn read(&self) -> StoreCounts {
                StoreCounts { $($name: self.$name.0.load(Ordering::Relaxed),)+ }
            }
        }
    };
}

counters! {
    admitted, denied, denied_by_cache, unavailable, perhaps_charged, admitted_uncounted, admitted_locally,
    denied_locally, abandoned, calls, admitted_by_lease, leased, perhaps_leased, given_back, settled, unsettled,
    released, unreleased
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self) {
        self.add_many(1_u64);
    }

    pub(crate) fn add_many(&self, number: impl Into<u64>) {
        self.0.fetch_add(number.into(), Ordering::Relaxed);
    }
}
