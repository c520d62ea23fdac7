//! Leases: a request takes some permits in advance, and later requests of the key spend them here,
//! without the store, until the step of its quantised log is over.
//!
//! # Why no window holds more than N
//! The server reads its clock at T, in the step that ends at E. It charges the permits of the request
//! and those of the lease as any others: they count until E + W. The request was sent before the
//! server read its clock, so at `sent_at` that clock showed at most T. The holder spends the lease
//! until `sent_at` + (E - T), less a part for clocks of different rates. Then the server's clock
//! shows less than E. So each permit is spent between T and E, or never.
//!
//! Consider the permits that are spent in a window from x until x + W, and the last charge of any of
//! them, at T* < x + W. Each other one was charged before, and its step ends after x. So it counts
//! until after x + W, and did at T*. The server had at most N then.
//!
//! From when the answer came, a lease would be spent until after E, by as much as the way takes. If
//! its permits counted from the start of the step, the last of them would be free too early, by as
//! much as a step. A holder that dies spends nothing. One that is stopped reads its clock again when
//! it goes on. A permit is given back only after no request can spend it here any more.
//!
//! That needs a clock of the holder that goes on while it does not, and a clock of the server that is
//! not set ahead within the step. A machine that is suspended lacks the one. Without the other, windows
//! are over too early for all permits; then those of a lease can still be spent in the next one.

use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;
use tollgate::{Algorithm, Quota};

use crate::cache::certain;
use crate::digest::KeyDigest;
use crate::error::BuildError;
use crate::reply::Left;

/// A lease has at most one in so many of the permits that were left.
const SHARE: u32 = 8;

/// A table of a fixed size. A lease keeps its slot until its step is over; requests of other keys
/// of the slot take none meanwhile.
pub(crate) struct Leases {
    slots: Box<[Mutex<Option<Lease>>]>,
    /// The most permits of a lease.
    most: u32,
    /// Permits count for so long from the end of their step.
    window: Duration,
    step: Duration,
}

/// What a key has in its slot: a lease that can be spent, or what is known for the next one.
struct Lease {
    key: KeyDigest,
    /// The end of the step by the server, in microseconds: the time of the charge.
    ends: u64,
    /// It can be spent until then.
    until: Instant,
    /// How many permits there were.
    taken: u32,
    left: u32,
    /// What the store said last to be left, and when it was asked.
    known: (Left, Instant),
    /// A call is on its way that takes more.
    is_taking: bool,
}

impl Lease {
    /// Nobody spends it any more: what was left of it.
    fn end(&mut self) -> Option<Unspent> {
        let (permits, key, ends) = (self.left, self.key, self.ends);
        (self.taken, self.left) = (self.taken - permits, 0);
        (permits > 0).then_some(Unspent { key, ends, permits })
    }
}

/// Permits of a lease that nobody will spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unspent {
    pub(crate) key: KeyDigest,
    pub(crate) ends: u64,
    pub(crate) permits: u32,
}

/// Permits that a request took from a lease.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spent {
    /// The time of their charge.
    pub(crate) ends: u64,
    /// What is left after it, as the store said last, and when it was asked.
    known: (Left, Instant),
}

impl Spent {
    /// What is left now, as far as it is known here.
    pub(crate) fn left(&self, now: Instant) -> Left {
        let (left, since) = (self.known.0, now.saturating_duration_since(self.known.1));
        let [next_after, reset_after] = [left.next_after, left.reset_after].map(|time| time.saturating_sub(since));
        Left { next_after, reset_after, ..left }
    }
}

/// What the store said to a request that took a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The permits besides those of the request; `None` if it was denied.
    pub(crate) permits: Option<u32>,
    pub(crate) ends: u64,
    pub(crate) left: Left,
}

impl Leases {
    /// For limiters of these quotas of all dimensions.
    pub(crate) fn new(most: u32, slots: usize, quotas: &[Quota]) -> Result<Self, BuildError> {
        let (slots, most) = if most == 0 { (0, 0) } else { (slots, most) };
        let quota = quotas[0];
        let step = quota.resolution().unwrap_or_default();
        if slots > 0 && (quotas.len() > 1 || quota.algorithm() != Algorithm::QuantisedLog) {
            return Err(BuildError::NoLease { quota: Box::new(quota) });
        }
        let slots = (0..slots).map(|_| Mutex::new(None)).collect();
        Ok(Self { slots, most, window: quota.window().saturating_sub(step), step })
    }

    /// Whether there are none, as by default.
    pub(crate) fn are_off(&self) -> bool {
        self.slots.is_empty()
    }

    /// Takes the permits of a request from the key's lease.
    pub(crate) fn spend(&self, key: KeyDigest, cost: u32, now: Instant) -> Option<Spent> {
        let mut slot = self.slot(key)?;
        let lease = slot.as_mut().filter(|lease| lease.key == key && lease.left >= cost && now < lease.until)?;
        lease.left -= cost;
        // What the lease has left is this node's.
        let (left, asked_at) = lease.known;
        let left = Left { remaining: left.remaining.saturating_add(lease.left), ..left };
        Some(Spent { ends: lease.ends, known: (left, asked_at) })
    }

    /// Leave for one request to take a lease. Others of the key go without meanwhile.
    pub(crate) fn begin(self: &Arc<Self>, key: KeyDigest, cost: u32, now: Instant) -> Option<Taking> {
        let mut slot = self.slot(key)?;
        let is_kept = |lease: &Lease| lease.is_taking || (lease.key != key && now < lease.until);
        if slot.as_ref().is_some_and(is_kept) {
            return None;
        }
        // What counts no longer needs not be given back.
        let ended = slot.as_mut().filter(|lease| now >= lease.until);
        let unspent = ended.and_then(|lease| lease.end().filter(|_| now < lease.until + self.window));
        let lease = match &mut *slot {
            Some(lease) if lease.key == key => lease,
            other => {
                let none = Left { remaining: 0, next_after: Duration::ZERO, reset_after: Duration::ZERO };
                other.insert(Lease {
                    key,
                    ends: 0,
                    until: now,
                    taken: 0,
                    left: 0,
                    known: (none, now),
                    is_taking: false,
                })
            }
        };
        lease.is_taking = true;
        // In a step twice as many each time; in the next one as many as were spent of the last lease.
        let wanted = if now < lease.until { lease.taken.saturating_mul(2).saturating_add(1) } else { lease.taken };
        let more = wanted.min(self.most).min(lease.known.0.remaining / SHARE) / cost;
        Some(Taking { leases: Arc::clone(self), key, more, unspent })
    }

    /// Ends the leases one after another.
    pub(crate) fn end_all(&self) -> impl Iterator<Item = Unspent> + use<'_> {
        self.slots.iter().filter_map(|slot| lock(slot).as_mut()?.end())
    }

    /// Removes what is known of a key.
    pub(crate) fn remove(&self, key: KeyDigest) {
        if let Some(mut slot) = self.slot(key) {
            let _ = slot.take_if(|lease| lease.key == key);
        }
    }

    /// The slot of a key. The digests are spread evenly.
    fn slot(&self, key: KeyDigest) -> Option<MutexGuard<'_, Option<Lease>>> {
        let place = (key.0 as usize).checked_rem(self.slots.len())?;
        Some(lock(&self.slots[place]))
    }
}

/// No code here panics while it holds the lock.
fn lock(slot: &Mutex<Option<Lease>>) -> MutexGuard<'_, Option<Lease>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

impl core::fmt::Debug for Leases {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Leases").field("slots", &self.slots.len()).field("most", &self.most).finish()
    }
}

/// A request that takes a lease. If it is dropped, another one may.
#[derive(Debug)]
pub(crate) struct Taking {
    leases: Arc<Leases>,
    key: KeyDigest,
    /// How many more requests of the same cost the lease is for.
    pub(crate) more: u32,
    /// What is to be given back.
    pub(crate) unspent: Option<Unspent>,
}

impl Taking {
    /// Keeps what was taken by a request that was sent at this time. Gives what the lease has then, if
    /// the request was admitted.
    pub(crate) fn keep(self, sent_at: Instant, taken: Taken) -> u32 {
        let (window, step) = (self.leases.window, self.leases.step);
        let mut has = 0;
        self.with_lease(|lease| {
            lease.known = (taken.left, sent_at);
            let Some(permits) = taken.permits else { return };
            // The newest permits are the last that are free: a window after the end of the step.
            let rest = taken.left.reset_after.saturating_sub(window).min(step);
            let until = sent_at + certain(rest);
            if lease.ends == taken.ends {
                (lease.left, lease.until) = (lease.left + permits, lease.until.max(until));
            } else {
                (lease.left, lease.until, lease.ends) = (permits, until, taken.ends);
            }
            (lease.taken, has) = (lease.left, lease.left);
        });
        has
    }

    fn with_lease(&self, change: impl FnOnce(&mut Lease)) {
        let mut slot = self.leases.slot(self.key);
        if let Some(lease) = slot.as_deref_mut().and_then(Option::as_mut).filter(|lease| lease.key == self.key) {
            change(lease);
        }
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        self.with_lease(|lease| lease.is_taking = false);
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
