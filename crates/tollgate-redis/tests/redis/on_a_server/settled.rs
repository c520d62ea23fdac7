//! Settled costs: what is charged then, on how many keys at once, and what is not settled.

use std::time::Duration;

use tollgate::{Calendar, Quota, Zone};
use tollgate_redis::{RedisJointLimiter, RedisLimiter, StoreError};

use crate::receipt;
use tollgate_kit::redis::{START, Server, ask, case_name, runtime};

const KEY: &str = "alice";
const SECOND: u64 = 1_000_000;
const MINUTE: Duration = Duration::from_secs(60);

async fn remaining(limiter: &RedisLimiter) -> u32 {
    limiter.peek(KEY, 0).await.unwrap().remaining()
}

#[test]
fn nineteen_hundred_of_a_thousand_are_charged_and_the_next_request_waits_for_them() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, store) = (server.clock(), server.store_with_time());
    let limiter = RedisLimiter::new(&store, "tokens", Quota::token_bucket(1000, 1000, MINUTE)).unwrap();
    clock.set(START);
    runtime().block_on(async {
        let estimated = receipt(limiter.try_acquire_n(KEY, 1000).await.unwrap());
        assert_eq!((estimated.cost(), limiter.settle(estimated, 1900).await.unwrap()), (1000, 1900));
        // The debt of 900, and one for the request.
        let denied = limiter.try_acquire(KEY).await.unwrap();
        assert_eq!(denied.retry_after(), Some(Duration::from_millis(54_060)));
        // Work that nobody asked about before.
        let work = receipt(limiter.try_acquire_n(KEY, 0).await.unwrap());
        assert_eq!(limiter.settle(work, 100).await.unwrap(), 100);
        let denied = limiter.try_acquire(KEY).await.unwrap();
        assert_eq!(denied.retry_after(), Some(Duration::from_millis(60_060)));
    });
}

#[test]
fn a_value_that_is_not_ours_leaves_the_other_keys_as_they_were() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, store, mut connection) = (server.clock(), server.store_with_time(), server.connect());
    let builder = RedisJointLimiter::builder(&store, "api").dimension("one", [Quota::per_minute(10)]);
    let limiter = builder.dimension("other", [Quota::per_minute(10)]).build().unwrap();
    let keys: [Option<&[u8]>; 2] = [Some(b"alice"), Some(b"alice")];
    clock.set(START);
    runtime().block_on(async {
        for (first, actual) in [(3, 1), (1, 3), (3, 0)] {
            let receipt = receipt(limiter.try_acquire_n(&keys, first).await.unwrap());
            let key = limiter.digest(1, "alice");
            let names: Vec<String> = ask(&mut connection, &["KEYS", &format!("*{key}*")]);
            let other = limiter.digest(0, "alice");
            let before: Vec<String> = ask(&mut connection, &["KEYS", &format!("*{other}*")]);
            let size: u64 = ask(&mut connection, &["STRLEN", &before[0]]);
            // The oldest stamp, which is looked at before what is settled is known, is later than
            // the newest.
            let _: u64 = ask(&mut connection, &["SETRANGE", &names[0], "16", "\x7f"]);
            assert_eq!(limiter.settle(receipt, actual).await.unwrap_err(), StoreError::ForeignValue { key });
            assert_eq!(ask::<u64>(&mut connection, &["STRLEN", &before[0]]), size);
            for dimension in 0..2 {
                limiter.forget(dimension, "alice").await.unwrap();
            }
        }
        assert_eq!(limiter.counts().unsettled, 3);
    });
}

#[test]
fn what_the_store_did_not_charge_is_not_settled() {
    let Some(server) = Server::start(&[]) else { return };
    let store = server.store();
    let limiter = RedisLimiter::new(&store, "api", Quota::per_hour(5)).unwrap();
    let another = RedisLimiter::new(&store, "api", Quota::per_hour(5)).unwrap();
    runtime().block_on(async {
        let looked = limiter.peek(KEY, 2).await.unwrap().into_receipt();
        assert_eq!((looked.cost(), limiter.settle(looked, 3).await.unwrap()), (0, 0));
        assert_eq!(remaining(&limiter).await, 5);
        let of_another = receipt(another.try_acquire(KEY).await.unwrap());
        assert_eq!(limiter.settle(of_another, 3).await, Err(StoreError::OtherLimiter));
        let of_another = receipt(another.try_acquire(KEY).await.unwrap());
        assert_eq!(limiter.spawn_settle(of_another, 3), Err(StoreError::OtherLimiter));
        let denied = limiter.try_acquire_n(KEY, 4).await.unwrap();
        assert!(denied.is_denied());
        assert_eq!(limiter.settle(denied.into_receipt(), 9).await.unwrap(), 0);
        // As much as was charged takes no call.
        let exact = receipt(limiter.try_acquire_n(KEY, 2).await.unwrap());
        drop(server);
        assert_eq!(limiter.settle(exact, 2).await.unwrap(), 2);
        assert_eq!(limiter.counts().unsettled, 0);
    });
}

#[test]
fn a_task_settles_for_code_that_cannot_wait() {
    let Some(server) = Server::start(&[]) else { return };
    let limiter = RedisLimiter::new(&server.store(), "api", Quota::per_hour(50)).unwrap();
    let runtime = runtime();
    let charge = || runtime.block_on(async { receipt(limiter.try_acquire_n(KEY, 10).await.unwrap()) });
    let first = charge();
    runtime.block_on(async {
        limiter.spawn_settle(first, 3).unwrap();
        while remaining(&limiter).await != 47 {
            tokio::task::yield_now().await;
        }
    });
    // No runtime is there that could do it.
    limiter.spawn_settle(charge(), 3).unwrap();
    assert_eq!((limiter.counts().unsettled, runtime.block_on(remaining(&limiter))), (1, 37));
}

/// A log owes no more than its limit at one time: a huge cost takes no more memory than that.
#[test]
fn a_log_owes_no_more_than_its_limit_for_each_cost() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, store, mut connection) = (server.clock(), server.store_with_time(), server.connect());
    let limiter = RedisLimiter::builder(&store, "api", Quota::new(7, MINUTE));
    let limiter = limiter.and(Quota::new(3, Duration::from_secs(1))).build().unwrap();
    clock.set(START);
    runtime().block_on(async {
        let estimated = receipt(limiter.try_acquire_n(KEY, 2).await.unwrap());
        assert_eq!(limiter.settle(estimated, u32::MAX).await.unwrap(), u32::MAX);
        let names: Vec<String> = ask(&mut connection, &["KEYS", &format!("*{}*", limiter.digest(KEY))]);
        assert_eq!(ask::<u64>(&mut connection, &["STRLEN", &names[0]]), 16 + 8 * (2 + 7));
        let denied = limiter.try_acquire(KEY).await.unwrap();
        assert_eq!(denied.retry_after(), Some(MINUTE));
    });
}

/// What windows count is kept in a few bits. What is more is forgotten, and nothing else is
/// changed.
#[test]
fn counts_stay_within_their_bits() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, store) = (server.clock(), server.store_with_time());
    // Full minutes by the server's clock.
    let start = START / (60 * SECOND) * 60 * SECOND;
    runtime().block_on(async {
        for quota in [Quota::sliding_counter(10, MINUTE), Quota::fixed_window(10, MINUTE)] {
            let limiter = RedisLimiter::new(&store, &case_name(), quota).unwrap();
            clock.set(start);
            let before = receipt(limiter.try_acquire_n(KEY, 4).await.unwrap());
            clock.set(start + 60 * SECOND);
            for _ in 0..3 {
                let work = receipt(limiter.try_acquire_n(KEY, 0).await.unwrap());
                assert_eq!(limiter.settle(work, u32::MAX).await.unwrap(), u32::MAX);
            }
            clock.set(start + 90 * SECOND);
            let denied = limiter.try_acquire(KEY).await.unwrap();
            let refunded = limiter.refund(before).await.unwrap();
            if let tollgate::Algorithm::FixedWindow = quota.algorithm() {
                assert_eq!((denied.retry_after(), refunded), (Some(Duration::from_secs(30)), 0));
            } else {
                // The window before counts by half, and the huge count only from the next window
                // on: it has faded to 9 of 10 in the last 9 / 2^20 of that.
                assert_eq!(refunded, 4);
                let last = 60 * SECOND * 9 / ((1 << 20) - 1);
                assert_eq!(denied.retry_after(), Some(Duration::from_micros(90 * SECOND - last)));
            }
            clock.set(start + 180 * SECOND);
            assert_eq!(remaining(&limiter).await, 10, "{quota}");
        }
    });
}

/// As in process: what is owed beyond that is forgotten, and the rest is paid.
#[test]
fn a_debt_lasts_for_73_years_at_most() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, store) = (server.clock(), server.store_with_time());
    let limiter = RedisLimiter::new(&store, "api", Quota::leaky_bucket(10, 7, MINUTE)).unwrap();
    clock.set(START);
    runtime().block_on(async {
        for _ in 0..2 {
            let work = receipt(limiter.try_acquire_n(KEY, 0).await.unwrap());
            assert_eq!(limiter.settle(work, u32::MAX).await.unwrap(), u32::MAX);
            let wait = limiter.try_acquire(KEY).await.unwrap().retry_after().unwrap();
            let year = Duration::from_secs(365 * 86_400);
            assert!((year * 73..year * 74).contains(&wait), "{wait:?}");
        }
        let paid = START + 74 * 365 * 86_400 * SECOND;
        clock.set(paid);
        assert_eq!(remaining(&limiter).await, 10);
    });
}

#[test]
fn a_month_is_settled_in_the_month_of_the_server() {
    let Some(server) = Server::start(&[]) else { return };
    let limiter = RedisLimiter::new(&server.store(), "api", Quota::calendar(10, Calendar::Month, Zone::UTC)).unwrap();
    runtime().block_on(async {
        let first = receipt(limiter.try_acquire_n(KEY, 6).await.unwrap());
        let second = receipt(limiter.try_acquire_n(KEY, 4).await.unwrap());
        assert_eq!(limiter.settle(first, 2).await.unwrap(), 2);
        assert_eq!(remaining(&limiter).await, 4);
        assert_eq!(limiter.settle(second, 30).await.unwrap(), 30);
        assert!(limiter.try_acquire(KEY).await.unwrap().is_denied());
    });
}

/// The permits of a lease are settled as those of the store. A debt does not recall what is leased.
#[test]
fn permits_of_a_lease_are_settled_and_a_debt_does_not_recall_it() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, store) = (server.clock(), server.store_with_time());
    let hour = Duration::from_secs(3600);
    let builder = RedisLimiter::builder(&store, "api", Quota::quantised_log(200, hour, hour));
    let limiter = builder.lease(100, 16).build().unwrap();
    clock.set(START + 1);
    runtime().block_on(async {
        for _ in 0..20 {
            assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
        }
        let counts = limiter.counts();
        assert_eq!((counts.calls, counts.leased, counts.admitted_by_lease), (5, 26, 15));
        let by_lease = receipt(limiter.try_acquire_n(KEY, 3).await.unwrap());
        assert_eq!((limiter.counts().calls, remaining(&limiter).await), (5, 200 - 5 - 26));
        assert_eq!(limiter.settle(by_lease, 1).await.unwrap(), 1);
        assert_eq!(remaining(&limiter).await, 200 - 5 - 26 + 2);
        let by_lease = receipt(limiter.try_acquire_n(KEY, 1).await.unwrap());
        assert_eq!(limiter.settle(by_lease, 500).await.unwrap(), 500);
        assert_eq!(remaining(&limiter).await, 0);
        // 7 permits are left of the lease.
        let mut admitted = 0;
        while limiter.try_acquire(KEY).await.unwrap().is_admitted() {
            admitted += 1;
        }
        assert_eq!(admitted, 26 - 15 - 3 - 1);
    });
}

#[test]
fn a_settled_cost_ends_a_cached_denial() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, store) = (server.clock(), server.store_with_time());
    let limiter = RedisLimiter::builder(&store, "api", Quota::per_hour(10)).cache_denials(16).build().unwrap();
    clock.set(START);
    runtime().block_on(async {
        let estimated = receipt(limiter.try_acquire_n(KEY, 10).await.unwrap());
        for _ in 0..2 {
            assert!(limiter.try_acquire(KEY).await.unwrap().is_denied());
        }
        assert_eq!(limiter.counts().denied_by_cache, 1);
        assert_eq!(limiter.settle(estimated, 9).await.unwrap(), 9);
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
    });
}
