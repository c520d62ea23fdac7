//! A line that is cut, or slow.

use std::time::{Duration, Instant};

use tollgate::Quota;
use tollgate_redis::{Cause, DecidedBy, RedisLimiter, Store};

use super::{KEY, accounts_agree, cause, charged};
use crate::faults::proxy::{Line, Proxy, play};
use tollgate_kit::redis::{START, Server, patient, runtime, secret};

fn store(proxy: &Proxy, timeout: Duration) -> Store {
    // It is about the line alone.
    Store::builder(&proxy.address(), secret()).timeout(timeout).breaker(u32::MAX, Duration::ZERO).build().unwrap()
}

#[test]
fn a_request_without_an_answer_is_perhaps_charged_and_nothing_is_sent_twice() {
    play(async |server, proxy| {
        let mut connection = server.connect();
        let limiter = RedisLimiter::new(&store(proxy, Duration::from_secs(20)), "api", Quota::per_hour(1000)).unwrap();
        for round in 0..20_u64 {
            for (line, charges) in [(Line::CutBeforeRequest, 0), (Line::CutBeforeReply, 1)] {
                proxy.set(Line::Good);
                assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
                let before = charged(&limiter, &mut connection);
                proxy.set(line);
                let error = limiter.try_acquire(KEY).await.unwrap_err();
                assert_eq!(cause(&error), (Cause::Disconnected, true), "{line:?}");
                assert_eq!(charged(&limiter, &mut connection), before + charges, "{line:?}");
            }
            assert_eq!(limiter.counts().perhaps_charged, 2 * round + 2);
        }
        accounts_agree(&limiter, &mut connection);
        assert_eq!(charged(&limiter, &mut connection), 60);
    });
}

#[test]
fn an_answer_that_comes_late_is_perhaps_charged_and_the_next_answer_is_not_taken_for_it() {
    play(async |server, proxy| {
        let mut connection = server.connect();
        let limiter = RedisLimiter::new(&store(proxy, Duration::from_millis(200)), "api", Quota::per_hour(2)).unwrap();
        while limiter.peek(KEY, 0).await.is_err() {}
        proxy.set(Line::Slow);
        assert_eq!(cause(&limiter.try_acquire(KEY).await.unwrap_err()), (Cause::TimedOut, true));
        proxy.set(Line::Good);
        // The late answer is on the same connection, before these.
        while limiter.peek("bob", 0).await.is_err() {}
        assert_eq!(limiter.peek("bob", 0).await.unwrap().remaining(), 2);
        assert_eq!(limiter.peek(KEY, 0).await.unwrap().remaining(), 1);
        accounts_agree(&limiter, &mut connection);
    });
}

#[test]
fn a_line_that_is_never_made_charges_nothing() {
    play(async |server, proxy| {
        let mut connection = server.connect();
        proxy.set(Line::Away);
        let limiter = RedisLimiter::new(&store(proxy, Duration::from_secs(20)), "api", Quota::per_hour(2)).unwrap();
        for _ in 0..10 {
            assert_eq!(cause(&limiter.try_acquire(KEY).await.unwrap_err()), (Cause::NotConnected, false));
        }
        assert_eq!((charged(&limiter, &mut connection), limiter.counts().perhaps_charged), (0, 0));
        proxy.set(Line::Good);
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
    });
}

/// To connect takes two answers, and each of them more than half of a call's time.
#[test]
fn connecting_has_a_time_of_its_own_and_the_first_request_waits_for_it() {
    play(async |_, proxy| {
        proxy.set(Line::Far);
        let builder = Store::builder(&proxy.address(), secret()).timeout(Duration::from_millis(1_800));
        let builder = builder.connect_timeout(Duration::from_secs(20)).breaker(u32::MAX, Duration::ZERO);
        let limiter = RedisLimiter::new(&builder.build().unwrap(), "api", Quota::per_hour(9)).unwrap();
        // On a slow machine an answer may come too late. The connection is there then.
        let mut attempts = 1;
        while let Err(error) = limiter.try_acquire(KEY).await {
            assert_eq!(cause(&error), (Cause::TimedOut, true));
            attempts += 1;
            assert!(attempts <= 5);
        }
        assert!(proxy.connections() <= 2);
    });
}

/// A server that is away while a connection is made: requests wait for their own time alone.
#[test]
fn a_later_connection_is_made_while_requests_wait_no_longer_than_their_own_time() {
    play(async |_, proxy| {
        let builder = Store::builder(&proxy.address(), secret()).timeout(Duration::from_millis(300));
        let builder = builder.connect_timeout(Duration::from_secs(3600)).breaker(2, Duration::from_secs(3600));
        let limiter = RedisLimiter::new(&builder.build().unwrap(), "api", Quota::per_hour(9)).unwrap();
        while limiter.try_acquire(KEY).await.is_err() {}
        proxy.set(Line::CutBeforeRequest);
        assert_eq!(cause(&limiter.try_acquire(KEY).await.unwrap_err()), (Cause::Disconnected, true));
        proxy.set(Line::Far);
        assert_eq!(cause(&limiter.try_acquire(KEY).await.unwrap_err()), (Cause::NotConnected, false));
        // The breaker is open for an hour, until the connection is there.
        proxy.set(Line::Good);
        let until = Instant::now() + Duration::from_secs(60);
        while limiter.try_acquire(KEY).await.is_err() {
            assert!(Instant::now() < until, "{:?}", limiter.counts());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(proxy.connections(), 2);
    });
}

#[test]
fn more_requests_than_may_be_on_their_way_charge_nothing() {
    play(async |server, proxy| {
        let mut connection = server.connect();
        let builder = Store::builder(&proxy.address(), secret()).timeout(Duration::from_millis(200)).max_calls(1);
        let limiter = RedisLimiter::new(&builder.build().unwrap(), "api", Quota::per_hour(9)).unwrap();
        while limiter.peek(KEY, 0).await.is_err() {}
        proxy.set(Line::Slow);
        let (first, second) = tokio::join!(limiter.try_acquire(KEY), limiter.try_acquire("bob"));
        assert_eq!(cause(&first.unwrap_err()), (Cause::TimedOut, true));
        // Either no place in time, or one that came too late.
        let (cause, _) = cause(&second.unwrap_err());
        assert!(matches!(cause, Cause::TooManyInFlight | Cause::TimedOut), "{cause}");
        accounts_agree(&limiter, &mut connection);
    });
}

/// A cached denial counts from when the request was sent: the answer took most of the wait.
#[test]
fn a_denial_that_came_late_is_not_kept_for_longer_than_the_wait() {
    play(async |_, proxy| {
        let (store, window) = (store(proxy, Duration::from_secs(20)), Duration::from_millis(700));
        let builder = RedisLimiter::builder(&store, "api", Quota::new(1, window));
        let limiter = builder.cache_denials(16).build().unwrap();
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
        let charged_by = tokio::time::Instant::now();
        proxy.set(Line::Slow);
        // On a slow machine the window is over before it asks.
        let _ = limiter.try_acquire(KEY).await.unwrap();
        tokio::time::sleep_until(charged_by + window).await;
        proxy.set(Line::Good);
        let _ = limiter.try_acquire(KEY).await.unwrap();
        assert_eq!(limiter.counts().denied_by_cache, 0);
    });
}

/// A lease counts from when its request was sent: the answer took most of its step.
#[test]
fn a_lease_that_came_late_is_spent_no_longer_than_its_step() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, time) = (server.clock(), tollgate_kit::redis::TIME);
    let (step, rest) = (Duration::from_secs(4), Duration::from_millis(600));
    clock.set(START - u64::try_from(rest.as_micros()).unwrap());
    assert!(START.is_multiple_of(u64::try_from(step.as_micros()).unwrap()));
    runtime().block_on(async {
        let proxy = Proxy::start(&server).await;
        let builder = patient(&proxy.address());
        let store = tollgate_redis::testing::with_time_from(builder, time).build().unwrap();
        let quota = Quota::quantised_log(1000, Duration::from_secs(60), step);
        let limiter = RedisLimiter::builder(&store, "api", quota).lease(100, 16).build().unwrap();
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
        proxy.set(Line::Slow);
        let sent_by = tokio::time::Instant::now();
        // On a slow machine the step is over before it asks.
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
        proxy.set(Line::Good);
        tokio::time::sleep_until(sent_by + rest).await;
        let decided = limiter.try_acquire(KEY).await.unwrap();
        assert_eq!((decided.is_admitted(), decided.decided_by()), (true, DecidedBy::Store));
    });
}

/// A store that is away takes nothing from leases.
#[test]
fn a_lease_is_spent_while_the_store_is_away_and_one_without_an_answer_is_not() {
    let Some(server) = Server::start(&[]) else { return };
    let clock = server.clock();
    clock.set(START + 1);
    runtime().block_on(async {
        let proxy = Proxy::start(&server).await;
        let builder = patient(&proxy.address());
        let store = tollgate_redis::testing::with_time_from(builder, tollgate_kit::redis::TIME).build().unwrap();
        let hour = Duration::from_secs(3600);
        let quota = Quota::quantised_log(1000, hour, hour);
        let limiter = RedisLimiter::builder(&store, "api", quota).lease(100, 16).build().unwrap();
        // The third lease has seven permits.
        for _ in 0..8 {
            assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
        }
        proxy.set(Line::CutBeforeReply);
        for _ in 0..7 {
            let decided = limiter.try_acquire(KEY).await.unwrap();
            assert_eq!((decided.is_admitted(), decided.decided_by()), (true, DecidedBy::Lease));
        }
        assert_eq!(cause(&limiter.try_acquire(KEY).await.unwrap_err()), (Cause::Disconnected, true));
        let counts = limiter.counts();
        assert_eq!((counts.perhaps_charged, counts.perhaps_leased), (1, 15));
        proxy.set(Line::Good);
        // Nobody spends what nobody knows of: it is taken.
        let left = limiter.peek(KEY, 0).await.unwrap().remaining();
        assert_eq!(u64::from(1000 - left), counts.admitted + counts.leased + 1 + counts.perhaps_leased);
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
    });
}
