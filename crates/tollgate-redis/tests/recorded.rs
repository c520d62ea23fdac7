//! Many clients with connections of their own on few keys of one server, and afterwards the question
//! whether what they were told was right, by an offline checker.
//!
//! The clients read the clock that the server reads. A stamp is rounded down to a microsecond, so it
//! can lie that much before the call.

#[path = "../../../tests/recorded/checker/mod.rs"]
mod checker;
mod support;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use checker::record::READING_ERROR;
use checker::{Event, Expiry, Limit, Run, Told};
use support::{Server, runtime};
use tokio::task::JoinSet;
use tollgate::Quota;
use tollgate_redis::{DecidedBy, Decision, RedisLimiter, RedisLimiterBuilder, Store};

const CLIENTS: u32 = 8;
/// Tasks of a client, which share its connection.
const TASKS: u32 = 3;
const CALLS: u32 = 150;
const KEYS: u32 = 3;
const MICROSECOND: u64 = 1_000;

fn limits() -> [Limit; 2] {
    let window = |millis: u64| millis * 1_000_000;
    [Limit { permits: 20, window: window(40) }, Limit { permits: 50, window: window(300) }]
}

fn quota(limit: Limit) -> Quota {
    Quota::new(limit.permits, Duration::from_nanos(limit.window))
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(since.as_nanos()).expect("before 2554")
}

fn told(decision: &Decision) -> Told {
    match decision {
        Decision::Admitted(_) => Told::Admitted,
        // It is told as of when the answer came, which may be later than exact.
        Decision::Denied(denial) if denial.decided_by() == DecidedBy::CachedDenial => Told::InTheWay,
        Decision::Denied(denial) => {
            let retry_after = u64::try_from(denial.retry_after().as_nanos()).expect("short");
            Told::Denied { retry_after, quota: denial.quota() }
        }
    }
}

/// A task: asks, and at times waits as long as it was told, so that many ask at the same moment.
async fn ask(limiter: Arc<RedisLimiter>, number: u32) -> Vec<Event> {
    let mut events = Vec::new();
    let mut seed = (u64::from(number) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for _ in 0..CALLS {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let (key, cost) = (u32::try_from(seed % u64::from(KEYS)).unwrap(), 1 + u32::try_from(seed >> 33).unwrap() % 3);
        let before = now();
        let decision = limiter.try_acquire_n(key.to_be_bytes(), cost).await.expect("the server answers");
        let after = now().max(before);
        events.push(Event { key, cost, before, after, told: told(&decision) });
        if let (Some(wait), 0) = (decision.retry_after(), seed % 4) {
            tokio::time::sleep(wait).await;
        }
    }
    events
}

/// The events of all clients.
fn record(with: impl Fn(RedisLimiterBuilder) -> RedisLimiterBuilder + Sync) -> Option<(Run, u64)> {
    let server = Server::start(&[])?;
    let client = |number: u32| {
        let store: Store = server.store();
        let [first, second] = limits().map(quota);
        let limiter = Arc::new(with(RedisLimiter::builder(&store, "recorded", first).and(second)).build().unwrap());
        let events = runtime().block_on(async {
            let mut tasks = JoinSet::new();
            for task in 0..TASKS {
                tasks.spawn(ask(Arc::clone(&limiter), number * TASKS + task));
            }
            tasks.join_all().await.concat()
        });
        let counts = limiter.counts();
        assert_eq!((counts.unavailable, counts.abandoned), (0, 0));
        (events, counts.calls, counts.denied_by_cache)
    };
    let (events, calls, cached) = std::thread::scope(|scope| {
        let client = &client;
        let clients: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || client(number))).collect();
        let runs = clients.into_iter().map(|client| client.join().expect("a client panicked"));
        runs.fold((vec![], 0, 0), |(events, calls, cached), (more, its_calls, its_cached)| {
            ([events, more].concat(), calls + its_calls, cached + its_cached)
        })
    });
    assert_eq!(events.len(), usize::try_from(CLIENTS * TASKS * CALLS).unwrap());
    assert!(calls + cached <= events.len() as u64);
    let reading_error = READING_ERROR + MICROSECOND;
    Some((Run { limits: limits().to_vec(), events, reading_error, expiry: Expiry::EachOnItsOwn }, cached))
}

#[test]
fn no_window_is_exceeded_and_every_denial_is_explained() {
    let Some((run, cached)) = record(|builder| builder) else { return };
    let summary = run.check().unwrap_or_else(|fault| panic!("{fault:?}"));
    assert!(summary.permits > 150 && summary.denials > 100, "{summary:?}");
    assert_eq!(cached, 0);
}

#[test]
fn a_cached_denial_is_what_the_store_would_say() {
    let Some((run, cached)) = record(|builder| builder.cache_denials(64)) else { return };
    run.check().unwrap_or_else(|fault| panic!("{fault:?}"));
    assert_eq!(run.not_in_the_way(), []);
    assert!(cached > 100, "{cached} cached denials");
}
