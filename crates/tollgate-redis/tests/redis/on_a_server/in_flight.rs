//! Requests in flight on a real server: who counts, for how long, and how they leave.

use std::time::Duration;

use tollgate::{Decision, DenialReason, Quota};
use tollgate_redis::{Decided, InFlight, RedisJointLimiter, RedisLimiter, StoreError};

use crate::until;
use tollgate_kit::redis::{START, Server, ask, runtime};

const KEY: &str = "alice";
const HOLD: Duration = Duration::from_secs(600);
const SECOND: u64 = 1_000_000;

fn guard(decided: Decided<Decision>) -> InFlight {
    assert!(decided.is_admitted(), "{decided:?}");
    let (in_flight, _) = decided.enter();
    assert!(in_flight.counts());
    in_flight
}

#[test]
fn a_place_is_taken_on_all_nodes_until_its_guard_is_dropped() {
    let Some(server) = Server::start(&[]) else { return };
    let store = server.store();
    let node = || RedisLimiter::new(&store, "exports", Quota::concurrent(2)).unwrap();
    let (one, other) = (node(), node());
    runtime().block_on(async {
        let _first = guard(one.try_enter(KEY).await.unwrap());
        let second = guard(other.try_enter(KEY).await.unwrap());
        for node in [&one, &other] {
            let denied = node.try_enter(KEY).await.unwrap();
            let denial = denied.into_result().unwrap_err();
            assert_eq!((denial.reason(), denial.retry_after()), (DenialReason::InFlight, Duration::MAX));
            // One that does not enter is over at once, and needs a place all the same.
            assert!(node.try_acquire(KEY).await.unwrap().is_denied());
            let left = node.peek(KEY, 1).await.unwrap().quotas().next().unwrap();
            assert!(left.counts_requests() && left.is_violated());
            assert_eq!((left.limit(), left.remaining(), left.reset_after()), (2, 0, Duration::MAX));
        }
        assert!(one.try_enter("bob").await.unwrap().is_admitted());
        // Guards go anywhere.
        std::thread::spawn(move || drop(second)).join().unwrap();
        until("it has left", async || other.counts().released == 1).await;
        for _ in 0..3 {
            assert!(one.try_acquire(KEY).await.unwrap().is_admitted());
        }
        guard(one.try_enter(KEY).await.unwrap()).leave().await.unwrap();
        // A decision that is dropped was a request that is over.
        drop(one.try_enter(KEY).await.unwrap());
        until("all have left", async || one.counts().released == 3).await;
        assert_eq!(one.peek(KEY, 1).await.unwrap().remaining(), 1);
        assert_eq!(one.counts().unreleased + other.counts().unreleased, 0);
    });
}

#[test]
fn a_holder_that_never_comes_back_counts_until_its_time_is_over_and_not_longer() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, store) = (server.clock(), server.store_with_time());
    let limiter = RedisLimiter::new(&store, "exports", Quota::concurrent(2).held_at_most(HOLD)).unwrap();
    clock.set(START);
    runtime().block_on(async {
        std::mem::forget(guard(limiter.try_enter(KEY).await.unwrap()));
        clock.set(START + SECOND);
        let second = guard(limiter.try_enter(KEY).await.unwrap());
        clock.set(START + 600 * SECOND - 1);
        assert!(limiter.try_enter(KEY).await.unwrap().is_denied());
        clock.set(START + 600 * SECOND);
        let third = guard(limiter.try_enter(KEY).await.unwrap());
        assert!(limiter.try_enter(KEY).await.unwrap().is_denied());
        // It is over: its guard frees the place of no other.
        clock.set(START + 601 * SECOND);
        second.leave().await.unwrap();
        let _fourth = guard(limiter.try_enter(KEY).await.unwrap());
        assert!(limiter.try_enter(KEY).await.unwrap().is_denied());
        third.leave().await.unwrap();
        assert_eq!(limiter.peek(KEY, 1).await.unwrap().remaining(), 1);
    });
}

#[test]
fn the_server_forgets_a_key_once_none_of_its_requests_counts() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let store = server.store();
    let limiter = RedisLimiter::new(&store, "exports", Quota::concurrent(9).held_at_most(HOLD)).unwrap();
    let name = format!("*{}*", limiter.digest(KEY));
    runtime().block_on(async {
        let in_flight = guard(limiter.try_enter(KEY).await.unwrap());
        let names: Vec<String> = ask(&mut connection, &["KEYS", &name]);
        let left: i64 = ask(&mut connection, &["PTTL", &names[0]]);
        // A quarter more, so that it is not set by each request.
        assert!((600_000..=750_010).contains(&left), "{left}");
        in_flight.leave().await.unwrap();
        assert!(ask::<Vec<String>>(&mut connection, &["KEYS", &name]).is_empty());
    });
}

#[test]
fn a_token_is_released_once_by_any_process() {
    let Some(server) = Server::start(&[]) else { return };
    let store = server.store();
    let node = || {
        let builder = RedisJointLimiter::builder(&store, "jobs").dimension("rate", [Quota::per_hour(9)]);
        let builder = builder.dimension("tenant", [Quota::concurrent(1)]);
        builder.dimension("user", [Quota::concurrent(1)]).build().unwrap()
    };
    let (web, worker) = (node(), node());
    let keys: [Option<&[u8]>; 3] = [Some(b"alice"), Some(b"7"), Some(b"alice")];
    runtime().block_on(async {
        let (in_flight, _) = web.try_enter(&keys).await.unwrap().enter();
        let token = in_flight.into_token().unwrap();
        assert!(web.try_enter(&keys).await.unwrap().is_denied());
        // A key of permits has no requests in flight.
        let of_rate = format!("{}-0-{}", &token[..32], web.digest(0, "alice"));
        for other in ["", "7", &token[..32], &format!("{token}-9-{:032x}", 7), &of_rate] {
            assert!(!worker.release(other).await.unwrap(), "{other}");
        }
        assert_eq!((worker.counts().released, worker.counts().unreleased), (0, 0));
        assert!(web.try_enter(&keys).await.unwrap().is_denied());
        assert_eq!([worker.release(&token).await.unwrap(), web.release(&token).await.unwrap()], [true, false]);
        // In both dimensions.
        assert!(web.try_enter(&keys).await.unwrap().is_admitted());
        // A request that nothing counts has no token.
        let (none, _) = web.try_enter(&[Some(b"bob"), None, None]).await.unwrap().enter();
        assert_eq!((none.counts(), none.into_token()), (false, None));
    });
}

#[test]
fn a_request_that_is_denied_by_one_dimension_takes_nothing_in_the_others() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, store) = (server.clock(), server.store_with_time());
    let builder = RedisJointLimiter::builder(&store, "api").dimension("streams", [Quota::concurrent(2)]);
    let builder = builder.dimension("tokens", [Quota::token_bucket(10, 1, Duration::from_secs(1))]);
    let limiter = builder.cache_denials(64).build().unwrap();
    let keys: [Option<&[u8]>; 2] = [Some(b"alice"), Some(b"alice")];
    clock.set(START);
    runtime().block_on(async {
        let (first, estimated) = limiter.try_enter_n(&keys, 8).await.unwrap().enter();
        // The bucket denies: its wait is told, and no place is taken.
        let denied = limiter.try_enter_n(&keys, 5).await.unwrap().into_result().unwrap_err();
        assert_eq!((denied.reason(), denied.dimension()), (DenialReason::Quota, 1));
        assert_eq!(denied.violated().collect::<Vec<_>>(), [1]);
        let (second, _) = limiter.try_enter_n(&keys, 1).await.unwrap().enter();
        // Both deny: a wait that is known is told before one that is not.
        let denied = limiter.try_enter_n(&keys, 4).await.unwrap().into_result().unwrap_err();
        assert_eq!((denied.retry_after(), denied.dimension()), (Duration::from_secs(3), 1));
        assert_eq!(denied.violated().collect::<Vec<_>>(), [0, 1]);
        // The places deny: no permit is charged, and the denial is not kept.
        let denied = limiter.try_enter_n(&keys, 1).await.unwrap().into_result().unwrap_err();
        assert_eq!((denied.reason(), denied.dimension()), (DenialReason::InFlight, 0));
        drop((first, second));
        until("both have left", async || limiter.counts().released == 2).await;
        let (_third, _) = limiter.try_enter_n(&keys, 1).await.unwrap().enter();
        // The charge is settled on its own.
        assert_eq!(limiter.settle(estimated, 2).await.unwrap(), 2);
        let status = limiter.peek(&keys, 1).await.unwrap();
        assert_eq!(status.quotas().map(|left| left.remaining()).collect::<Vec<_>>(), [1, 6]);
        // More than the limit of places is no error: a request is one.
        assert!(limiter.try_acquire_n(&keys, 6).await.unwrap().is_admitted());
        let error = limiter.try_enter_n(&keys, 11).await.unwrap_err();
        assert_eq!(error, StoreError::CostExceedsLimit { cost: 11, limit: 10 });
    });
}

#[test]
fn a_forgotten_key_counts_anew_and_old_guards_free_nothing() {
    let Some(server) = Server::start(&[]) else { return };
    let limiter = RedisLimiter::new(&server.store(), "exports", Quota::concurrent(1)).unwrap();
    runtime().block_on(async {
        let old = guard(limiter.try_enter(KEY).await.unwrap());
        assert!(limiter.forget(KEY).await.unwrap());
        let _new = guard(limiter.try_enter(KEY).await.unwrap());
        old.leave().await.unwrap();
        assert!(limiter.try_enter(KEY).await.unwrap().is_denied());
    });
}

#[test]
fn a_value_that_is_not_ours_and_a_clock_that_went_back_are_errors_without_a_write() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let limiter = RedisLimiter::new(&server.store(), "exports", Quota::concurrent(9)).unwrap();
    let key = limiter.digest(KEY);
    runtime().block_on(async {
        let in_flight = guard(limiter.try_enter(KEY).await.unwrap());
        let names: Vec<String> = ask(&mut connection, &["KEYS", &format!("*{key}*")]);
        let name = names[0].as_str();
        let [seconds, _]: [u64; 2] = ask(&mut connection, &["TIME"]);
        let in_an_hour = ((seconds + 3600) * SECOND).to_string();
        let _: u64 = ask(&mut connection, &["ZADD", name, &in_an_hour, "one that entered in an hour"]);
        let error = limiter.try_enter(KEY).await.unwrap_err();
        assert!(matches!(error, StoreError::ClockWentBack { key: its, .. } if its == key), "{error}");
        // One that is in flight can leave.
        in_flight.leave().await.unwrap();
        assert_eq!(ask::<u64>(&mut connection, &["ZCARD", name]), 1);
        for words in [["SET", name, "7"].as_slice(), &["ZADD", name, "inf", "x"]] {
            let _: u64 = ask(&mut connection, &["DEL", name]);
            let _: redis::Value = ask(&mut connection, words);
            assert_eq!(limiter.try_enter(KEY).await.unwrap_err(), StoreError::ForeignValue { key });
        }
    });
}
