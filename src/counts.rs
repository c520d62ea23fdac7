//! [`Counts`]: what a limiter holds and has done.

use crate::sync::plain::{AtomicU64, Ordering};

/// What a limiter holds and has done, from [`Limiter::counts`](crate::Limiter::counts).
///
/// Taken while others decide, the figures are each right but need not be of one and the same instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Keys with at least one live permit.
    pub live_keys: usize,
    /// Cells in use: live keys, and idle ones that have not been reclaimed yet. Never more than the key cap.
    pub cells: usize,
    /// Bytes of memory taken by the table and everything in it.
    pub bytes: usize,
    /// Requests admitted and denied, where [`count_decisions`](crate::LimiterBuilder::count_decisions) was asked for.
    pub decisions: Option<DecisionCounts>,
    /// Requests of new keys that found no place under the key cap, whatever the policy then answered.
    pub refused_at_cap: u64,
    /// Requests that were admitted and would have been denied, had the limiter not been in
    /// [shadow mode](crate::LimiterBuilder::shadow).
    pub overruled: u64,
    /// Times that a key was blocked under the [`Penalty`](crate::Penalty).
    pub penalties: u64,
    /// Denials that found no place to be counted towards a penalty, or to begin one.
    pub penalties_refused: u64,
    /// Keys on the [allow list](crate::Limiter::allow) and on the [deny list](crate::Limiter::deny) together.
    pub listed: usize,
}

/// How many requests were admitted and denied since the limiter was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DecisionCounts {
    /// Requests admitted, but not for shadow mode only. Peeks and requests of cost zero do not count.
    pub admitted: u64,
    /// Requests denied, for whatever reason. In [shadow mode](crate::LimiterBuilder::shadow) those that would have been.
    pub denied: u64,
}

/// Counters of decisions, spread over cache lines so that threads rarely write the same one.
pub(crate) struct Tally {
    stripes: Box<[Stripe]>,
}

/// Two counters on cache lines of their own (a pair of lines, because processors fetch them in pairs).
#[derive(Default)]
#[repr(align(128))]
struct Stripe {
    admitted: AtomicU64,
    denied: AtomicU64,
}

const STRIPES: usize = 16;

thread_local! {
    /// Which stripe this thread writes: threads take turns.
    static STRIPE: usize = {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        usize::try_from(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES as u64).unwrap_or(0)
    };
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self { stripes: core::iter::repeat_with(Stripe::default).take(STRIPES).collect() }
    }

    pub(crate) fn count(&self, admitted: bool) {
        // A thread that is shutting down has no locals any more and may as well write the first stripe.
        let stripe = &self.stripes[STRIPE.try_with(|&stripe| stripe).unwrap_or(0)];
        let counter = if admitted { &stripe.admitted } else { &stripe.denied };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.stripes)
    }

    pub(crate) fn totals(&self) -> DecisionCounts {
        let sum = |counter: fn(&Stripe) -> &AtomicU64| {
            self.stripes.iter().map(|stripe| counter(stripe).load(Ordering::Relaxed)).sum()
        };
        DecisionCounts { admitted: sum(|stripe| &stripe.admitted), denied: sum(|stripe| &stripe.denied) }
    }
}
