//! A server that removes keys for want of memory: one warning.

#[path = "redis/support/mod.rs"]
mod support;

use std::sync::Mutex;

use log::{LevelFilter, Log, Metadata, Record};
use support::{Server, ask, runtime};
use tollgate::Quota;
use tollgate_redis::RedisLimiter;

/// What was logged by this crate.
static LOGGED: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Kept;

impl Log for Kept {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        if record.target().starts_with("tollgate_redis") {
            LOGGED.lock().unwrap().push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

#[test]
fn a_server_that_evicts_is_warned_of_once() {
    let Some(server) = Server::start(&[]) else { return };
    log::set_logger(&Kept).unwrap();
    log::set_max_level(LevelFilter::Trace);
    let mut connection = server.connect();
    runtime().block_on(async {
        let store = server.store();
        let limiter = RedisLimiter::new(&store, "api", Quota::per_hour(5)).unwrap();
        assert!(limiter.try_acquire("alice").await.unwrap().is_admitted());
        assert!(LOGGED.lock().unwrap().is_empty());
        let _: redis::Value = ask(&mut connection, &["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
        for _ in 0..3 {
            // Each time another connection.
            let _: u64 = ask(&mut connection, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
            while limiter.try_acquire("bob").await.is_err() {}
        }
    });
    let logged = LOGGED.lock().unwrap();
    assert!(matches!(&**logged, [line] if line.contains("noeviction")), "{logged:?}");
    assert!(!logged[0].contains("socket"), "{logged:?}");
}
