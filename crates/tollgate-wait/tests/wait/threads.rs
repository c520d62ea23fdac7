//! Threads that wait by the clock of the machine.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tollgate::{DecisionCounts, Limiter, Quota};
#[cfg(any(feature = "async-io", feature = "futures-timer"))]
use tollgate_wait::Timer;
use tollgate_wait::{WaitError, WaitingLimiter};

#[test]
fn threads_are_served_and_leave_an_empty_line() {
    let limiter = Limiter::<u64>::builder(Quota::new(5, Duration::from_millis(5)));
    let limiter = limiter.count_decisions(true).build().unwrap();
    let limiter = WaitingLimiter::new(Arc::new(limiter));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..25 {
                    limiter.acquire(7).block_within(Duration::from_secs(600)).unwrap();
                }
            });
        }
    });
    let all = DecisionCounts { admitted: 200, denied: 0 };
    assert_eq!(limiter.limiter().counts().decisions, Some(all));
    assert_eq!(limiter.waiters(&7), 0);
}

#[test]
fn a_thread_whose_wait_is_hopeless_does_not_sleep() {
    let limiter = Arc::new(Limiter::<u64>::new(Quota::new(1, Duration::from_secs(86_400))).unwrap());
    let limiter = WaitingLimiter::new(limiter);
    limiter.acquire(7).block_within(Duration::ZERO).unwrap();
    let error = limiter.acquire(7).block_within(Duration::from_secs(3600)).unwrap_err();
    assert!(matches!(error, WaitError::TooLong { .. }), "{error:?}");
}

#[test]
fn a_wait_may_be_as_long_as_can_be() {
    let limiter = Limiter::<u64>::new(Quota::new(1, Duration::from_millis(5))).unwrap();
    let limiter = WaitingLimiter::new(Arc::new(limiter));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| limiter.acquire(7).block_within(Duration::MAX).unwrap());
        }
    });
    assert_eq!(limiter.waiters(&7), 0);
}

/// Tasks of one key, by timers that need no runtime of tokio.
#[cfg(any(feature = "async-io", feature = "futures-timer"))]
async fn wait_by(timer: impl Timer + Send + Sync + 'static) {
    let limiter = Limiter::<u64>::new(Quota::new(1, Duration::from_millis(5))).unwrap();
    let limiter = Arc::new(WaitingLimiter::new(Arc::new(limiter)).timer(timer));
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let limiter = Arc::clone(&limiter);
        all.spawn(async move { limiter.acquire(7).within(Duration::MAX).await.is_ok() });
    }
    assert_eq!(all.join_all().await, [true; 8]);
}

#[cfg(feature = "futures-timer")]
#[tokio::test]
async fn tasks_wait_by_timers_without_a_runtime() {
    wait_by(tollgate_wait::FuturesTimer).await;
}

#[cfg(feature = "async-io")]
#[tokio::test]
async fn tasks_wait_by_timers_of_async_io() {
    wait_by(tollgate_wait::AsyncIoTimer).await;
}
