//! Decisions on keys, and what the server holds after them.

use std::time::Duration;

use redis::Connection;
use tollgate::{MockClock, Quota};
use tollgate_redis::{RedisJointLimiter, RedisLimiter, Secret, Store, StoreError};

use crate::receipt;
use tollgate_kit::redis::{START, Server, ask, runtime};

const KEY: &str = "alice";

/// How many changes the server has made.
fn changes(connection: &mut Connection) -> u64 {
    let info: String = ask(connection, &["INFO", "persistence"]);
    let line = info.lines().find_map(|line| line.strip_prefix("rdb_changes_since_last_save:"));
    line.expect("a line").trim().parse().expect("a number")
}

fn only_key(connection: &mut Connection) -> String {
    let keys: Vec<String> = ask(connection, &["KEYS", "tollgate:*"]);
    let [key] = &*keys else { panic!("{keys:?}") };
    key.clone()
}

#[test]
fn all_nodes_share_one_limit_and_a_denial_writes_nothing() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    runtime().block_on(async {
        let nodes = [0; 3].map(|_| RedisLimiter::new(&server.store(), "api", Quota::per_hour(5)).unwrap());
        for request in 0..5 {
            assert!(nodes[request % 3].try_acquire(KEY).await.unwrap().is_admitted());
        }
        let before = changes(&mut connection);
        for node in &nodes {
            let denial = node.try_acquire(KEY).await.unwrap().into_result().unwrap_err();
            assert!(denial.retry_after() > Duration::from_secs(3500) && denial.retry_after_secs() <= Some(3600));
            assert!(node.peek(KEY, 1).await.unwrap().decision().is_denied());
            assert_eq!(node.peek("bob", 5).await.unwrap().remaining(), 5);
        }
        assert_eq!(changes(&mut connection), before);
        assert!(nodes[0].try_acquire("bob").await.unwrap().is_admitted());
        assert_eq!(nodes[1].peek("bob", 0).await.unwrap().remaining(), 4);
    });
}

#[test]
fn another_name_prefix_or_secret_is_another_key() {
    let Some(server) = Server::start(&[]) else { return };
    let (store, mut connection) = (server.store(), server.connect());
    let other = server.builder().prefix("other").build().unwrap();
    let secret = Secret::new("the secret of somebody else").unwrap();
    let stranger = Store::builder(&server.address(), secret)
        .timeout(Duration::from_secs(20))
        .connect_timeout(Duration::from_secs(20))
        .build()
        .unwrap();
    runtime().block_on(async {
        for (store, name) in [(&store, "api"), (&store, "login"), (&other, "api"), (&stranger, "api")] {
            let limiter = RedisLimiter::new(store, name, Quota::per_hour(1)).unwrap();
            assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
            assert!(limiter.try_acquire(KEY).await.unwrap().is_denied());
        }
    });
    let keys: Vec<String> = ask(&mut connection, &["KEYS", "*"]);
    assert_eq!(keys.len(), 4);
    // Nobody can read a user's name off the server.
    assert!(keys.iter().all(|key| !key.contains(KEY)), "{keys:?}");
}

#[test]
fn keys_expire_after_the_longest_window_and_not_before() {
    let Some(server) = Server::start(&[]) else { return };
    let (store, mut connection) = (server.store(), server.connect());
    let builder = RedisLimiter::builder(&store, "api", Quota::per_second(50));
    let limiter = builder.and(Quota::per_minute(100)).build().unwrap();
    runtime().block_on(async {
        for _ in 0..20 {
            assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
            let left: u64 = { ask(&mut connection, &["PTTL", &only_key(&mut server.connect())]) };
            assert!((60_000..75_003).contains(&left), "{left}");
        }
        // A limiter of a longer window makes them stay as long as it needs, and one of a shorter
        // window does not cut that.
        let longer = RedisLimiter::new(&store, "api", Quota::per_hour(1000)).unwrap();
        assert!(longer.try_acquire(KEY).await.unwrap().is_admitted());
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
        let left: u64 = ask(&mut connection, &["PTTL", &only_key(&mut server.connect())]);
        assert!(left > 3_600_000 - 20_000, "{left}");
    });
}

/// Permits of a small window, so that nearly all are dead: the value follows what is live.
#[test]
fn memory_follows_the_live_permits() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, store, mut connection) = (server.clock(), server.store_with_time(), server.connect());
    let limiter = RedisLimiter::new(&store, "api", Quota::new(100, Duration::from_millis(1))).unwrap();
    runtime().block_on(async {
        for request in 0..2000_u64 {
            clock.set(START + request * 100);
            // Ten requests a window.
            assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
            if request % 100 == 99 {
                let bytes: usize = ask(&mut connection, &["STRLEN", &only_key(&mut server.connect())]);
                assert!(bytes < 512, "{bytes} bytes for 10 permits");
                assert_eq!(limiter.peek(KEY, 0).await.unwrap().remaining(), 90);
            }
        }
    });
}

#[test]
fn a_cost_is_granted_whole_or_not_at_all() {
    let Some(server) = Server::start(&[]) else { return };
    let limiter = RedisLimiter::new(&server.store(), "api", Quota::per_hour(10)).unwrap();
    runtime().block_on(async {
        assert!(limiter.try_acquire_n(KEY, 7).await.unwrap().is_admitted());
        assert!(limiter.try_acquire_n(KEY, 4).await.unwrap().is_denied());
        assert!(limiter.try_acquire_n(KEY, 3).await.unwrap().is_admitted());
        let error = limiter.try_acquire_n(KEY, 11).await.unwrap_err();
        assert_eq!(error, StoreError::CostExceedsLimit { cost: 11, limit: 10 });
        assert!(limiter.try_acquire_n(KEY, 0).await.unwrap().is_admitted());
    });
}

#[test]
fn several_dimensions_are_charged_together_or_not_at_all() {
    let Some(server) = Server::start(&[]) else { return };
    let builder = RedisJointLimiter::builder(&server.store(), "api").dimension("user", [Quota::per_hour(1)]);
    let limiter = builder.dimension("tenant", [Quota::per_hour(2)]).build().unwrap();
    runtime().block_on(async {
        let user = |name: &'static str| [Some(name.as_bytes()), Some(&b"acme"[..])];
        assert!(limiter.try_acquire(&user("alice")).await.unwrap().is_admitted());
        let denial = limiter.try_acquire(&user("alice")).await.unwrap().into_result().unwrap_err();
        assert_eq!((denial.dimension(), denial.violated().collect::<Vec<_>>()), (0, vec![0]));
        // The denied request took nothing of the tenant.
        assert!(limiter.try_acquire(&user("bob")).await.unwrap().is_admitted());
        let denial = limiter.try_acquire(&user("carol")).await.unwrap().into_result().unwrap_err();
        assert_eq!((denial.dimension(), limiter.dimension(1)), (1, "tenant"));
        assert!(limiter.try_acquire(&[Some(b"carol"), None]).await.unwrap().is_admitted());
        assert!(limiter.forget(1, "acme").await.unwrap());
        assert!(!limiter.forget(1, "acme").await.unwrap());
        assert!(limiter.try_acquire(&[None, Some(b"acme")]).await.unwrap().is_admitted());
        for keys in [&[None, None][..], &[Some(&b"alice"[..])]] {
            assert!(matches!(limiter.try_acquire(keys).await, Err(StoreError::WrongKeys { dimensions: 2, .. })));
        }
    });
}

#[test]
fn a_receipt_refunds_once_and_only_at_its_own_limiter() {
    let Some(server) = Server::start(&[]) else { return };
    let store = server.store();
    let limiter = RedisLimiter::new(&store, "api", Quota::per_hour(3)).unwrap();
    let other = RedisLimiter::new(&store, "other", Quota::per_hour(3)).unwrap();
    runtime().block_on(async {
        let charge = receipt(limiter.try_acquire_n(KEY, 2).await.unwrap());
        assert_eq!(other.refund(charge).await, Err(StoreError::OtherLimiter));
        let charge = receipt(limiter.try_acquire(KEY).await.unwrap());
        assert!(limiter.try_acquire(KEY).await.unwrap().is_denied());
        assert_eq!(limiter.refund(charge).await.unwrap(), 1);
        let charge = receipt(limiter.try_acquire(KEY).await.unwrap());
        assert!(limiter.forget(KEY).await.unwrap());
        assert_eq!(limiter.refund(charge).await.unwrap(), 0);
    });
}

/// Lowered limits make both deny until the same moment.
#[test]
fn a_quota_that_another_implies_never_decides() {
    let Some(server) = Server::start(&[]) else { return };
    let store = server.store_with_time();
    let before = RedisLimiter::new(&store, "api", Quota::per_hour(5)).unwrap();
    let builder = RedisLimiter::builder(&store, "api", Quota::per_hour(4));
    let lowered = builder.and(Quota::per_hour(2)).build().unwrap();
    runtime().block_on(async {
        assert!(before.try_acquire_n(KEY, 5).await.unwrap().is_admitted());
        let denial = lowered.try_acquire(KEY).await.unwrap().into_result().unwrap_err();
        assert_eq!((denial.quota(), denial.retry_after_secs()), (1, Some(3600)));
        let left: Vec<_> = lowered.peek(KEY, 0).await.unwrap().quotas().map(|left| left.limit()).collect();
        assert_eq!(left, [4, 2], "in the given order");
    });
}

#[test]
fn of_quotas_with_the_same_wait_the_one_with_the_most_permits_decides() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, store) = (server.clock(), server.store_with_time());
    let two_in_three = Quota::new(2, Duration::from_secs(3));
    let limiter = RedisLimiter::builder(&store, "api", Quota::per_second(1)).and(two_in_three).build().unwrap();
    runtime().block_on(async {
        clock.set(START);
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
        clock.set(START + 2_000_000);
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
        let denial = limiter.try_acquire(KEY).await.unwrap().into_result().unwrap_err();
        assert_eq!((denial.quota(), denial.retry_after()), (1, Duration::from_secs(1)));
    });
}

/// The time of a log is past. By the server's clock its keys would be gone as soon as they are written.
#[test]
fn a_log_is_decided_at_the_times_that_it_has() {
    let Some(server) = Server::start(&[]) else { return };
    let clock = MockClock::new();
    let store = server.builder().prefix("replay").log_clock(clock.clone()).build().unwrap();
    runtime().block_on(async {
        let limiter = RedisLimiter::new(&store, "api", Quota::per_minute(2)).unwrap();
        for (second, wait) in [(0, None), (7, None), (59, Some(1)), (60, None), (61, Some(6)), (3_600, None)] {
            clock.set((1_000_000_000 + second) * 1_000_000_000);
            let decision = limiter.try_acquire(KEY).await.unwrap();
            assert_eq!(decision.retry_after(), wait.map(Duration::from_secs), "{second}");
        }
        let mut connection = server.connect();
        let keys: Vec<String> = ask(&mut connection, &["KEYS", "*"]);
        assert!(keys.len() == 1 && keys[0].starts_with("replay:"), "{keys:?}");
        let lives: i64 = ask(&mut connection, &["TTL", &keys[0]]);
        assert!((86_000..=86_400).contains(&lives), "{lives} s");
        assert!(limiter.forget(KEY).await.unwrap());
    });
}
