//! Refunds of all algorithms, at times that the test sets.

use std::time::Duration;

use tollgate::Quota;
use tollgate_redis::{Receipt, RedisLimiter, StoreError};

use crate::receipt;
use tollgate_kit::redis::{Clock, START, Server, ask, case_name, runtime};

const KEY: &str = "alice";
const SECOND: u64 = 1_000_000;

/// Ten permits each, of which none are free again before ten seconds, or one every second.
fn quotas() -> [Quota; 6] {
    let ten = Duration::from_secs(10);
    [
        Quota::new(10, ten),
        Quota::token_bucket(10, 10, ten),
        Quota::leaky_bucket(10, 10, ten),
        Quota::fixed_window(10, ten),
        Quota::sliding_counter(10, ten),
        Quota::quantised_log(10, ten, Duration::from_secs(1)),
    ]
}

async fn charge(limiter: &RedisLimiter, cost: u32) -> Receipt {
    receipt(limiter.try_acquire_n(KEY, cost).await.unwrap())
}

async fn remaining(limiter: &RedisLimiter) -> u32 {
    limiter.peek(KEY, 0).await.unwrap().remaining()
}

fn with_each(test: impl AsyncFn(&RedisLimiter, &Clock, Quota)) {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, store) = (server.clock(), server.store_with_time());
    runtime().block_on(async {
        for quota in quotas() {
            clock.set(START);
            test(&RedisLimiter::new(&store, &case_name(), quota).unwrap(), &clock, quota).await;
        }
    });
}

#[test]
fn refunded_permits_are_free_at_once() {
    with_each(async |limiter, clock, quota| {
        let first = charge(limiter, 4).await;
        clock.set(START + 1);
        let second = charge(limiter, 5).await;
        assert_eq!(remaining(limiter).await, 1, "{quota}");
        assert_eq!(limiter.refund(first).await.unwrap(), 4, "{quota}");
        assert_eq!(remaining(limiter).await, 5, "{quota}");
        assert_eq!(limiter.refund(second).await.unwrap(), 5, "{quota}");
        let left = limiter.peek(KEY, 0).await.unwrap();
        assert_eq!((left.remaining(), left.reset_after()), (10, Duration::ZERO), "{quota}");
        let _ = charge(limiter, 10).await;
    });
}

#[test]
fn what_no_longer_counts_is_not_refunded() {
    with_each(async |limiter, clock, quota| {
        let old = charge(limiter, 3).await;
        clock.set(START + 20 * SECOND);
        let _ = charge(limiter, 10).await;
        clock.set(START + 20 * SECOND + 1);
        assert_eq!(limiter.refund(old).await.unwrap(), 0, "{quota}");
        assert_eq!(remaining(limiter).await, 0, "{quota}");
    });
}

#[test]
fn a_count_fades_from_the_window_that_it_was_added_to() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, store) = (server.clock(), server.store_with_time());
    let limiter = RedisLimiter::new(&store, "api", Quota::sliding_counter(10, Duration::from_secs(10))).unwrap();
    runtime().block_on(async {
        clock.set(START);
        let (older, first) = (charge(&limiter, 6).await, charge(&limiter, 2).await);
        clock.set(START + 15 * SECOND);
        // Of 8, 4 count.
        let second = charge(&limiter, 5).await;
        assert_eq!(remaining(&limiter).await, 1);
        assert_eq!(limiter.refund(older).await.unwrap(), 6);
        assert_eq!(remaining(&limiter).await, 4);
        assert_eq!(limiter.refund(second).await.unwrap(), 5);
        assert_eq!(remaining(&limiter).await, 9);
        clock.set(START + 20 * SECOND);
        let _ = charge(&limiter, 1).await;
        assert_eq!(limiter.refund(first).await.unwrap(), 0);
    });
}

#[test]
fn a_queue_refunds_no_place() {
    let Some(server) = Server::start(&[]) else { return };
    let quota = Quota::leaky_queue(10, Duration::from_secs(10), Duration::from_secs(5));
    let limiter = RedisLimiter::new(&server.store(), "api", quota).unwrap();
    runtime().block_on(async {
        let receipt = charge(&limiter, 2).await;
        assert_eq!(limiter.refund(receipt).await.unwrap(), 0);
        let admission = limiter.try_acquire(KEY).await.unwrap().into_result().unwrap();
        assert!(admission.delay() > Duration::from_secs(1), "{admission}");
    });
}

#[test]
fn accounts_and_steps_that_are_not_ours_are_named_and_left_alone() {
    let Some(server) = Server::start(&[]) else { return };
    let (store, mut connection) = (server.store(), server.connect());
    runtime().block_on(async {
        for quota in &quotas()[1..] {
            let limiter = RedisLimiter::new(&store, &case_name(), *quota).unwrap();
            let _ = charge(&limiter, 10).await;
            let digest = limiter.digest(KEY);
            let keys: Vec<String> = ask(&mut connection, &["KEYS", &format!("*{digest}*")]);
            let name = &keys[0];
            let size: i64 = ask(&mut connection, &["STRLEN", name]);
            let left: i64 = ask(&mut connection, &["PTTL", name]);
            assert!(size == 16 && (9_000..40_000).contains(&left), "{quota}: {size} bytes for {left} ms");
            let foreign = ["sixteen letters.", "truncated", "\0\0\0\0\0\0\0\x01sevenmor"];
            for value in foreign {
                let _: redis::Value = ask(&mut connection, &["SET", name, value]);
                let error = limiter.try_acquire_n(KEY, 10).await.unwrap_err();
                assert_eq!(error, StoreError::ForeignValue { key: digest }, "{quota}: {value:?}");
                assert_eq!(ask::<String>(&mut connection, &["GET", name]), value);
            }
            let _: redis::Value = ask(&mut connection, &["DEL", name]);
            let _: redis::Value = ask(&mut connection, &["SADD", name, "a"]);
            assert_eq!(limiter.try_acquire(KEY).await.unwrap_err(), StoreError::ForeignValue { key: digest });
        }
    });
}
