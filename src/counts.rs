//! [`Counts`]: the keys, memory and decisions of a limiter.

use crate::sync::plain::{AtomicU64, Ordering};

/// The keys, memory and decisions of a limiter, from [`Limiter::counts`](crate::Limiter::counts).
///
/// Each figure is exact at some instant of the call. While other threads decide, these instants may
/// differ.
///
/// ```
/// use tollgate::{Limiter, Quota};
///
/// let quota = Quota::per_minute(1);
/// let limiter = Limiter::<String>::builder(quota).count_decisions(true).build()?;
/// let _ = limiter.try_acquire_many(["alice", "alice", "bob"]);
///
/// let counts = limiter.counts();
/// assert_eq!(counts.live_keys, 2);
/// let decisions = counts.decisions.expect("the builder asked for them");
/// assert_eq!((decisions.admitted, decisions.denied), (2, 1));
/// println!("{} keys in {} bytes", counts.cells, counts.bytes);
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Keys with at least one live permit.
    pub live_keys: usize,
    /// Cells in use: those of live keys, and those of expired keys that are not freed yet. At most
    /// the key cap.
    pub cells: usize,
    /// Bytes of memory that the limiter takes, including its table.
    pub bytes: usize,
    /// Admitted and denied requests; `None` unless the limiter was built with
    /// [`count_decisions`](crate::LimiterBuilder::count_decisions).
    pub decisions: Option<DecisionCounts>,
    /// Requests of new keys that found no place at the key cap. [`AtKeyCap`](crate::AtKeyCap)
    /// answers them.
    pub refused_at_cap: u64,
    /// Requests that [shadow mode](crate::LimiterBuilder::shadow) admitted in place of a denial, or
    /// of an error because of their cost.
    pub overruled: u64,
    /// Blocks that the [`Penalty`](crate::Penalty) has begun.
    pub penalties: u64,
    /// Denials that did not count towards a penalty, or did not begin a block, because no place was
    /// left.
    pub penalties_refused: u64,
    /// Keys on the [allow list](crate::Limiter::allow) and on the [deny list](crate::Limiter::deny)
    /// together.
    pub listed: usize,
}

/// The requests that a limiter has admitted and denied since it was built.
///
/// Each request counts once, as admitted or as denied, whatever its cost. Peeks and requests of
/// cost zero do not count.
///
/// A request that [shadow mode](crate::LimiterBuilder::shadow) admits in place of a denial counts
/// as denied. A request of a cost above the limit does not count.
///
/// ```
/// use tollgate::{DecisionCounts, Limiter, Quota};
///
/// let builder = Limiter::<String>::builder(Quota::per_minute(1)).shadow(true);
/// let limiter = builder.count_decisions(true).build()?;
/// assert!(limiter.try_acquire("alice").is_admitted());
/// assert!(limiter.try_acquire("alice").is_admitted());
/// let would_be = DecisionCounts { admitted: 1, denied: 1 };
/// assert_eq!(limiter.counts().decisions, Some(would_be));
/// # Ok::<(), tollgate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DecisionCounts {
    /// Admitted requests, except those that shadow mode admitted in place of a denial.
    pub admitted: u64,
    /// Denied requests, and those that shadow mode admitted in place of a denial.
    pub denied: u64,
}

/// Counters of decisions, spread over cache lines so that threads rarely write the same line.
pub(crate) struct Tally {
    stripes: Box<[Stripe]>,
}

/// Two counters, padded to two cache lines, because processors prefetch lines in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Stripe {
    admitted: AtomicU64,
    denied: AtomicU64,
}

const STRIPES: usize = 16;

thread_local! {
    /// The number of the stripe that this thread writes. Threads get stripes in turn.
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
        // A thread that is ending has lost its thread-locals. It writes the first stripe.
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
