//! Faults of the line and of the server, each with what is stated of it.
//!
//! In each of them the store has charged what was admitted, and of what was perhaps charged some or
//! all.

mod away;
mod clocks;
mod crash;
mod in_flight;
mod left;
mod line;
mod proxy;
mod server;
mod settled;
mod slots;

use redis::Connection;
use tollgate_kit::redis::ask;
use tollgate_redis::{Cause, RedisLimiter, StoreError};

const KEY: &str = "alice";

/// The permits of the key that the server holds.
fn charged(limiter: &RedisLimiter, connection: &mut Connection) -> u64 {
    let keys: Vec<String> = ask(connection, &["KEYS", &format!("*{}*", limiter.digest(KEY))]);
    // Behind a head of 16 bytes.
    keys.iter().map(|key| (ask::<u64>(connection, &["STRLEN", key]) / 8).saturating_sub(2)).sum()
}

/// The cause of an error, and whether the request was perhaps charged.
fn cause(error: &StoreError) -> (Cause, bool) {
    match error {
        StoreError::Unavailable(error) => (error.cause(), error.is_perhaps_charged()),
        other => panic!("{other}"),
    }
}

/// What the store holds agrees with what callers were told.
fn accounts_agree(limiter: &RedisLimiter, connection: &mut Connection) {
    let (charged, counts) = (charged(limiter, connection), limiter.counts());
    let most = counts.admitted + counts.abandoned + counts.perhaps_charged;
    assert!((counts.admitted..=most).contains(&charged), "{charged} charged: {counts:?}");
}
