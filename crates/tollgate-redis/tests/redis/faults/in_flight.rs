//! Requests in flight on a line that is cut, and while the store is away.

use std::time::Duration;

use tollgate::Quota;
use tollgate_redis::{Cause, DecidedBy, OnFailure, RedisLimiter, Store};

use super::{KEY, cause};
use crate::faults::proxy::{Line, play};
use crate::until;
use tollgate_kit::redis::{Server, ask, patient, runtime, secret};

#[test]
fn a_request_whose_answer_is_lost_leaves_by_itself() {
    play(async |server, proxy| {
        let store = Store::builder(&proxy.address(), secret()).timeout(Duration::from_secs(20));
        let store = store.breaker(u32::MAX, Duration::ZERO).build().unwrap();
        let limiter = RedisLimiter::new(&store, "exports", Quota::concurrent(1)).unwrap();
        let beside = RedisLimiter::new(&server.store(), "exports", Quota::concurrent(1)).unwrap();
        for round in 1..=10 {
            proxy.set(Line::Good);
            assert!(limiter.peek(KEY, 1).await.unwrap().is_admitted());
            proxy.set(Line::CutBeforeReply);
            let error = limiter.try_enter(KEY).await.unwrap_err();
            assert_eq!(cause(&error), (Cause::Disconnected, true));
            // The server has let it in, and the call by which it leaves may have been cut, too.
            proxy.set(Line::Good);
            until("it was told to leave", async || {
                let counts = limiter.counts();
                counts.released + counts.unreleased == round
            })
            .await;
            if beside.peek(KEY, 1).await.unwrap().is_denied() {
                assert!(limiter.counts().unreleased > 0, "it left, and is there");
                assert!(beside.forget(KEY).await.unwrap());
            }
        }
        assert_eq!(limiter.counts().perhaps_charged, 10);
    });
}

#[test]
fn a_caller_that_goes_away_takes_no_place() {
    play(async |_, proxy| {
        let limiter = RedisLimiter::new(&patient(&proxy.address()).build().unwrap(), "api", Quota::concurrent(1));
        let limiter = limiter.unwrap();
        assert!(limiter.peek(KEY, 1).await.unwrap().is_admitted());
        proxy.set(Line::Slow);
        let left = tokio::time::timeout(Duration::from_millis(20), limiter.try_enter(KEY)).await;
        assert!(left.is_err(), "{left:?}");
        proxy.set(Line::Good);
        until("it has left", async || limiter.counts().released == 1).await;
        assert_eq!((limiter.counts().abandoned, limiter.peek(KEY, 1).await.unwrap().remaining()), (1, 1));
    });
}

#[test]
fn while_the_store_is_away_a_node_lets_in_its_share() {
    let Some(mut server) = Server::start(&[]) else { return };
    let store = server.builder().breaker(1, Duration::ZERO).build().unwrap();
    let limiter = |on_failure| {
        let builder = RedisLimiter::builder(&store, "exports", Quota::concurrent(5));
        builder.on_failure(on_failure).build().unwrap()
    };
    let (local, open, closed) =
        (limiter(OnFailure::Local { nodes: 2 }), limiter(OnFailure::Admit), limiter(OnFailure::Refuse));
    runtime().block_on(async {
        let (on_store, _) = local.try_enter(KEY).await.unwrap().enter();
        assert!(on_store.counts());
        server.kill();
        let mut held = vec![];
        for _ in 0..2 {
            let decided = local.try_enter(KEY).await.unwrap();
            assert_eq!(decided.decided_by(), DecidedBy::Local);
            held.push(decided.enter().0);
        }
        assert!(held.iter().all(tollgate_redis::InFlight::counts));
        assert!(local.try_enter(KEY).await.unwrap().is_denied());
        // It leaves at once, without the store.
        drop(held.pop());
        assert!(local.try_enter(KEY).await.unwrap().is_admitted());
        let (uncounted, _) = open.try_enter(KEY).await.unwrap().enter();
        assert!(!uncounted.counts());
        assert!(closed.try_enter(KEY).await.is_err());
        // That of the store cannot leave.
        assert!(on_store.leave().await.is_err());
        // Nor could one that was perhaps let in when the line broke.
        assert!(local.counts().released == 0 && local.counts().unreleased > 0);
    });
    // A local one has no token.
    runtime().block_on(async {
        let (in_flight, _) = local.try_enter("bob").await.unwrap().enter();
        assert_eq!((in_flight.counts(), in_flight.into_token()), (true, None));
    });
}

#[test]
fn a_store_without_memory_lets_nobody_in_and_lets_all_out() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let limiter = RedisLimiter::new(&server.store(), "exports", Quota::concurrent(2)).unwrap();
    runtime().block_on(async {
        let (in_flight, _) = limiter.try_enter(KEY).await.unwrap().enter();
        let _: redis::Value = ask(&mut connection, &["CONFIG", "SET", "maxmemory", "1"]);
        let error = limiter.try_enter(KEY).await.unwrap_err();
        assert_eq!(cause(&error), (Cause::ServerNotReady, false));
        in_flight.leave().await.unwrap();
        assert_eq!(limiter.peek(KEY, 1).await.unwrap().remaining(), 2);
    });
}
