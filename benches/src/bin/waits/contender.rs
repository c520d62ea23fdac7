//! The ways to wait.

use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use governor::RateLimiter;
use governor::state::keyed::DefaultKeyedStateStore;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;
use tollgate::{Decision, Limiter, MonotonicClock, Quota};
use tollgate_wait::{TokioTimer, WaitingLimiter};

use crate::counted::Counted;

const BURST: u32 = 10;
const PERIOD: Duration = Duration::from_micros(100);
const KEY: u64 = 7;

/// A task's wait.
pub(crate) type Ask = Pin<Box<dyn Future<Output = ()>>>;

#[derive(Clone, Copy)]
pub(crate) enum Contender {
    TollgateWait,
    Governor,
    LeakyBucket,
    LockedLoop,
    Loop,
}

impl Contender {
    pub(crate) const ALL: [Self; 5] =
        [Self::TollgateWait, Self::Governor, Self::LeakyBucket, Self::LockedLoop, Self::Loop];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::TollgateWait => "tollgate-wait",
            Self::Governor => "governor, `until_key_ready`",
            Self::LeakyBucket => "leaky-bucket, fair",
            Self::LockedLoop => "a tokio mutex around a loop of `try_acquire` and sleep",
            Self::Loop => "a loop of `try_acquire` and sleep",
        }
    }

    /// A fresh limiter, as a source of waits.
    pub(crate) fn start(self, runtime: &Runtime) -> Box<dyn Fn() -> Ask> {
        let quota = Quota::token_bucket(BURST, 1, PERIOD);
        let builder = Limiter::<u64>::builder(quota).clock(Counted(MonotonicClock::new()));
        let limiter = Arc::new(builder.build().expect("valid"));
        match self {
            Self::TollgateWait => {
                let limiter = Arc::new(WaitingLimiter::new(limiter).timer(TokioTimer));
                Box::new(move || {
                    let limiter = Arc::clone(&limiter);
                    Box::pin(async move {
                        limiter.acquire(KEY).within(Duration::from_secs(60)).await.expect("in time");
                    })
                })
            }
            Self::Governor => {
                let burst = NonZeroU32::new(BURST).expect("not zero");
                let quota = governor::Quota::with_period(PERIOD).expect("not zero").allow_burst(burst);
                let (store, clock) = (DefaultKeyedStateStore::<u64>::default(), Counted(Default::default()));
                let limiter = Arc::new(RateLimiter::<u64, _, Counted<_>>::new(quota, store, clock));
                Box::new(move || {
                    let limiter = Arc::clone(&limiter);
                    Box::pin(async move { limiter.until_key_ready(&KEY).await })
                })
            }
            Self::LeakyBucket => {
                let burst = BURST as usize;
                // It refills by ticks of a millisecond at least.
                let _entered = runtime.enter();
                let limiter = {
                    let mut builder = leaky_bucket::RateLimiter::builder();
                    builder.initial(burst).max(burst).refill(10).interval(10 * PERIOD).fair(true);
                    Arc::new(builder.build())
                };
                Box::new(move || {
                    let limiter = Arc::clone(&limiter);
                    Box::pin(async move { limiter.acquire_one().await })
                })
            }
            Self::LockedLoop => {
                let lock = Arc::new(Mutex::new(()));
                Box::new(move || {
                    let (limiter, lock) = (Arc::clone(&limiter), Arc::clone(&lock));
                    Box::pin(async move {
                        let _turn = lock.lock().await;
                        try_and_sleep(&limiter).await;
                    })
                })
            }
            Self::Loop => Box::new(move || {
                let limiter = Arc::clone(&limiter);
                Box::pin(async move { try_and_sleep(&limiter).await })
            }),
        }
    }
}

async fn try_and_sleep(limiter: &Limiter<u64, Counted<MonotonicClock>>) {
    while let Decision::Denied(denial) = limiter.try_acquire(KEY) {
        tokio::time::sleep(denial.retry_after()).await;
    }
}
