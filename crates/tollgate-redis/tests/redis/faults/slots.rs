//! Three primaries of a cluster, and a slot that moves from one to another under load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use redis::Connection;
use tokio::task::JoinSet;
use tollgate::Quota;
use tollgate_redis::{Cause, RedisLimiter};

use crate::faults::cause;
use tollgate_kit::redis::{Server, ask, free_port, runtime};

const LIMIT: u32 = 200;

struct Primary {
    server: Server,
    port: String,
    id: String,
    connection: Connection,
}

impl Primary {
    fn start() -> Option<Self> {
        let port = free_port().to_string();
        let server = Server::start(&["--cluster-enabled", "yes", "--port", &port, "--bind", "127.0.0.1"])?;
        let mut connection = server.connect();
        let id = ask(&mut connection, &["CLUSTER", "MYID"]);
        Some(Self { server, port, id, connection })
    }

    fn told(&mut self, words: &[&str]) -> redis::Value {
        ask(&mut self.connection, words)
    }
}

/// Three primaries, each with a third of the slots.
fn cluster() -> Option<[Primary; 3]> {
    let mut primaries = [Primary::start()?, Primary::start()?, Primary::start()?];
    for (primary, (from, to)) in primaries.iter_mut().zip([(0, 5_460), (5_461, 10_922), (10_923, 16_383)]) {
        primary.told(&["CLUSTER", "ADDSLOTSRANGE", &from.to_string(), &to.to_string()]);
    }
    let ports: Vec<String> = primaries.iter().map(|primary| primary.port.clone()).collect();
    ports[1..].iter().for_each(|port| drop(primaries[0].told(&["CLUSTER", "MEET", "127.0.0.1", port])));
    let until = Instant::now() + Duration::from_secs(30);
    for primary in &mut primaries {
        let is_whole = |info: String| info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3");
        while !is_whole(ask(&mut primary.connection, &["CLUSTER", "INFO"])) {
            assert!(Instant::now() < until, "the cluster does not begin");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    Some(primaries)
}

/// A request goes to the primary of its store. One that has not the slot charges nothing.
#[test]
fn a_slot_that_moves_under_load_takes_its_permits_along() {
    let Some(mut primaries) = cluster() else { return };
    let limiters: Vec<Arc<RedisLimiter>> = primaries
        .iter()
        .map(|primary| {
            let store = primary.server.builder().breaker(u32::MAX, Duration::ZERO).build().unwrap();
            Arc::new(RedisLimiter::new(&store, "api", Quota::per_hour(LIMIT)).unwrap())
        })
        .collect();
    // One whose slot is on the first primary.
    let runtime = runtime();
    let mut users = (0_u32..).map(|user| format!("user {user}"));
    let key = users.find(|user| runtime.block_on(limiters[0].peek(user, 0)).is_ok()).expect("one in three");
    runtime.block_on(async {
        let is_over = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for limiter in &limiters {
            for _ in 0..2 {
                tasks.spawn(load(Arc::clone(limiter), key.clone(), Arc::clone(&is_over)));
            }
        }
        let decides = async || {
            let mut decides = vec![];
            for limiter in &limiters {
                let peeked = limiter.peek(&key, 0).await;
                assert!(peeked.as_ref().err().is_none_or(|error| cause(error) == (Cause::OtherNode, false)));
                decides.push(peeked.is_ok());
            }
            decides
        };
        while limiters[0].counts().admitted < u64::from(LIMIT) / 4 {
            tokio::task::yield_now().await;
        }
        let [from, to, other] = &mut primaries;
        let names: Vec<String> = ask(&mut from.connection, &["KEYS", "tollgate:*"]);
        let [name] = &*names else { panic!("{names:?}") };
        let slot = ask::<u64>(&mut from.connection, &["CLUSTER", "KEYSLOT", name]).to_string();
        assert_eq!(decides().await, [true, false, false]);
        to.told(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from.id]);
        from.told(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to.id]);
        assert_eq!(decides().await, [true, false, false]);
        from.told(&["MIGRATE", "127.0.0.1", &to.port, name, "0", "30000"]);
        // Neither has both the slot and the key.
        assert_eq!(decides().await, [false, false, false]);
        let id = to.id.clone();
        for primary in [&mut *to, from, other] {
            primary.told(&["CLUSTER", "SETSLOT", &slot, "NODE", &id]);
        }
        assert_eq!(decides().await, [false, true, false]);
        while limiters[1].try_acquire(&key).await.unwrap().is_admitted() {}
        // Each asks a primary that has not the slot, sooner or later.
        while limiters.iter().any(|limiter| limiter.counts().unavailable == 0) {
            tokio::task::yield_now().await;
        }
        is_over.store(true, Ordering::SeqCst);
        tasks.join_all().await;
        let counts: Vec<_> = limiters.iter().map(|limiter| limiter.counts()).collect();
        let admitted: Vec<u64> = counts.iter().map(|counts| counts.admitted).collect();
        assert!(admitted[0] > 0 && admitted[1] > 0, "{counts:?}");
        assert!(counts.iter().all(|counts| counts.perhaps_charged == 0 && counts.unavailable > 0), "{counts:?}");
        // All that was charged moved along, and no more was admitted.
        assert_eq!(admitted.iter().sum::<u64>(), u64::from(LIMIT));
        assert_eq!(ask::<u64>(&mut to.connection, &["STRLEN", name]), 16 + u64::from(LIMIT) * 8);
    });
}

#[test]
fn a_key_of_another_node_leaves_the_breaker_closed_for_the_slots_of_this_one() {
    let Some(primaries) = cluster() else { return };
    let store = primaries[0].server.builder().breaker(1, Duration::from_secs(3600)).build().unwrap();
    let limiter = RedisLimiter::new(&store, "api", Quota::per_hour(LIMIT)).unwrap();
    let (mut here, mut elsewhere) = (0, 0);
    runtime().block_on(async {
        for user in 0..60_u32 {
            match limiter.try_acquire(user.to_string()).await {
                Ok(decision) => here += u32::from(decision.is_admitted()),
                Err(error) => {
                    assert_eq!(cause(&error), (Cause::OtherNode, false));
                    elsewhere += 1;
                }
            }
        }
    });
    // One key in three is here.
    assert!(here >= 5 && elsewhere >= 20, "{here}, {elsewhere}");
}

/// Asks until it is over, without a rest. Half of the limit is left for others.
async fn load(limiter: Arc<RedisLimiter>, key: String, is_over: Arc<AtomicBool>) {
    while !is_over.load(Ordering::SeqCst) {
        let is_done = limiter.counts().admitted >= u64::from(LIMIT) / 2;
        let error = match is_done {
            true => limiter.peek(&key, 1).await.err(),
            false => limiter.try_acquire(&key).await.err(),
        };
        assert!(error.is_none_or(|error| cause(&error) == (Cause::OtherNode, false)));
        tokio::task::yield_now().await;
    }
}
