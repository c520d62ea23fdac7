//! [`WaitMetrics`]: waits as metrics.

use core::fmt;
use core::time::Duration;

use metrics::{Gauge, Histogram, Unit, describe_gauge, describe_histogram, gauge, histogram};
use tollgate::{Clock, MonotonicClock};

/// Measures requests that wait: a histogram `tollgate_wait_seconds` of the waits, and a gauge
/// `tollgate_waiters` of the requests that wait now, both with the label `policy`.
///
/// A limiter does not know that a request waits for it. So the code that waits says so:
/// [`measure`](Self::measure) goes around the future, that of
/// [`tollgate-wait`](https://docs.rs/tollgate-wait) or another.
///
/// ```
/// use tollgate_observe::WaitMetrics;
///
/// # fn main() {
/// let waits = WaitMetrics::new("crawler");
/// // In place of `limiter.acquire(site).within(time).await`:
/// let future = waits.measure(async { /* limiter.acquire(site).within(time).await */ });
/// # drop(future);
/// # }
/// ```
pub struct WaitMetrics<C = MonotonicClock> {
    seconds: Histogram,
    waiters: Gauge,
    clock: C,
}

const SECONDS: &str = "tollgate_wait_seconds";
const WAITERS: &str = "tollgate_waiters";

impl WaitMetrics {
    /// Metrics with this `policy`. The recorder must be installed.
    #[must_use]
    pub fn new(policy: impl Into<String>) -> Self {
        describe_histogram!(SECONDS, Unit::Seconds, "The time for which requests waited for permits.");
        describe_gauge!(WAITERS, Unit::Count, "Requests that wait for permits.");
        let policy = policy.into();
        Self {
            seconds: histogram!(SECONDS, "policy" => policy.clone()),
            waiters: gauge!(WAITERS, "policy" => policy),
            clock: MonotonicClock::new(),
        }
    }

    /// Measures by this clock; [`MonotonicClock`] by default.
    #[must_use]
    pub fn clock<D: Clock>(self, clock: D) -> WaitMetrics<D> {
        WaitMetrics { seconds: self.seconds, waiters: self.waiters, clock }
    }
}

impl<C: Clock> WaitMetrics<C> {
    /// Measures the future from its first poll until it is ready or dropped.
    pub async fn measure<F: Future>(&self, wait: F) -> F::Output {
        let _waiter = Waiter::of(self);
        wait.await
    }
}

/// A request that waits, until this is dropped.
struct Waiter<'a, C: Clock> {
    of: &'a WaitMetrics<C>,
    start: u64,
}

impl<'a, C: Clock> Waiter<'a, C> {
    fn of(of: &'a WaitMetrics<C>) -> Self {
        of.waiters.increment(1);
        Self { of, start: of.clock.now() }
    }
}

impl<C: Clock> Drop for Waiter<'_, C> {
    fn drop(&mut self) {
        let waited = self.of.clock.now().saturating_sub(self.start);
        self.of.seconds.record(Duration::from_nanos(waited));
        self.of.waiters.decrement(1);
    }
}

impl<C> fmt::Debug for WaitMetrics<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitMetrics").finish_non_exhaustive()
    }
}
