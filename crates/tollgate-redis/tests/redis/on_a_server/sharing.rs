//! Limiters of one name with other quotas: services that share permits, and a policy that is
//! changed while old and new nodes run.

use std::time::Duration;

use tollgate::Quota;
use tollgate_redis::{RedisLimiter, Store};

use tollgate_kit::redis::{START, Server, ask, case_name, runtime};

const KEY: &str = "alice";
const HOUR: u64 = 3_600_000_000;

/// A limiter, with its limit and its window in microseconds.
struct Node {
    limiter: RedisLimiter,
    limit: usize,
    window: u64,
}

impl Node {
    fn new(store: &Store, name: &str, limit: u32, window: u64) -> Self {
        let limiter = RedisLimiter::new(store, name, Quota::new(limit, Duration::from_micros(window))).unwrap();
        Self { limiter, limit: usize::try_from(limit).unwrap(), window }
    }

    /// How many of these times count.
    fn live(&self, charged: &[u64], now: u64) -> usize {
        charged.iter().rev().take_while(|&&at| at + self.window > now).count()
    }

    /// Asks at a time, and admits exactly if all that was charged leaves room.
    async fn ask(&self, charged: &mut Vec<u64>, now: u64) -> bool {
        let live = self.live(charged, now);
        let is_admitted = self.limiter.try_acquire(KEY).await.unwrap().is_admitted();
        assert_eq!(is_admitted, live < self.limit, "{live} of {} at {now}", self.limit);
        charged.extend(is_admitted.then_some(now));
        is_admitted
    }
}

#[test]
fn a_limiter_of_a_shorter_window_takes_nothing_from_one_of_the_same_name() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, store, mut connection) = (server.clock(), server.store_with_time(), server.connect());
    let (short, long) = (Node::new(&store, "api", 10, 300_000), Node::new(&store, "api", 30, HOUR));
    runtime().block_on(async {
        let (mut charged, mut by_long) = (vec![], 0);
        for step in 0..200 {
            clock.set(START + step * 100_000);
            by_long += u32::from(long.ask(&mut charged, START + step * 100_000).await);
            for _ in 0..4 {
                short.ask(&mut charged, START + step * 100_000).await;
            }
        }
        // The one of the hour sees what the other one has charged.
        assert!(by_long < 30 && charged.len() > 500, "{by_long} of {}", charged.len());
        // An hour after its last charge it holds the key no more: what is dead is cut off again.
        let begin = START + 2 * HOUR;
        charged.clear();
        for step in 0..200 {
            clock.set(begin + step * 100_000);
            for _ in 0..4 {
                short.ask(&mut charged, begin + step * 100_000).await;
            }
        }
        let keys: Vec<String> = ask(&mut connection, &["KEYS", "tollgate:*"]);
        let bytes: usize = ask(&mut connection, &["STRLEN", &keys[0]]);
        assert!(bytes <= 512, "{bytes} bytes for 10 live permits");
    });
}

/// Either policy is the old one, and either is longer.
#[test]
fn while_a_policy_is_changed_no_policy_is_exceeded_by_those_that_have_it() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, store) = (server.clock(), server.store_with_time());
    let mut numbers = fastrand::Rng::with_seed(7);
    runtime().block_on(async {
        for [old, new] in [[(10, 200_000), (40, 9_000_000)], [(40, 9_000_000), (10, 200_000)]] {
            let name = case_name();
            let nodes = [old, new].map(|(limit, window)| Node::new(&store, &name, limit, window));
            let (mut charged, mut now) = ([vec![], vec![]], START);
            for request in 0..3_000 {
                now += numbers.u64(..20_000);
                clock.set(now);
                // One node after another has the new policy.
                let place = usize::from(numbers.u32(..3_000) < request);
                let (node, its) = (&nodes[place], &mut charged[place]);
                let is_admitted = node.limiter.try_acquire(KEY).await.unwrap().is_admitted();
                its.extend(is_admitted.then_some(now));
                assert!(node.live(its, now) <= node.limit, "{old:?}, {new:?}: at {now}");
            }
            // The longer one sees all that the shorter one admits, and so admits little.
            assert!(charged.iter().all(|its| !its.is_empty()));
        }
    });
}
