//! Callers that leave before the store's time is over. Their calls go on without them.

use std::time::{Duration, Instant};

use tollgate::Quota;
use tollgate_redis::{Cause, RedisLimiter, Store};

use super::{KEY, accounts_agree, cause};
use crate::faults::proxy::{Line, Proxy, play};
use tollgate_kit::redis::{patient, secret};

/// The store's time for a call, and that of a caller.
const TIMEOUT: Duration = Duration::from_millis(400);
const PATIENCE: Duration = Duration::from_millis(20);

fn limiter(proxy: &Proxy, failures: u32) -> RedisLimiter {
    let builder = Store::builder(&proxy.address(), secret()).timeout(TIMEOUT);
    let store = builder.breaker(failures, Duration::from_secs(3600)).build().unwrap();
    RedisLimiter::new(&store, "api", Quota::per_hour(1000)).unwrap()
}

/// So many requests whose callers leave, each of another key.
async fn leave(limiter: &RedisLimiter, requests: u32) {
    for user in 0..requests {
        let left = tokio::time::timeout(PATIENCE, limiter.try_acquire(user.to_be_bytes())).await;
        assert!(left.is_err(), "{left:?}");
    }
}

/// Waits until so many requests are counted as not decided.
async fn until_unavailable(limiter: &RedisLimiter, requests: u64) {
    let until = Instant::now() + Duration::from_secs(30);
    while limiter.counts().unavailable < requests {
        assert!(Instant::now() < until, "{:?}", limiter.counts());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn a_connection_that_went_silent_is_given_up_though_each_caller_leaves_first() {
    play(async |server, proxy| {
        let limiter = limiter(proxy, u32::MAX);
        while limiter.try_acquire(KEY).await.is_err() {}
        let before = limiter.counts();
        proxy.set(Line::Silent);
        leave(&limiter, 3).await;
        proxy.set(Line::Good);
        until_unavailable(&limiter, before.unavailable + 3).await;
        // The third time-out gave the connection up: the next call makes another one.
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
        let counts = limiter.counts();
        assert_eq!(counts.unavailable, before.unavailable + 3);
        assert_eq!(counts.perhaps_charged, before.perhaps_charged + 3);
        assert_eq!(counts.calls, counts.admitted + counts.denied + counts.unavailable, "{counts:?}");
        accounts_agree(&limiter, &mut server.connect());
    });
}

#[test]
fn the_breaker_opens_after_failures_whose_callers_left_first() {
    play(async |_, proxy| {
        let limiter = limiter(proxy, 3);
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
        proxy.set(Line::Silent);
        leave(&limiter, 3).await;
        until_unavailable(&limiter, 3).await;
        let error = limiter.try_acquire(KEY).await.unwrap_err();
        assert_eq!(cause(&error), (Cause::CircuitOpen, false));
    });
}

#[test]
fn a_connection_is_made_though_each_caller_leaves_first() {
    play(async |_, proxy| {
        let limiter = limiter(proxy, u32::MAX);
        proxy.set(Line::Slow);
        leave(&limiter, 1).await;
        proxy.set(Line::Good);
        // One attempt of the store, and not one of each caller.
        let until = Instant::now() + Duration::from_secs(30);
        while tokio::time::timeout(PATIENCE, limiter.try_acquire(KEY)).await.is_err() {
            assert!(Instant::now() < until, "{:?}", limiter.counts());
        }
        assert_eq!(proxy.connections(), 1);
    });
}

#[test]
fn a_request_whose_caller_left_is_counted_as_the_store_decided_it() {
    play(async |server, proxy| {
        let builder = patient(&proxy.address());
        let limiter = RedisLimiter::new(&builder.build().unwrap(), "api", Quota::per_hour(3)).unwrap();
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
        proxy.set(Line::Slow);
        // Alone, together with others, and with the permits left. One of them is denied.
        let ways = async {
            tokio::join!(limiter.try_acquire(KEY), limiter.try_acquire(KEY), limiter.try_acquire_status(KEY, 1))
        };
        assert!(tokio::time::timeout(PATIENCE, ways).await.is_err());
        proxy.set(Line::Good);
        let until = Instant::now() + Duration::from_secs(30);
        while limiter.counts().admitted + limiter.counts().denied < 4 {
            assert!(Instant::now() < until, "{:?}", limiter.counts());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let counts = limiter.counts();
        assert_eq!((counts.admitted, counts.denied, counts.abandoned, counts.unavailable), (3, 1, 2, 0));
        accounts_agree(&limiter, &mut server.connect());
    });
}
