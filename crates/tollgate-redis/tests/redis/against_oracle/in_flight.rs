//! Requests in flight of two nodes, beside a log, against a list of those that entered.

use std::time::Duration;

use proptest::prelude::*;
use tokio::runtime::Runtime;
use tollgate::{Decision, DenialReason, Quota};
use tollgate_redis::{InFlight, RedisJointLimiter};

use tollgate_kit::redis::{Clock, START, Server, case_name, runtime};

const KEYS: [Option<&[u8]>; 2] = [Some(b"alice"), Some(b"alice")];

#[derive(Debug, Clone)]
enum Op {
    /// On this node, at this cost in the log.
    Enter(usize, u32),
    /// A request that is over at once.
    Acquire(usize, u32),
    /// One of those in flight.
    Leave(usize),
    /// One of them, by its token, on this node.
    Release(usize, usize),
    /// Its process dies.
    Die(usize),
    Forget,
    Pass(u64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let (node, place) = (|| 0_usize..2, || 0_usize..12);
    let op = prop_oneof![
        8 => (node(), 1_u32..4).prop_map(|(node, cost)| Op::Enter(node, cost)),
        2 => (node(), 1_u32..4).prop_map(|(node, cost)| Op::Acquire(node, cost)),
        4 => place().prop_map(Op::Leave),
        2 => (place(), node()).prop_map(|(place, node)| Op::Release(place, node)),
        1 => place().prop_map(Op::Die),
        1 => Just(Op::Forget),
        4 => prop_oneof![0_u64..4, 0_u64..40].prop_map(Op::Pass),
    ];
    prop::collection::vec(op, 1..80)
}

/// Limits, and for how long a request and a permit count, in microseconds.
#[derive(Debug, Clone, Copy)]
struct Limits {
    requests: u32,
    hold: u64,
    permits: u32,
    window: u64,
}

fn limits() -> impl Strategy<Value = Limits> {
    let limits = (1_u32..5, 1_u64..60, 3_u32..20, 1_u64..60);
    limits.prop_map(|(requests, hold, permits, window)| Limits { requests, hold, permits, window })
}

struct Compared<'a> {
    limits: Limits,
    nodes: [RedisJointLimiter; 2],
    now: u64,
    /// When each request entered that has not left, and the guards of those whose process lives.
    entered: Vec<(u64, Option<InFlight>)>,
    /// The time of each permit of the log.
    charged: Vec<u64>,
    clock: &'a Clock,
    runtime: &'a Runtime,
}

impl Compared<'_> {
    fn run(&mut self, op: &Op) -> Result<(), TestCaseError> {
        match *op {
            Op::Enter(node, cost) => self.request(node, cost, true)?,
            Op::Acquire(node, cost) => self.request(node, cost, false)?,
            Op::Leave(place) | Op::Release(place, _) | Op::Die(place) if !self.entered.is_empty() => {
                self.ends(op, place % self.entered.len())?;
            }
            Op::Leave(_) | Op::Release(..) | Op::Die(_) => {}
            Op::Forget => {
                self.runtime.block_on(self.nodes[0].forget(0, "alice")).unwrap();
                // Their guards do nothing, which the counts below show.
                for guard in self.entered.drain(..).filter_map(|(_, guard)| guard) {
                    self.runtime.block_on(guard.leave()).unwrap();
                }
            }
            Op::Pass(by) => {
                self.now += by;
                self.clock.set(self.now);
            }
        }
        let left = self.runtime.block_on(self.nodes[1].peek(&KEYS, 0)).unwrap();
        let left: Vec<u32> = left.quotas().map(|left| left.remaining()).collect();
        prop_assert_eq!(left, [self.limits.requests - self.in_flight(), self.limits.permits - self.live()]);
        Ok(())
    }

    fn request(&mut self, node: usize, cost: u32, enters: bool) -> Result<(), TestCaseError> {
        let node = &self.nodes[node];
        let decided = self.runtime.block_on(async {
            match enters {
                true => node.try_enter_n(&KEYS, cost).await.unwrap(),
                false => node.try_acquire_n(&KEYS, cost).await.unwrap(),
            }
        });
        let (has_place, fits) = (self.in_flight() < self.limits.requests, self.live() + cost <= self.limits.permits);
        match *decided {
            Decision::Admitted(_) => {
                prop_assert!(has_place && fits, "it is admitted");
                self.charged.extend((0..cost).map(|_| self.now));
                let (guard, _) = decided.enter();
                prop_assert_eq!(guard.counts(), enters);
                if enters {
                    // The store forgets then those whose time is over.
                    let (now, hold) = (self.now, self.limits.hold);
                    self.entered.retain(|(at, guard)| guard.is_some() || at + hold > now);
                    self.entered.push((self.now, Some(guard)));
                }
            }
            Decision::Denied(denial) => {
                prop_assert!(!(has_place && fits), "it is denied");
                let reason = if fits { DenialReason::InFlight } else { DenialReason::Quota };
                prop_assert_eq!(denial.reason(), reason);
                let expected = [(0, has_place), (1, fits)].into_iter().filter(|(_, admits)| !admits);
                prop_assert!(denial.violated().eq(expected.map(|(dimension, _)| dimension)));
            }
        }
        Ok(())
    }

    fn ends(&mut self, op: &Op, place: usize) -> Result<(), TestCaseError> {
        let Some(guard) = self.entered[place].1.take() else { return Ok(()) };
        let counts = self.counts(self.entered[place].0);
        match *op {
            Op::Die(_) => {
                // Nobody has the token.
                prop_assert!(guard.into_token().is_some());
                return Ok(());
            }
            Op::Release(_, node) => {
                let token = guard.into_token().expect("it counts");
                let was_there = self.runtime.block_on(self.nodes[node].release(&token)).unwrap();
                // Of one whose time is over, the store may have forgotten it.
                prop_assert!(was_there || !counts);
            }
            _ => self.runtime.block_on(guard.leave()).unwrap(),
        }
        self.entered.swap_remove(place);
        Ok(())
    }

    fn counts(&self, at: u64) -> bool {
        at + self.limits.hold > self.now
    }

    fn in_flight(&self) -> u32 {
        let counted = self.entered.iter().filter(|(at, _)| self.counts(*at)).count();
        u32::try_from(counted).expect("few")
    }

    fn live(&self) -> u32 {
        let live = self.charged.iter().filter(|at| *at + self.limits.window > self.now).count();
        u32::try_from(live).expect("few")
    }
}

#[test]
fn requests_in_flight_are_those_of_a_list() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, runtime, store) = (server.clock(), runtime(), server.store_with_time());
    let cases = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) };
    proptest!(cases, |(limits in limits(), ops in ops())| {
        let name = case_name();
        let quota = Quota::concurrent(limits.requests).held_at_most(Duration::from_micros(limits.hold));
        let log = Quota::new(limits.permits, Duration::from_micros(limits.window));
        let node = || {
            let builder = RedisJointLimiter::builder(&store, &name).dimension("in flight", [quota]);
            builder.dimension("log", [log]).build().unwrap()
        };
        clock.set(START);
        let nodes = [node(), node()];
        let (entered, charged) = (vec![], vec![]);
        let mut compared =
            Compared { limits, nodes, now: START, entered, charged, clock: &clock, runtime: &runtime };
        for (step, op) in ops.iter().enumerate() {
            let told = compared.run(op);
            prop_assert!(told.is_ok(), "step {step}, {op:?}: {}", told.unwrap_err());
        }
    });
}
