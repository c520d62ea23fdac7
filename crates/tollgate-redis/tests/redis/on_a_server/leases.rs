//! Leases, on a server whose time the test sets.

use std::time::Duration;

use fastrand::Rng;
use redis::Connection;
use tollgate::{Denial, Quota};
use tollgate_redis::{DecidedBy, RedisLimiter, Store};

use tollgate_kit::redis::{START, Server, ask, case_name, runtime};

const KEY: &str = "alice";
const LIMIT: u32 = 120;
const WINDOW: u64 = 5_000_000;
const STEP: u64 = 1_000_000;

fn quota(limit: u32) -> Quota {
    Quota::quantised_log(limit, Duration::from_micros(WINDOW), Duration::from_micros(STEP))
}

fn node(store: &Store, name: &str, limit: u32) -> RedisLimiter {
    RedisLimiter::builder(store, name, quota(limit)).lease(32, 16).build().unwrap()
}

/// A runtime whose time passes only by `advance`.
fn with_time_that_stands<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        // While a blocking task runs, it stands though the runtime waits for the server.
        let (done, wait) = std::sync::mpsc::channel::<()>();
        let blocking = tokio::task::spawn_blocking(move || wait.recv());
        let told = test.await;
        drop(done);
        blocking.await.unwrap().unwrap_err();
        told
    })
}

/// Who admitted it.
async fn by(limiter: &RedisLimiter) -> Result<DecidedBy, Denial> {
    let decided = limiter.try_acquire(KEY).await.unwrap();
    decided.into_result().map(|_| decided.decided_by())
}

/// The permits that the server has charged to a new key: the last number of its last step.
fn charged(limiter: &RedisLimiter, connection: &mut Connection) -> u64 {
    let keys: Vec<String> = ask(connection, &["KEYS", &format!("*{}*", limiter.digest(KEY))]);
    let value: Vec<u8> = ask(connection, &["GETRANGE", &keys[0], "-8", "-1"]);
    u64::from_be_bytes(value.try_into().expect("a number"))
}

#[test]
fn a_lease_is_spent_without_calls_and_what_is_charged_is_what_was_taken() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, store, mut connection) = (server.clock(), server.store_with_time(), server.connect());
    clock.set(START + 1);
    // Steps of an hour: they last longer than the test.
    let hour = Duration::from_secs(3600);
    let builder = RedisLimiter::builder(&store, "api", Quota::quantised_log(10_000, hour, hour));
    let limiter = builder.lease(100, 16).build().unwrap();
    runtime().block_on(async {
        let mut decided = vec![];
        for _ in 0..1000 {
            decided.push(by(&limiter).await.unwrap());
        }
        let sizes: Vec<usize> = decided.split(|by| *by == DecidedBy::Store).map(<[_]>::len).collect();
        // The last one is not spent yet.
        assert_eq!(sizes, [0, 0, 1, 3, 7, 15, 31, 63, 100, 100, 100, 100, 100, 100, 100, 100, 64]);
        let counts = limiter.counts();
        assert_eq!((counts.calls, counts.admitted, counts.admitted_by_lease, counts.leased), (16, 16, 984, 1020));
        assert_eq!(charged(&limiter, &mut connection), counts.admitted + counts.leased);
        // What a lease admitted is refunded as any other.
        let decided = limiter.try_acquire_n(KEY, 3).await.unwrap();
        assert_eq!(decided.decided_by(), DecidedBy::Lease);
        assert!(decided.into_result().unwrap().is_counted());
        assert_eq!(limiter.refund(decided.into_receipt()).await, Ok(3));
        assert_eq!(charged(&limiter, &mut connection), 1033);
        // Only the store knows what is left, and what it left to this lease counts as taken.
        assert_eq!(limiter.peek(KEY, 0).await.unwrap().remaining(), 10_000 - 1033);
        assert_eq!(limiter.try_acquire_status(KEY, 1).await.unwrap().remaining(), 10_000 - 1034);
        // A forgotten key has no lease.
        assert!(limiter.forget(KEY).await.unwrap());
        assert_eq!(by(&limiter).await, Ok(DecidedBy::Store));
    });
}

#[test]
fn permits_that_others_have_leased_are_denied_and_those_not_spent_are_given_back() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, store) = (server.clock(), server.store_with_time());
    let (holder, other) = (node(&store, "api", 40), RedisLimiter::new(&store, "api", quota(40)).unwrap());
    with_time_that_stands(async {
        clock.set(START + 1);
        // 4 by the store, and leases of 1, 3 and 4: an eighth of what is left.
        for _ in 0..9 {
            assert!(by(&holder).await.is_ok());
        }
        let counts = holder.counts();
        assert_eq!((counts.calls, counts.admitted_by_lease, counts.leased), (4, 5, 8));
        for _ in 0..28 {
            assert_eq!(by(&other).await, Ok(DecidedBy::Store));
        }
        // Three are held by the other node. The wait is as if they were spent.
        let wait = by(&other).await.unwrap_err().retry_after();
        assert_eq!(wait, Duration::from_micros(STEP + WINDOW - 1));
        // In the next step the holder gives them back, and takes two: as it had spent one.
        clock.set(START + STEP + 1);
        tokio::time::advance(Duration::from_micros(STEP)).await;
        assert_eq!(by(&holder).await, Ok(DecidedBy::Store));
        let counts = holder.counts();
        assert_eq!((counts.given_back, counts.leased, counts.calls), (3, 9, 5));
        assert_eq!(by(&other).await, Ok(DecidedBy::Store));
        assert!(by(&other).await.is_err());
    });
}

#[test]
fn a_node_that_stops_gives_back_what_its_leases_have_left() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, store) = (server.clock(), server.store_with_time());
    let (holder, other) = (node(&store, "api", 40), RedisLimiter::new(&store, "api", quota(40)).unwrap());
    clock.set(START + 1);
    with_time_that_stands(async {
        for _ in 0..9 {
            assert!(by(&holder).await.is_ok());
        }
        while by(&other).await.is_ok() {}
        assert_eq!(holder.give_back_leases().await, Ok(3));
        assert_eq!(holder.give_back_leases().await, Ok(0));
        for _ in 0..3 {
            assert_eq!(by(&other).await, Ok(DecidedBy::Store));
        }
        assert!(by(&other).await.is_err() && by(&holder).await.is_err());
        assert_eq!(holder.counts().admitted_by_lease + holder.counts().given_back, holder.counts().leased);
        assert_eq!(other.give_back_leases().await, Ok(0));
    });
}

/// The nodes' clock is that of a runtime whose time is paused. It runs slower than the server's, or
/// faster, or as fast.
#[test]
fn no_window_holds_more_than_n_whoever_spends_it() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, store) = (server.clock(), server.store_with_time());
    let (mut by_lease, mut denied, mut given_back) = (0, 0, 0);
    with_time_that_stands(async {
        for (seed, faster) in (1..=30_u64).zip([999_501, 1_000_000, 1_000_499].into_iter().cycle()) {
            let mut numbers = Rng::with_seed(seed);
            let name = case_name();
            let nodes = [0; 3].map(|_| node(&store, &name, LIMIT));
            let direct = RedisLimiter::new(&store, &name, quota(LIMIT)).unwrap();
            let (mut now, mut spent, mut pace) = (0, vec![], STEP);
            for _ in 0..400 {
                // A rush, or less than is admitted, or a pause.
                if numbers.u64(..30) == 0 {
                    pace = [WINDOW / 500, WINDOW / 50, WINDOW / 10, WINDOW][usize::try_from(numbers.u64(..4)).unwrap()];
                }
                let passes = numbers.u64(..pace);
                now += passes;
                tokio::time::advance(Duration::from_micros(passes)).await;
                // In whole microseconds, rounded down as the server's.
                clock.set(START + now * faster / 1_000_000);
                let cost = 1 + u32::from(numbers.u64(..3) == 0);
                let node = nodes.get(usize::try_from(numbers.u64(..4)).unwrap()).unwrap_or(&direct);
                if node.try_acquire_n(KEY, cost).await.unwrap().is_admitted() {
                    spent.push((now * faster / 1_000_000, cost));
                }
            }
            for (first, &(from, _)) in spent.iter().enumerate() {
                let within = spent[first..].iter().take_while(|&&(at, _)| at < from + WINDOW);
                let permits: u32 = within.map(|&(_, permits)| permits).sum();
                assert!(permits <= LIMIT, "run {seed}: {permits} permits from {from}");
            }
            for counts in nodes.map(|node| node.counts()) {
                by_lease += counts.admitted_by_lease;
                denied += counts.denied;
                given_back += counts.given_back;
            }
        }
    });
    assert!(by_lease > 1000 && denied > 100 && given_back > 100, "{by_lease}, {denied}, {given_back}");
}
