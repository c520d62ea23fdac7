//! A store that is away, and what the limiter does then.

use std::time::Duration;

use tollgate::Quota;
use tollgate_redis::{Cause, DecidedBy, OnFailure, RedisLimiter, Store};

use super::{KEY, accounts_agree, cause};
use crate::faults::proxy::{Line, Proxy, play};
use tollgate_kit::redis::{patient, secret};

const LIMIT: u32 = 10;

fn node(proxy: &Proxy, on_failure: OnFailure) -> RedisLimiter {
    let builder = patient(&proxy.address());
    let store = builder.breaker(3, Duration::from_secs(3600)).build().unwrap();
    RedisLimiter::builder(&store, "api", Quota::per_hour(LIMIT)).on_failure(on_failure).build().unwrap()
}

/// Asks so many times; gives how many were admitted by each.
async fn ask(node: &RedisLimiter, times: u32) -> (u32, u32, u32) {
    let (mut by_store, mut locally, mut by_nobody) = (0, 0, 0);
    for _ in 0..times {
        let Ok(decided) = node.try_acquire(KEY).await else { continue };
        let Ok(admission) = decided.into_result() else { continue };
        match decided.decided_by() {
            DecidedBy::Store => by_store += 1,
            DecidedBy::Local => locally += 1,
            _ => by_nobody += 1,
        }
        assert_eq!(admission.is_counted(), decided.decided_by() != DecidedBy::Nobody);
        // What the store did not charge it does not refund.
        if decided.decided_by() != DecidedBy::Store {
            assert_eq!(node.refund(decided.into_receipt()).await, Ok(0));
        }
    }
    (by_store, locally, by_nobody)
}

#[test]
fn closed_admits_nothing() {
    play(async |server, proxy| {
        let node = node(proxy, OnFailure::Refuse);
        assert_eq!(ask(&node, 4).await, (4, 0, 0));
        proxy.set(Line::Away);
        assert_eq!(ask(&node, 20).await, (0, 0, 0));
        accounts_agree(&node, &mut server.connect());
    });
}

#[test]
fn open_admits_everything_and_says_that_it_is_not_counted() {
    play(async |server, proxy| {
        let node = node(proxy, OnFailure::Admit);
        assert_eq!(ask(&node, 4).await, (4, 0, 0));
        proxy.set(Line::Away);
        assert_eq!(ask(&node, 50).await, (0, 0, 50));
        assert_eq!(node.counts().admitted_uncounted, 50);
        // What is left is not known.
        assert!(node.peek(KEY, 0).await.is_err());
        let status = node.try_acquire_status(KEY, 1).await.unwrap();
        assert_eq!(status.remaining(), LIMIT);
        accounts_agree(&node, &mut server.connect());
    });
}

#[test]
fn a_local_share_admits_at_most_twice_n_in_a_window_that_spans_the_change() {
    play(async |_, proxy| {
        let nodes = [0; 3].map(|_| node(proxy, OnFailure::Local { nodes: 3 }));
        let (mut stored, mut local) = (0, 0);
        for node in &nodes {
            stored += ask(node, 20).await.0;
        }
        proxy.set(Line::Away);
        for node in &nodes {
            let (by_store, locally, by_nobody) = ask(node, 20).await;
            assert_eq!((by_store, locally, by_nobody), (0, LIMIT / 3, 0));
            local += locally;
            let denied = node.try_acquire(KEY).await.unwrap();
            assert_eq!((denied.decided_by(), denied.retry_after_secs()), (DecidedBy::Local, Some(3600)));
            assert_eq!(node.peek(KEY, 0).await.unwrap().remaining(), 0);
            // More than the share is not admitted, but the store might.
            assert!(node.try_acquire_n(KEY, 4).await.is_err());
            assert_eq!(node.counts().admitted_locally, u64::from(locally));
        }
        assert_eq!((stored, local), (LIMIT, LIMIT / 3 * 3));
        assert!(stored + local <= 2 * LIMIT);
    });
}

#[test]
fn a_share_of_no_nodes_is_an_error_when_built() {
    let store = Store::new("redis+unix:///no/such/socket", secret()).unwrap();
    let builder = |nodes| {
        let builder = RedisLimiter::builder(&store, "api", Quota::per_hour(LIMIT));
        builder.on_failure(OnFailure::Local { nodes }).build()
    };
    assert!(matches!(builder(0), Err(tollgate_redis::BuildError::NoNodes)));
    assert!(matches!(builder(11), Err(tollgate_redis::BuildError::NoShare { nodes: 11, .. })));
    assert!(builder(10).is_ok());
}

#[test]
fn after_some_failures_the_store_is_not_asked_until_one_probe_succeeds() {
    play(async |_, proxy| {
        let builder = patient(&proxy.address());
        let store = builder.breaker(3, Duration::from_millis(200)).build().unwrap();
        // All limiters of a store share its breaker.
        let [one, other] = ["one", "other"].map(|name| RedisLimiter::new(&store, name, Quota::per_hour(9)).unwrap());
        proxy.set(Line::Away);
        for limiter in [&one, &other, &one] {
            assert_eq!(cause(&limiter.try_acquire(KEY).await.unwrap_err()), (Cause::NotConnected, false));
        }
        assert_eq!(cause(&other.try_acquire(KEY).await.unwrap_err()), (Cause::CircuitOpen, false));
        proxy.set(Line::Good);
        let error = loop {
            match one.try_acquire(KEY).await {
                Ok(decision) => break decision,
                Err(error) => assert_eq!(cause(&error), (Cause::CircuitOpen, false)),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert!(error.is_admitted() && other.try_acquire(KEY).await.unwrap().is_admitted());
    });
}
