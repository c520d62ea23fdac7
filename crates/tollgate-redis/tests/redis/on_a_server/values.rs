//! Values that are not ours, and clocks that are wrong: typed errors, and nothing is overwritten.

use std::time::Duration;

use redis::Connection;
use tollgate::Quota;
use tollgate_redis::{RedisLimiter, StoreError, testing};

use tollgate_kit::redis::{START, Server, TIME, ask, runtime};

const KEY: &str = "alice";

fn name_of(limiter: &RedisLimiter, connection: &mut Connection) -> String {
    let (digest, keys): (_, Vec<String>) = (limiter.digest(KEY).to_string(), ask(connection, &["KEYS", "tollgate:*"]));
    keys.into_iter().find(|key| key.contains(&digest)).expect("the key's name has its digest")
}

#[test]
fn a_value_that_is_not_ours_is_named_and_left_alone() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let limiter = RedisLimiter::new(&server.store(), "api", Quota::per_hour(5)).unwrap();
    runtime().block_on(async {
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
        let name = name_of(&limiter, &mut connection);
        let foreign: [&[&str]; 8] = [
            &["RPUSH", &name, "of another type"],
            &["SET", &name, "truncated"],
            // Two stamps without the last byte.
            &["SET", &name, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x07"],
            &["SET", &name, "foreign!"],
            // A stamp of ours, and before it something else.
            &["SET", &name, "foreign!\0\0\0\0\0\0\0\x07"],
            &["SET", &name, "twenty-four letters long"],
            // As much as a head has, and a stamp of ours.
            &["SET", &name, "sixteen letters.\0\0\0\0\0\0\0\x07"],
            // A head and a stamp of ours, and between them something else.
            &["SET", &name, "\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x07foreign!\0\0\0\0\0\0\0\x07"],
        ];
        for command in foreign {
            let _: u64 = ask(&mut connection, &["DEL", &name]);
            let _: redis::Value = ask(&mut connection, command);
            let before: Vec<u8> = ask(&mut connection, &["DUMP", &name]);
            let error = limiter.try_acquire_n(KEY, 4).await.unwrap_err();
            assert_eq!(error, StoreError::ForeignValue { key: limiter.digest(KEY) }, "{command:?}");
            assert!(error.to_string().contains(&limiter.digest(KEY).to_string()));
            assert_eq!(ask::<Vec<u8>>(&mut connection, &["DUMP", &name]), before);
        }
        // A word of another program that is as long as two stamps.
        let _: redis::Value = ask(&mut connection, &["SET", &name, "sixteen letters."]);
        assert!(matches!(limiter.try_acquire(KEY).await, Err(StoreError::ForeignValue { .. })));
        assert!(limiter.forget(KEY).await.unwrap());
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
    });
}

#[test]
fn a_clock_set_back_denies_for_longer_and_past_the_stated_skew_it_is_an_error() {
    let Some(server) = Server::start(&[]) else { return };
    let clock = server.clock();
    let builder = testing::with_time_from(server.builder().max_clock_skew(Duration::from_secs(10)), TIME);
    let limiter = RedisLimiter::new(&builder.build().unwrap(), "api", Quota::per_minute(1)).unwrap();
    runtime().block_on(async {
        clock.set(START + 20_000_000);
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
        clock.set(START + 10_000_000);
        let denied = limiter.try_acquire(KEY).await.unwrap();
        assert_eq!(denied.retry_after(), Some(Duration::from_secs(70)));
        clock.set(START + 9_999_999);
        let by = Duration::from_micros(10_000_001);
        let error = limiter.try_acquire(KEY).await.unwrap_err();
        assert_eq!(error, StoreError::ClockWentBack { key: limiter.digest(KEY), by });
    });
}

/// The production script takes its time from the server alone.
#[test]
fn the_key_of_the_tests_time_means_nothing_to_a_store() {
    let Some(server) = Server::start(&[]) else { return };
    server.clock().set(START);
    let limiter = RedisLimiter::new(&server.store(), "api", Quota::per_minute(1)).unwrap();
    runtime().block_on(async {
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
        let mut connection = server.connect();
        let name = name_of(&limiter, &mut connection);
        let stamp: Vec<u8> = ask(&mut connection, &["GET", &name]);
        let (seconds, micros): (u64, u64) = ask(&mut connection, &["TIME"]);
        // Behind a head of 16 bytes.
        let stamp = u64::from_be_bytes(stamp[16..].try_into().expect("one stamp"));
        let now = seconds * 1_000_000 + micros;
        assert!((now - 60_000_000..=now).contains(&stamp), "{stamp} at {now}");
    });
}
