//! Cached denials: a request that the store denied is denied here, as long as it is certain that the
//! store would deny it.
//!
//! The store read its clock after the request was sent, and said a wait of w. Until then others can
//! only add permits, so the store denies the request, and any of a larger cost, for w from its
//! reading on. Two clocks may run at different rates: a part of w is left out for that. A refund, a
//! forgotten key or lost data free permits sooner; then this denies for longer, and never admits
//! more. The quotas of a limiter never change, so an entry outlives no quotas.

use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;
use tollgate::Denial;

use crate::asked::Asked;

/// Clocks differ in rate by less than 500 in a million.
const LEFT_OUT: u32 = 2_000;

/// For how long it is certain that another clock has not yet measured this time.
pub(crate) fn certain(time: Duration) -> Duration {
    time.saturating_sub(time / LEFT_OUT + Duration::from_nanos(1))
}

/// A table of a fixed size: an entry takes the place of another one in its slot.
pub(crate) struct Cache {
    slots: Box<[Mutex<Option<Entry>>]>,
}

struct Entry {
    keys: u128,
    cost: u32,
    /// It is certain until then.
    until: Instant,
    /// The wait is over by then, as the caller saw it.
    passes: Instant,
    denial: Denial,
}

impl Cache {
    pub(crate) fn new(slots: usize) -> Self {
        Self { slots: (0..slots).map(|_| Mutex::new(None)).collect() }
    }

    /// The denial of a request, if it is certain.
    pub(crate) fn find(&self, asked: &[Asked], cost: u32) -> Option<Denial> {
        let (keys, slot) = self.slot(asked)?;
        let slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = slot.as_ref().filter(|entry| entry.keys == keys && entry.cost <= cost)?;
        let now = Instant::now();
        let (wait, denial) = (entry.passes.saturating_duration_since(now), entry.denial);
        let decides = (denial.dimension(), denial.quota());
        (now < entry.until).then(|| Denial::by_quotas(wait, decides, denial.violated()))
    }

    /// Keeps a denial of a request that was sent at this time, if its wait is long enough.
    pub(crate) fn keep(&self, asked: &[Asked], cost: u32, sent_at: Instant, denial: Denial) {
        let Some((keys, slot)) = self.slot(asked) else { return };
        let now = Instant::now();
        let wait = denial.retry_after();
        let (Some(until), Some(passes)) = (sent_at.checked_add(certain(wait)), now.checked_add(wait)) else { return };
        if now < until {
            let entry = Entry { keys, cost, until, passes, denial };
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(entry);
        }
    }

    /// Removes what is known of these keys together.
    pub(crate) fn remove(&self, asked: &[Asked]) {
        let Some((keys, slot)) = self.slot(asked) else { return };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.as_ref().is_some_and(|entry| entry.keys == keys) {
            *slot = None;
        }
    }

    pub(crate) fn clear(&self) {
        for slot in &self.slots {
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    /// The keys as one number, and its slot. The digests are spread evenly.
    fn slot(&self, asked: &[Asked]) -> Option<(u128, &Mutex<Option<Entry>>)> {
        let keys = asked.iter().fold(0_u128, |keys, &(_, digest)| keys.rotate_left(31) ^ digest.0);
        let place = (keys as usize).checked_rem(self.slots.len())?;
        Some((keys, &self.slots[place]))
    }
}

impl core::fmt::Debug for Cache {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Cache").field("slots", &self.slots.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::KeyDigest;

    const WAIT: Duration = Duration::from_secs(10);

    fn denial() -> Denial {
        Denial::by_quotas(WAIT, (0, 1), [0])
    }

    #[tokio::test(start_paused = true)]
    async fn a_denial_is_certain_from_when_the_request_was_sent() {
        let (cache, key) = (Cache::new(8), [(0, KeyDigest(7))]);
        let sent_at = Instant::now();
        tokio::time::advance(Duration::from_secs(4)).await;
        cache.keep(&key, 2, sent_at, denial());
        let found = cache.find(&key, 2).unwrap();
        assert_eq!((found.retry_after(), found.quota()), (WAIT, 1));
        assert!(cache.find(&key, 5).is_some());
        assert!(cache.find(&key, 1).is_none(), "less may fit");
        assert!(cache.find(&[(0, KeyDigest(15))], 2).is_none(), "another key in the same slot");
        // 9.995 s after it was sent, and not after the answer.
        tokio::time::advance(Duration::from_millis(5_994)).await;
        assert!(cache.find(&key, 2).is_some());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(cache.find(&key, 2).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_came_too_late_is_not_kept() {
        let (cache, key) = (Cache::new(8), [(0, KeyDigest(7))]);
        let sent_at = Instant::now();
        tokio::time::advance(WAIT).await;
        cache.keep(&key, 1, sent_at, denial());
        assert!(cache.find(&key, 1).is_none());
        assert!(Cache::new(0).find(&key, 1).is_none());
    }
}
