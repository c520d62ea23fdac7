//! Receipts that are settled while the store is away, slow or full: nothing is charged twice, and
//! what is not settled stays charged as it was.

use std::time::{Duration, Instant};

use tollgate::Quota;
use tollgate_redis::{Cause, DecidedBy, OnFailure, RedisLimiter};

use super::{KEY, cause, charged};
use crate::receipt;
use tollgate_kit::redis::{Server, ask, runtime};

#[test]
fn a_settlement_that_was_not_answered_is_made_once_or_never() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let store = server.builder().timeout(Duration::from_millis(100)).build().unwrap();
    let limiter = RedisLimiter::new(&store, "api", Quota::per_hour(1000)).unwrap();
    runtime().block_on(async {
        // A busy machine may need some attempts, each on a key of its own.
        let (mut key, mut estimated) = (0_u32, None);
        while estimated.is_none() {
            key += 1;
            estimated = limiter.try_acquire_n(key.to_be_bytes(), 10).await.ok().map(receipt);
        }
        let _: redis::Value = ask(&mut connection, &["CLIENT", "PAUSE", "600000", "WRITE"]);
        let error = limiter.settle(estimated.unwrap(), 25).await.unwrap_err();
        assert_eq!(cause(&error), (Cause::TimedOut, true));
        assert_eq!(limiter.counts().unsettled, 1);
        let _: redis::Value = ask(&mut connection, &["CLIENT", "UNPAUSE"]);
        let names: Vec<String> = ask(&mut connection, &["KEYS", &format!("*{}*", limiter.digest(key.to_be_bytes()))]);
        let until = Instant::now() + Duration::from_secs(30);
        while ask::<u64>(&mut connection, &["STRLEN", &names[0]]) != 16 + 25 * 8 {
            assert!(Instant::now() < until, "it was sent, so it is made");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn a_store_without_memory_settles_nothing() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let limiter = RedisLimiter::new(&server.store(), "api", Quota::per_hour(100)).unwrap();
    runtime().block_on(async {
        let mut receipts = vec![];
        for _ in 0..2 {
            receipts.push(receipt(limiter.try_acquire_n(KEY, 10).await.unwrap()));
        }
        let _: redis::Value = ask(&mut connection, &["CONFIG", "SET", "maxmemory", "1"]);
        for (receipt, actual) in receipts.into_iter().zip([3, 30]) {
            let error = limiter.settle(receipt, actual).await.unwrap_err();
            assert_eq!(cause(&error), (Cause::ServerNotReady, false));
        }
        assert_eq!((charged(&limiter, &mut connection), limiter.counts().unsettled), (20, 2));
    });
}

#[test]
fn what_was_admitted_while_the_store_was_away_is_not_settled() {
    let Some(mut server) = Server::start(&[]) else { return };
    let store = server.builder().breaker(1, Duration::ZERO).build().unwrap();
    runtime().block_on(async {
        for on_failure in [OnFailure::Admit, OnFailure::Local { nodes: 1 }] {
            let builder = RedisLimiter::builder(&store, "api", Quota::per_hour(100));
            let limiter = builder.on_failure(on_failure).build().unwrap();
            let until = Instant::now() + Duration::from_secs(30);
            while !limiter.peek(KEY, 0).await.is_ok_and(|status| status.decided_by() == DecidedBy::Store) {
                assert!(Instant::now() < until, "the server does not come back");
            }
            let before = receipt(limiter.try_acquire(KEY).await.unwrap());
            server.kill();
            let away = limiter.try_acquire_n(KEY, 10).await.unwrap();
            assert!(away.is_admitted(), "{on_failure:?}");
            assert_eq!(limiter.settle(away.into_receipt(), 30).await.unwrap(), 0);
            assert!(limiter.settle(before, 30).await.is_err());
            limiter.spawn_settle(receipt(limiter.try_acquire(KEY).await.unwrap()), 9).unwrap();
            assert_eq!(limiter.counts().unsettled, 1);
            server.start_again();
        }
    });
}
