//! A server that forgets, waits, is busy, full, or a replica.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tollgate::Quota;
use tollgate_redis::{Cause, RedisLimiter, StoreError};

use super::{KEY, accounts_agree, cause, charged};
use crate::receipt;
use tollgate_kit::redis::{START, Server, ask, patient, runtime};

#[test]
fn scripts_that_are_flushed_in_mid_pipeline_are_sent_again() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let limiter = Arc::new(RedisLimiter::new(&server.store(), "api", Quota::per_hour(20)).unwrap());
    runtime().block_on(async {
        for _ in 0..20 {
            let mut tasks = JoinSet::new();
            for user in 0..50_u32 {
                let limiter = Arc::clone(&limiter);
                tasks.spawn(async move { limiter.try_acquire(user.to_be_bytes()).await.unwrap().is_admitted() });
            }
            tokio::task::yield_now().await;
            let _: redis::Value = ask(&mut connection, &["SCRIPT", "FLUSH"]);
            assert!(tasks.join_all().await.into_iter().all(|is_admitted| is_admitted));
        }
        for user in 0..50_u32 {
            assert!(limiter.try_acquire(user.to_be_bytes()).await.unwrap().is_denied());
        }
    });
}

#[test]
fn after_a_flush_a_window_holds_at_most_n_and_what_was_lost() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let limiter = RedisLimiter::new(&server.store(), "api", Quota::per_hour(10)).unwrap();
    runtime().block_on(async {
        for _ in 0..7 {
            assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
        }
        let lost = charged(&limiter, &mut connection);
        let _: redis::Value = ask(&mut connection, &["FLUSHALL"]);
        while limiter.try_acquire(KEY).await.unwrap().is_admitted() {}
        assert_eq!((limiter.counts().admitted, lost), (10 + lost, 7));
    });
}

#[test]
fn a_server_that_pauses_charges_no_more_than_what_was_perhaps_charged() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let builder = server.builder().timeout(Duration::from_millis(100)).breaker(3, Duration::from_millis(1));
    let limiter = RedisLimiter::new(&builder.build().unwrap(), "api", Quota::per_hour(1000)).unwrap();
    runtime().block_on(async {
        while limiter.try_acquire(KEY).await.is_err() {}
        let _: redis::Value = ask(&mut connection, &["CLIENT", "PAUSE", "700", "ALL"]);
        let mut timed_out = 0;
        while let Err(error) = limiter.try_acquire(KEY).await {
            match cause(&error) {
                (Cause::TimedOut, true) => timed_out += 1,
                (Cause::CircuitOpen | Cause::NotConnected, false) => tokio::time::sleep(Duration::from_millis(1)).await,
                other => panic!("{other:?}"),
            }
        }
        assert!(timed_out > 0);
        accounts_agree(&limiter, &mut connection);
    });
}

#[test]
fn a_busy_server_charges_nothing() {
    let Some(server) = Server::start(&["--busy-reply-threshold", "20"]) else { return };
    let mut connection = server.connect();
    let limiter = RedisLimiter::new(&server.store(), "api", Quota::per_hour(2)).unwrap();
    let mut busy = server.connect();
    let script = std::thread::spawn(move || {
        redis::cmd("EVAL").arg("while true do end").arg(0).query::<redis::Value>(&mut busy).is_err()
    });
    while redis::cmd("PING").query::<String>(&mut connection).is_ok() {}
    runtime().block_on(async {
        assert_eq!(cause(&limiter.try_acquire(KEY).await.unwrap_err()), (Cause::ServerNotReady, false));
        let _: redis::Value = ask(&mut connection, &["SCRIPT", "KILL"]);
        assert!(script.join().unwrap(), "the script was killed");
        assert_eq!(charged(&limiter, &mut connection), 0);
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
    });
}

#[test]
fn a_server_without_memory_charges_nothing_and_still_denies() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let limiter = RedisLimiter::new(&server.store(), "api", Quota::per_hour(2)).unwrap();
    runtime().block_on(async {
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
        let _: redis::Value = ask(&mut connection, &["CONFIG", "SET", "maxmemory", "1"]);
        assert_eq!(cause(&limiter.try_acquire(KEY).await.unwrap_err()), (Cause::ServerNotReady, false));
        assert!(limiter.try_acquire_n(KEY, 2).await.unwrap().is_denied());
        let _: redis::Value = ask(&mut connection, &["CONFIG", "SET", "maxmemory", "0"]);
        assert_eq!(charged(&limiter, &mut connection), 1);
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
    });
}

/// As the README has it.
#[test]
fn a_server_without_memory_refuses_known_keys_as_new_ones_and_forgets_and_looks() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let store = server.builder().breaker(5, Duration::from_secs(3600)).build().unwrap();
    let limiter = RedisLimiter::new(&store, "api", Quota::per_hour(3)).unwrap();
    let bucket = RedisLimiter::new(&store, "bucket", Quota::token_bucket(3, 1, Duration::from_secs(3600))).unwrap();
    runtime().block_on(async {
        let mut receipts = vec![];
        for limiter in [&limiter, &bucket] {
            assert!(limiter.try_acquire("known").await.unwrap().is_admitted());
            receipts.push(receipt(limiter.try_acquire("known").await.unwrap()));
            assert!(limiter.try_acquire_n("used up", 3).await.unwrap().is_admitted());
        }
        let _: redis::Value = ask(&mut connection, &["CONFIG", "SET", "maxmemory", "1"]);
        for (limiter, receipt) in [&limiter, &bucket].into_iter().zip(receipts) {
            for key in ["known", "new"] {
                let error = limiter.try_acquire(key).await.unwrap_err();
                assert_eq!(cause(&error), (Cause::ServerNotReady, false), "{key}");
            }
            assert!(limiter.try_acquire("used up").await.unwrap().is_denied());
            assert_eq!(limiter.peek("known", 0).await.unwrap().remaining(), 1);
            assert_eq!(cause(&limiter.refund(receipt).await.unwrap_err()), (Cause::ServerNotReady, false));
            assert_eq!(limiter.peek("known", 0).await.unwrap().remaining(), 1);
            assert!(limiter.forget("used up").await.unwrap());
        }
        assert!(ask::<String>(&mut connection, &["INFO", "errorstats"]).contains("errorstat_OOM"));
        for _ in 0..5 {
            assert_eq!(cause(&limiter.try_acquire("new").await.unwrap_err()), (Cause::ServerNotReady, false));
        }
        assert_eq!(cause(&limiter.try_acquire("known").await.unwrap_err()), (Cause::CircuitOpen, false));
    });
}

#[test]
fn a_replica_charges_nothing() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let limiter = RedisLimiter::new(&server.store(), "api", Quota::per_hour(2)).unwrap();
    runtime().block_on(async {
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
        // Of a primary that nobody can reach.
        let _: redis::Value = ask(&mut connection, &["REPLICAOF", "127.0.0.1", "1"]);
        assert_eq!(cause(&limiter.try_acquire(KEY).await.unwrap_err()), (Cause::ServerNotReady, false));
        let _: redis::Value = ask(&mut connection, &["REPLICAOF", "NO", "ONE"]);
        assert_eq!(charged(&limiter, &mut connection), 1);
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
    });
}

#[test]
fn a_user_who_may_not_run_scripts_is_told_so_and_no_password_is_shown() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    let _: redis::Value =
        ask(&mut connection, &["ACL", "SETUSER", "weak", "on", ">hidden", "~*", "+@all", "-@scripting"]);
    let address = |password: &str| format!("{}?user=weak&pass={password}", server.address());
    let said = |password: &str| {
        let store = patient(&address(password)).build().unwrap();
        let limiter = RedisLimiter::new(&store, "api", Quota::per_hour(2)).unwrap();
        let error: StoreError = runtime().block_on(limiter.try_acquire(KEY)).unwrap_err();
        assert_eq!(cause(&error), (Cause::NotPermitted, false));
        format!("{error} {error:?} {store:?} {limiter:?}")
    };
    for said in [said("hidden"), said("wrong")] {
        assert!(!said.contains("hidden") && !said.contains("wrong") && !said.contains("weak"), "{said}");
        assert!(!said.contains(&server.socket().display().to_string()), "{said}");
    }
}

/// A lease outlives the loss of its charge, so what was lost has its permits.
#[test]
fn after_a_flush_what_is_spent_of_leases_is_part_of_what_was_lost() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, store, mut connection) = (server.clock(), server.store_with_time(), server.connect());
    let hour = Duration::from_secs(3600);
    let builder = RedisLimiter::builder(&store, "api", Quota::quantised_log(200, hour, hour));
    let limiter = builder.lease(100, 16).build().unwrap();
    clock.set(START + 1);
    runtime().block_on(async {
        for _ in 0..20 {
            assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
        }
        let counts = limiter.counts();
        let lost = counts.admitted + counts.leased;
        assert_eq!((lost, counts.calls, counts.admitted_by_lease), (31, 5, 15));
        let _: redis::Value = ask(&mut connection, &["FLUSHALL"]);
        clock.set(START + 1);
        while limiter.try_acquire(KEY).await.unwrap().is_admitted() {}
        let counts = limiter.counts();
        assert_eq!(counts.admitted + counts.admitted_by_lease, 200 + lost);
    });
}

/// A store of a user who has all rights except these.
fn store_of_weak_user(server: &Server, without: &str) -> tollgate_redis::Store {
    let mut words = vec!["ACL", "SETUSER", "weak", "reset", "on", ">hidden", "+@all"];
    words.extend(without.split(' '));
    let _: redis::Value = ask(&mut server.connect(), &words);
    let address = format!("{}?user=weak&pass=hidden", server.address());
    patient(&address).build().unwrap()
}

#[test]
fn a_right_that_is_missing_is_named_before_anything_is_written() {
    let Some(server) = Server::start(&[]) else { return };
    for (without, command) in [
        ("~tollgate:* -pexpireat", "PEXPIREAT"),
        ("~tollgate:* -append", "APPEND"),
        ("~tollgate:* -time", "TIME"),
        ("~tollgate:* -unlink", "UNLINK"),
        ("~tollgate:* -evalsha", "EVALSHA"),
        // All commands, but on other keys.
        ("~other:*", "STRLEN"),
        ("%R~tollgate:*", "APPEND"),
    ] {
        let store = store_of_weak_user(&server, without);
        let limiter = RedisLimiter::new(&store, "api", Quota::per_hour(2)).unwrap();
        for _ in 0..2 {
            let error = runtime().block_on(limiter.try_acquire(KEY)).unwrap_err();
            assert_eq!(cause(&error), (Cause::CommandNotPermitted { command }, false), "{without}");
            assert!(error.to_string().contains(command) && !error.to_string().contains("weak"), "{error}");
        }
        assert_eq!(ask::<u64>(&mut server.connect(), &["DBSIZE"]), 0, "{without}");
    }
}

#[test]
fn a_right_that_is_taken_away_is_told_as_such_and_then_named() {
    let Some(server) = Server::start(&[]) else { return };
    let store = store_of_weak_user(&server, "~tollgate:*");
    let limiter = RedisLimiter::new(&store, "api", Quota::per_hour(2)).unwrap();
    let _: redis::Value = ask(&mut server.connect(), &["ACL", "SETUSER", "weak", "-info"]);
    runtime().block_on(async {
        assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
        let _: redis::Value = ask(&mut server.connect(), &["ACL", "SETUSER", "weak", "-pexpireat"]);
        // The stamps of another key are written when the script comes to that command.
        assert_eq!(cause(&limiter.try_acquire("bob").await.unwrap_err()), (Cause::NotPermitted, true));
        let named = (Cause::CommandNotPermitted { command: "PEXPIREAT" }, false);
        assert_eq!(cause(&limiter.try_acquire("bob").await.unwrap_err()), named);
    });
}

/// The command is in the README, as an operator runs it.
#[test]
fn the_rights_that_the_readme_lists_are_enough() {
    let Some(server) = Server::start(&[]) else { return };
    let line =
        include_str!("../../../README.md").lines().find_map(|line| line.trim_start().strip_prefix("ACL SETUSER "));
    let words: Vec<&str> = ["ACL", "SETUSER"].into_iter().chain(line.expect("a command").split(' ')).collect();
    let _: redis::Value = ask(&mut server.connect(), &words);
    let address = format!("{}?user=tollgate&pass=password", server.address());
    let store = patient(&address).build().unwrap();
    let (minute, second) = (Duration::from_secs(60), Duration::from_secs(1));
    runtime().block_on(async {
        for (name, quota) in [
            ("log", Quota::per_hour(700)),
            ("bucket", Quota::token_bucket(700, 1, minute)),
            ("queue", Quota::leaky_queue(1000, second, minute)),
            ("window", Quota::fixed_window(700, minute)),
            ("counter", Quota::sliding_counter(700, minute)),
            ("steps", Quota::quantised_log(700, minute, second)),
        ] {
            let limiter = RedisLimiter::new(&store, name, quota).unwrap();
            for cost in [1, 1, 70] {
                let receipt = receipt(limiter.try_acquire_n(KEY, cost).await.unwrap());
                let refunded = limiter.refund(receipt).await.unwrap();
                assert!(refunded == cost || name == "queue", "{name}: {refunded} of {cost}");
            }
            assert!(limiter.peek(KEY, 1).await.unwrap().decision().is_admitted());
            assert!(limiter.try_acquire(KEY).await.unwrap().is_admitted());
            assert!(limiter.forget(KEY).await.unwrap());
        }
    });
}
