//! A cache of values that were prepared for quotas.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use super::prepared::{Current, Prepared};

/// Values prepared for different quotas. The first few are found without a lock, and without a
/// write to memory that threads share. Where quotas change often or keys have their own, later
/// values have a bucket by their quotas, and replace the oldest there.
#[derive(Debug)]
pub(crate) struct Cache<V> {
    first: [OnceLock<Arc<Prepared<V>>>; 4],
    later: OnceLock<Box<[Bucket<V>]>>,
}

type Bucket<V> = RwLock<VecDeque<Arc<Prepared<V>>>>;

/// In all, 4,096 values: a few megabytes at most.
const BUCKETS: usize = 256;
const MOST_OF_A_BUCKET: usize = 16;

impl<V> Default for Cache<V> {
    fn default() -> Self {
        Self { first: [const { OnceLock::new() }; 4], later: OnceLock::new() }
    }
}

impl<V> Cache<V> {
    /// The first value, which is the current one where quotas never change.
    pub(crate) fn first(&self) -> Option<&Arc<Prepared<V>>> {
        self.first[0].get()
    }

    /// Finds the value for the current quotas, or makes it.
    pub(crate) fn find_or_make<R>(
        &self,
        current: &Current<'_>,
        make: impl Fn() -> Prepared<V>,
        look: impl FnOnce(&Arc<Prepared<V>>) -> R,
    ) -> R {
        for slot in &self.first {
            let prepared = slot.get_or_init(|| Arc::new(make()));
            if prepared.is(current) {
                return look(prepared);
            }
        }
        let buckets = self.later.get_or_init(|| (0..BUCKETS).map(|_| Bucket::default()).collect());
        let bucket = &buckets[current.spread(BUCKETS)];
        let values = bucket.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(prepared) = values.iter().find(|prepared| prepared.is(current)) {
            return look(prepared);
        }
        drop(values);
        look(&Self::keep(bucket, make()))
    }

    #[cold]
    fn keep(bucket: &Bucket<V>, prepared: Prepared<V>) -> Arc<Prepared<V>> {
        let prepared = Arc::new(prepared);
        let mut values = bucket.write().unwrap_or_else(PoisonError::into_inner);
        values.truncate(MOST_OF_A_BUCKET - 1);
        values.push_front(Arc::clone(&prepared));
        prepared
    }
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, Cache, MOST_OF_A_BUCKET};
    use bytes::Bytes;
    use tollgate::Quota;

    use crate::QuotaUnit;
    use crate::middleware::prepared::Current;

    /// Different quotas. As in a limiter, they stay where they are.
    fn quotas(count: u32) -> Vec<Quota> {
        (1..=count).map(Quota::per_minute).collect()
    }

    /// The number of values that are made when each quota is asked for once.
    fn made(cache: &Cache<Bytes>, quotas: &[Quota]) -> usize {
        let made = core::cell::Cell::new(0);
        for quota in quotas {
            let current = Current::new([(None, [*quota].into())]);
            let make = || {
                made.set(made.get() + 1);
                current.prepare("default", QuotaUnit::Requests)
            };
            let field = cache.find_or_make(&current, make, |prepared| prepared.field().cloned());
            assert_eq!(field.unwrap(), format!(r#""default";q={};w=60"#, quota.limit()));
        }
        made.get()
    }

    #[test]
    fn a_thousand_values_are_made_once() {
        let (cache, quotas) = (Cache::default(), quotas(1_000));
        assert_eq!(made(&cache, &quotas), 1_000);
        assert_eq!(made(&cache, &quotas), 0);
    }

    #[test]
    fn memory_is_bounded() {
        let (cache, quotas) = (Cache::default(), quotas(20_000));
        made(&cache, &quotas);
        let kept: usize = cache.later.get().unwrap().iter().map(|bucket| bucket.read().unwrap().len()).sum();
        assert!((BUCKETS * MOST_OF_A_BUCKET / 2..=BUCKETS * MOST_OF_A_BUCKET).contains(&kept), "{kept}");
        // The first four stay.
        assert_eq!(made(&cache, &quotas[..4]), 0);
    }
}
