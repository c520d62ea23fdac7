//! A server that is killed, and one that another takes the place of.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tollgate::Quota;
use tollgate_redis::{Cause, RedisLimiter};

use super::{KEY, accounts_agree, cause, charged};
use tollgate_kit::redis::{Server, ask, free_port, runtime};

const LIMIT: u32 = 1_000;

/// Kills a server with these options while requests are on their way. Gives the permits that were
/// lost. Nothing else exceeds the limit.
fn lost_by_a_kill(options: &[&str]) -> Option<u64> {
    let mut server = Server::start(options)?;
    let store = server.builder().breaker(u32::MAX, Duration::ZERO).build().unwrap();
    let limiter = Arc::new(RedisLimiter::new(&store, "api", Quota::per_hour(LIMIT)).unwrap());
    let lost = runtime().block_on(async {
        let mut tasks = JoinSet::new();
        for _ in 0..8 {
            let limiter = Arc::clone(&limiter);
            tasks.spawn(async move { while limiter.try_acquire(KEY).await.is_ok_and(|it| it.is_admitted()) {} });
        }
        // In the middle of the limit, or near its end on a slow machine.
        while limiter.counts().admitted < 300 {
            tokio::task::yield_now().await;
        }
        server.kill();
        tasks.join_all().await;
        let before = limiter.counts();
        server.start_again();
        let kept = charged(&limiter, &mut server.connect());
        let told = before.admitted + before.abandoned;
        assert!(kept <= told + before.perhaps_charged, "{kept} kept: {before:?}");
        // Until it is denied, and not for want of a connection.
        while limiter.try_acquire(KEY).await.is_ok_and(|it| it.is_admitted()) {}
        while limiter.try_acquire(KEY).await.is_err() {}
        while limiter.try_acquire(KEY).await.unwrap().is_admitted() {}
        let (after, lost) = (limiter.counts(), told.saturating_sub(kept));
        assert!(after.admitted <= u64::from(LIMIT) + lost, "{lost} lost: {after:?}");
        assert!(after.admitted + after.abandoned + after.perhaps_charged >= u64::from(LIMIT) + lost, "{after:?}");
        lost
    });
    Some(lost)
}

#[test]
fn a_server_that_is_killed_admits_at_most_n_and_what_it_lost() {
    let aof = ["--appendonly", "yes", "--appendfsync"];
    // It has written down each admission before it answers.
    let Some(lost) = lost_by_a_kill(&[&aof[..], &["always"]].concat()) else { return };
    assert_eq!(lost, 0);
    for mode in ["everysec", "no"] {
        lost_by_a_kill(&[&aof[..], &[mode]].concat());
    }
    let lost = lost_by_a_kill(&[]).expect("a server");
    assert!(lost >= 300, "{lost}");
}

/// A replica takes the place of the primary. What was not replicated is lost.
#[test]
fn after_a_failover_a_window_holds_at_most_n_and_what_was_not_replicated() {
    let port = free_port().to_string();
    let Some(primary) = Server::start(&["--port", &port, "--bind", "127.0.0.1"]) else { return };
    let replica = Server::start(&["--replicaof", "127.0.0.1", &port]).expect("another server");
    let (mut of_primary, mut of_replica) = (primary.connect(), replica.connect());
    let [before, after] =
        [&primary, &replica].map(|server| RedisLimiter::new(&server.store(), "api", Quota::per_hour(10)).unwrap());
    runtime().block_on(async {
        let until = Instant::now() + Duration::from_secs(30);
        while !ask::<String>(&mut of_replica, &["INFO", "replication"]).contains("master_link_status:up") {
            assert!(Instant::now() < until, "the replica does not follow");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for _ in 0..6 {
            assert!(before.try_acquire(KEY).await.unwrap().is_admitted());
        }
        // Until it says that it has them.
        assert_eq!(ask::<u64>(&mut of_primary, &["WAIT", "1", "30000"]), 1);
        let error = after.try_acquire(KEY).await.unwrap_err();
        assert_eq!(cause(&error), (Cause::ServerNotReady, false), "nobody writes to a replica");
        // The line between them is cut, and the primary goes on.
        let _: redis::Value = ask(&mut of_replica, &["REPLICAOF", "NO", "ONE"]);
        for _ in 0..3 {
            assert!(before.try_acquire(KEY).await.unwrap().is_admitted());
        }
        let lost = charged(&before, &mut of_primary) - charged(&after, &mut of_replica);
        while after.try_acquire(KEY).await.unwrap().is_admitted() {}
        assert_eq!(lost, 3);
        assert_eq!(before.counts().admitted + after.counts().admitted, 10 + lost);
        accounts_agree(&before, &mut of_primary);
    });
}

#[test]
fn a_primary_that_needs_a_replica_charges_nothing_without_one() {
    let port = free_port().to_string();
    let options = ["--port", &port, "--bind", "127.0.0.1", "--min-replicas-to-write", "1"];
    let Some(primary) = Server::start(&options) else { return };
    let limiter = RedisLimiter::new(&primary.store(), "api", Quota::per_hour(10)).unwrap();
    runtime().block_on(async {
        let error = limiter.try_acquire(KEY).await.unwrap_err();
        assert_eq!(cause(&error), (Cause::ServerNotReady, false));
        let replica = Server::start(&["--replicaof", "127.0.0.1", &port]).expect("another server");
        let until = Instant::now() + Duration::from_secs(30);
        while limiter.try_acquire(KEY).await.is_err() {
            assert!(Instant::now() < until, "the replica does not follow");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(replica);
        // It learns of that when the line breaks.
        while limiter.try_acquire(KEY).await.is_ok_and(|it| it.is_admitted()) {}
        let error = limiter.try_acquire_n("bob", 1).await.unwrap_err();
        assert_eq!(cause(&error), (Cause::ServerNotReady, false));
        assert_eq!(charged(&limiter, &mut primary.connect()), limiter.counts().admitted);
    });
}
