//! Warnings, each once: of a server that removes keys for want of memory, of a shared name, and of
//! a right that the user lacks.

use std::sync::{Mutex, MutexGuard, PoisonError};

use log::{LevelFilter, Log, Metadata, Record};
use tollgate::Quota;
use tollgate_kit::redis::{Server, ask, patient, runtime};
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

/// One test at a time keeps what is logged.
static ALONE: Mutex<()> = Mutex::new(());

fn listen() -> MutexGuard<'static, ()> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // The second time it is set already.
    let _ = log::set_logger(&Kept);
    log::set_max_level(LevelFilter::Trace);
    LOGGED.lock().unwrap_or_else(PoisonError::into_inner).clear();
    alone
}

#[test]
fn a_limiter_of_the_same_name_and_another_window_is_warned_of_once() {
    let Some(server) = Server::start(&[]) else { return };
    let _alone = listen();
    runtime().block_on(async {
        let store = server.store();
        let node = |quota| RedisLimiter::new(&store, "api", quota).unwrap();
        let (hour, other_hour, short) =
            (node(Quota::per_hour(30)), node(Quota::per_hour(50)), node(Quota::per_second(10)));
        for limiter in [&hour, &other_hour, &hour] {
            assert!(limiter.try_acquire("alice").await.unwrap().is_admitted());
        }
        // Other limits in the same window are no matter.
        assert!(LOGGED.lock().unwrap().is_empty());
        for user in ["alice", "alice", "bob"] {
            assert!(hour.try_acquire(user).await.unwrap().is_admitted());
            assert!(short.try_acquire(user).await.unwrap().is_admitted());
        }
    });
    let logged = LOGGED.lock().unwrap();
    let [line] = &**logged else { panic!("{logged:?}") };
    let parts = ["\"api\"", "10 per 1s", "a window of 1h"];
    assert!(parts.iter().all(|part| line.contains(part)), "{line}");
}

#[test]
fn a_server_that_evicts_is_warned_of_once() {
    let Some(server) = Server::start(&[]) else { return };
    let _alone = listen();
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

#[test]
fn a_right_that_is_missing_is_warned_of_once() {
    let Some(server) = Server::start(&[]) else { return };
    let _alone = listen();
    let weak = ["ACL", "SETUSER", "weak", "on", ">hidden", "~tollgate:*", "+@all", "-pexpireat"];
    let _: redis::Value = ask(&mut server.connect(), &weak);
    let address = format!("{}?user=weak&pass=hidden", server.address());
    let builder = patient(&address);
    let limiter = RedisLimiter::new(&builder.build().unwrap(), "api", Quota::per_hour(5)).unwrap();
    runtime().block_on(async {
        for _ in 0..3 {
            assert!(limiter.try_acquire("alice").await.is_err());
        }
    });
    let logged = LOGGED.lock().unwrap();
    let [line] = &**logged else { panic!("{logged:?}") };
    assert!(line.contains("PEXPIREAT") && !line.contains("weak") && !line.contains("hidden"), "{line}");
}
