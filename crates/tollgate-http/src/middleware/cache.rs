//! A cache of values that were prepared for quotas.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use super::prepared::Prepared;

/// Values prepared for different quotas. The first few are found without a lock, and without a
/// write to memory that threads share. Where quotas change often or keys have their own, later
/// values replace the oldest.
#[derive(Debug)]
pub(crate) struct Cache<V> {
    first: [OnceLock<Arc<Prepared<V>>>; 4],
    later: RwLock<VecDeque<Arc<Prepared<V>>>>,
}

impl<V> Default for Cache<V> {
    fn default() -> Self {
        Self { first: [const { OnceLock::new() }; 4], later: RwLock::default() }
    }
}

impl<V> Cache<V> {
    /// The usual number of different quotas at a time.
    const MOST_LATER: usize = 8;

    /// Finds the value for the current quotas, or makes it.
    pub(crate) fn find_or_make<R>(
        &self,
        is_current: impl Fn(&Prepared<V>) -> bool,
        make: impl Fn() -> Prepared<V>,
        look: impl FnOnce(&Arc<Prepared<V>>) -> R,
    ) -> R {
        for slot in &self.first {
            let prepared = slot.get_or_init(|| Arc::new(make()));
            if is_current(prepared) {
                return look(prepared);
            }
        }
        let later = self.later.read().unwrap_or_else(PoisonError::into_inner);
        let found = later.iter().find(|prepared| is_current(prepared)).cloned();
        drop(later);
        look(&found.unwrap_or_else(|| self.keep(make())))
    }

    #[cold]
    fn keep(&self, prepared: Prepared<V>) -> Arc<Prepared<V>> {
        let prepared = Arc::new(prepared);
        let mut later = self.later.write().unwrap_or_else(PoisonError::into_inner);
        later.truncate(Self::MOST_LATER - 1);
        later.push_front(Arc::clone(&prepared));
        prepared
    }
}
