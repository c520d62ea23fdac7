//! A server whose clock is set a year ahead, and a year back.

use std::time::Duration;

use tollgate::Quota;
use tollgate_redis::{DecidedBy, RedisLimiter, StoreError, testing};

use super::{KEY, charged};
use tollgate_kit::redis::{START, Server, TIME, runtime};

const MINUTE: u64 = 60_000_000;
const YEAR: u64 = 365 * 24 * 60 * MINUTE;

async fn all(limiter: &RedisLimiter) -> u64 {
    let before = limiter.counts().admitted;
    while limiter.try_acquire(KEY).await.unwrap().is_admitted() {}
    limiter.counts().admitted - before
}

#[test]
fn a_clock_set_ahead_ends_windows_and_one_set_back_by_more_than_is_stated_is_an_error() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, mut connection) = (server.clock(), server.connect());
    let store = testing::with_time_from(server.builder(), TIME).build().unwrap();
    let limiter = RedisLimiter::new(&store, "api", Quota::per_hour(5)).unwrap();
    let is_behind = async |by: u64| {
        let error = limiter.try_acquire(KEY).await.unwrap_err();
        let by = Duration::from_micros(by);
        assert_eq!(error, StoreError::ClockWentBack { key: limiter.digest(KEY), by });
    };
    runtime().block_on(async {
        clock.set(START);
        assert_eq!(all(&limiter).await, 5);
        // By its clock the window is over. It holds N again, and no more.
        clock.set(START + YEAR);
        assert_eq!(all(&limiter).await, 5);
        for (time, by) in [(START, YEAR), (START - YEAR, 2 * YEAR), (START + YEAR - MINUTE - 1, MINUTE + 1)] {
            clock.set(time);
            is_behind(by).await;
        }
        // By less than is stated: it denies, and for longer.
        clock.set(START + YEAR - MINUTE);
        let wait = limiter.try_acquire(KEY).await.unwrap().retry_after();
        assert_eq!(wait, Some(Duration::from_secs(61 * 60)));
        assert_eq!((limiter.counts().admitted, charged(&limiter, &mut connection)), (10, 10));
        // A forgotten key begins by the clock as it is.
        clock.set(START - YEAR);
        assert!(limiter.forget(KEY).await.unwrap());
        assert_eq!(all(&limiter).await, 5);
    });
}

/// The holder's own clock ends a lease. Set back, the server says that the step lasts longer.
#[test]
fn a_lease_lasts_no_longer_than_a_step_whatever_the_server_says_of_the_time() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, step) = (server.clock(), Duration::from_millis(200));
    let store = testing::with_time_from(server.builder(), TIME).build().unwrap();
    let builder = RedisLimiter::builder(&store, "api", Quota::quantised_log(200, Duration::from_secs(60), step));
    let limiter = builder.lease(100, 16).build().unwrap();
    runtime().block_on(async {
        clock.set(START + 1);
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
        clock.set(START + 1 - MINUTE / 2);
        let sent_by = tokio::time::Instant::now();
        while limiter.counts().leased < 3 && sent_by.elapsed() < step {
            assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
        }
        tokio::time::sleep(step).await;
        let decided = limiter.try_acquire(KEY).await.unwrap();
        assert_eq!((decided.is_admitted(), decided.decided_by()), (true, DecidedBy::Store));
    });
}
