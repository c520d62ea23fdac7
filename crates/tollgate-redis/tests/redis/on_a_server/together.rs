//! Requests that share a call, and denials without one.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tollgate::Quota;
use tollgate_redis::{DecidedBy, RedisLimiter};

use crate::receipt;
use tollgate_kit::redis::{START, Server, runtime};

const KEY: &str = "alice";

#[test]
fn requests_that_wait_for_one_reply_go_together() {
    let Some(server) = Server::start(&[]) else { return };
    let limiter = Arc::new(RedisLimiter::new(&server.store(), "api", Quota::per_hour(60)).unwrap());
    runtime().block_on(async {
        let mut tasks = JoinSet::new();
        for _ in 0..100 {
            let limiter = Arc::clone(&limiter);
            tasks.spawn(async move { limiter.try_acquire(KEY).await.unwrap() });
        }
        let decisions = tasks.join_all().await;
        let denials = decisions.iter().filter_map(|decided| decided.retry_after());
        assert_eq!(decisions.iter().filter(|decision| decision.is_admitted()).count(), 60);
        assert!(denials.clone().all(|wait| wait > Duration::from_secs(3500)), "{:?}", denials.collect::<Vec<_>>());
        let counts = limiter.counts();
        // The first alone, all others together.
        assert_eq!((counts.calls, counts.admitted, counts.denied), (2, 60, 40));
        // Each of them has a receipt of its own.
        assert!(limiter.forget(KEY).await.unwrap());
        let both = tokio::join!(limiter.try_acquire(KEY), limiter.try_acquire(KEY));
        for decision in [both.0, both.1] {
            assert_eq!(limiter.refund(receipt(decision.unwrap())).await.unwrap(), 1);
        }
        assert_eq!(limiter.peek(KEY, 0).await.unwrap().remaining(), 60);
    });
}

#[test]
fn requests_of_other_costs_or_keys_do_not() {
    let Some(server) = Server::start(&[]) else { return };
    let limiter = RedisLimiter::new(&server.store(), "api", Quota::per_hour(10)).unwrap();
    runtime().block_on(async {
        let some = tokio::join!(
            limiter.try_acquire_n(KEY, 4),
            limiter.try_acquire_n(KEY, 3),
            limiter.try_acquire_n(KEY, 4),
            limiter.try_acquire_n("bob", 4),
        );
        assert_eq!(some.0.unwrap().is_admitted() as u8 + some.1.unwrap().is_admitted() as u8, 2);
        assert!(some.2.unwrap().is_denied() && some.3.unwrap().is_admitted());
    });
    assert_eq!(limiter.counts().calls, 4);
}

/// One that goes away takes no other with it, whether its call is on its way or it waits for it.
#[test]
fn a_caller_that_goes_away_does_not_disturb_the_others() {
    let Some(server) = Server::start(&[]) else { return };
    let limiter = Arc::new(RedisLimiter::new(&server.store(), "api", Quota::per_hour(10)).unwrap());
    runtime().block_on(async {
        let ask = || {
            let limiter = Arc::clone(&limiter);
            tokio::spawn(async move { limiter.try_acquire(KEY).await.unwrap().is_admitted() })
        };
        let (first, second, third) = (ask(), ask(), ask());
        tokio::task::yield_now().await;
        first.abort();
        second.abort();
        assert!(third.await.unwrap());
        // Those that went away are charged: the first alone, and the second with the third.
        let left = limiter.peek(KEY, 0).await.unwrap().remaining();
        let counts = limiter.counts();
        assert_eq!((counts.admitted, counts.abandoned, counts.calls), (3, 2, 2));
        assert_eq!(left, 7);
        // Nothing is left that the next would wait for.
        assert!(ask().await.unwrap());
    });
}

#[test]
fn a_cached_denial_takes_no_call_until_shortly_before_the_wait_is_over() {
    let Some(server) = Server::start(&[]) else { return };
    let clock = server.clock();
    let quota = Quota::new(4, Duration::from_secs(3600));
    let builder = RedisLimiter::builder(&server.store_with_time(), "api", quota);
    let limiter = builder.cache_denials(100).build().unwrap();
    runtime().block_on(async {
        let charge = receipt(limiter.try_acquire_n(KEY, 3).await.unwrap());
        assert!(limiter.try_acquire_n(KEY, 2).await.unwrap().is_denied());
        let calls = limiter.counts().calls;
        for cost in [2, 3, 4] {
            let denied = limiter.try_acquire_n(KEY, cost).await.unwrap();
            assert_eq!(denied.decided_by(), DecidedBy::CachedDenial);
            assert!(denied.retry_after() > Some(Duration::from_secs(3500)) && denied.retry_after_secs() <= Some(3600));
        }
        assert_eq!((limiter.counts().calls, limiter.counts().denied_by_cache), (calls, 3));
        // Less fits, and a look asks the store.
        assert!(limiter.try_acquire_n(KEY, 1).await.unwrap().is_admitted());
        assert_eq!(limiter.peek(KEY, 0).await.unwrap().remaining(), 0);
        // What is refunded here is free here at once.
        assert!(limiter.try_acquire_n(KEY, 2).await.unwrap().is_denied());
        assert_eq!(limiter.refund(charge).await.unwrap(), 3);
        assert!(limiter.try_acquire_n(KEY, 3).await.unwrap().is_admitted());
        assert!(limiter.try_acquire_n(KEY, 3).await.unwrap().is_denied());
        assert!(limiter.forget(KEY).await.unwrap());
        assert!(limiter.try_acquire_n(KEY, 4).await.unwrap().is_admitted());
        // A wait that is shorter than the way is not kept.
        clock.set(START + 3_600_000_000 - 1);
        assert_eq!(limiter.try_acquire(KEY).await.unwrap().retry_after(), Some(Duration::from_micros(1)));
        clock.set(START + 3_600_000_000);
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
    });
}
