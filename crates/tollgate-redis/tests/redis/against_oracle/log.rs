//! The sliding window log, one and several quotas, one and several dimensions.

use std::time::Duration;

use proptest::prelude::*;
use tokio::runtime::Runtime;
use tollgate::{Decision, Quota, Status};
use tollgate_redis::{RedisJointLimiter, Store, StoreError};

use tollgate_kit::oracle::{Answer, Oracle, Rule, Seen, least, longest};
use tollgate_kit::redis::{Clock, START, Server, case_name, runtime};

const PLACED: Seen = Seen { placed: true, granted: None };

#[derive(Debug, Clone, Copy)]
enum Op {
    Acquire {
        keys: [Option<u8>; 2],
        cost: u32,
    },
    Peek {
        keys: [Option<u8>; 2],
        cost: u32,
    },
    Forget {
        dimension: usize,
        key: u8,
    },
    Advance(Step),
    /// The clock is set back, or ahead, by this part of the longest window.
    Back(u16),
}

#[derive(Debug, Clone, Copy)]
enum Step {
    One,
    Window(usize, i8),
    Part(u16),
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let rule = (prop_oneof![1_u32..=4, 1_u32..=70, Just(200)], prop_oneof![1_u64..=5, 1_u64..=3_000_000]);
    prop::collection::vec(rule.prop_map(|(limit, window)| Rule { limit, window }), 1..=3)
}

fn keys() -> impl Strategy<Value = [Option<u8>; 2]> {
    prop_oneof![
        4 => (0_u8..2, 0_u8..2).prop_map(|(one, other)| [Some(one), Some(other)]),
        3 => (0_u8..2).prop_map(|one| [Some(one), None]),
        3 => (0_u8..2).prop_map(|other| [None, Some(other)]),
    ]
}

fn ops() -> impl Strategy<Value = Op> {
    let cost = || prop_oneof![3 => Just(1_u32), 1 => Just(0), 3 => 1_u32..=200];
    let step = prop_oneof![
        1 => Just(Step::One),
        2 => (0_usize..3, -1_i8..=1).prop_map(|(quota, off_by)| Step::Window(quota, off_by)),
        3 => any::<u16>().prop_map(Step::Part),
        3 => (0_u16..3000).prop_map(Step::Part),
    ];
    prop_oneof![
        12 => (keys(), cost()).prop_map(|(keys, cost)| Op::Acquire { keys, cost }),
        3 => (keys(), cost()).prop_map(|(keys, cost)| Op::Peek { keys, cost }),
        6 => step.prop_map(Op::Advance),
        1 => (0_usize..2, 0_u8..2).prop_map(|(dimension, key)| Op::Forget { dimension, key }),
        1 => (0_u16..2000).prop_map(Op::Back),
    ]
}

/// A limiter of two dimensions, and an oracle for each.
struct Compared<'a> {
    limiter: RedisJointLimiter,
    oracles: [Oracle<u8>; 2],
    now: u64,
    clock: &'a Clock,
    runtime: &'a Runtime,
}

impl Compared<'_> {
    fn run(&mut self, op: Op) -> Result<(), TestCaseError> {
        match op {
            Op::Advance(Step::One) => self.now += 1,
            Op::Advance(Step::Part(part)) => self.now += self.longest() * u64::from(part) / 65_536,
            Op::Advance(Step::Window(quota, off_by)) => {
                let rules = self.oracles[quota % 2].rules();
                let window = rules[quota % rules.len()].window;
                self.now = (self.now + window).saturating_add_signed(off_by.into());
            }
            Op::Back(part) => self.now -= (self.longest() * u64::from(part) / 65_536).min(self.now - START),
            Op::Forget { dimension, key } => {
                let known = self.runtime.block_on(self.limiter.forget(dimension, [key])).unwrap();
                let had_permits = self.oracles[dimension].forget(&key);
                prop_assert!(known || had_permits != tollgate_kit::oracle::Holds::Something);
            }
            Op::Acquire { keys, cost } => return self.request(keys, cost, true),
            Op::Peek { keys, cost } => return self.request(keys, cost, false),
        }
        self.clock.set(self.now);
        Ok(())
    }

    fn longest(&self) -> u64 {
        self.oracles.iter().map(|oracle| longest(oracle.rules())).max().unwrap()
    }

    fn request(&mut self, keys: [Option<u8>; 2], cost: u32, charges: bool) -> Result<(), TestCaseError> {
        let bytes = keys.map(|key| key.map(|key| [key]));
        let given = [bytes[0].as_ref().map(|it| &it[..]), bytes[1].as_ref().map(|it| &it[..])];
        // A request of one key goes another way if it asks for no numbers.
        let is_single = keys.iter().flatten().count() == 1;
        let status = self.runtime.block_on(async {
            if charges && is_single {
                let decision = *self.limiter.try_acquire_n(&given, cost).await?;
                return Ok(Status::new(decision, cost, self.limiter.peek(&given, 0).await?.quotas()));
            }
            let status = match charges {
                true => self.limiter.try_acquire_status(&given, cost).await?,
                false => self.limiter.peek(&given, cost).await?,
            };
            Ok((*status).clone())
        });
        let asked: Vec<(usize, u8)> =
            keys.iter().enumerate().filter_map(|(place, key)| Some((place, (*key)?))).collect();
        let too_much = asked.iter().any(|&(place, _)| cost > least(self.oracles[place].rules()));
        let status = match status {
            Ok(status) if !too_much => status,
            Err(StoreError::CostExceedsLimit { .. }) if too_much => return Ok(()),
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        };
        let before = asked.iter().map(|&(place, key)| (place, self.oracles[place].peek(&key, self.now, cost).unwrap()));
        let before: Vec<(usize, Answer)> = before.collect();
        self.same_decision(&before, &status)?;
        let admitted = before.iter().all(|(_, answer)| answer.admitted);
        for &(place, key) in asked.iter().filter(|_| admitted && charges && cost > 0) {
            self.oracles[place].acquire(&key, self.now, cost, PLACED).unwrap();
        }
        for &(place, key) in &asked {
            self.oracles[place].has_seen(self.now);
            let left = self.oracles[place].peek(&key, self.now, 0).unwrap().left;
            let told = status.quotas().filter(|told| told.dimension() == place);
            for (told, left) in told.zip(left.iter().flatten()) {
                prop_assert_eq!((told.limit(), told.remaining()), (left.limit, left.remaining));
                prop_assert_eq!(told.next_after().as_micros(), left.next_after);
                prop_assert_eq!(told.reset_after().as_micros(), left.reset_after);
            }
        }
        Ok(())
    }

    fn same_decision(&self, before: &[(usize, Answer)], status: &Status) -> Result<(), TestCaseError> {
        let denied = || before.iter().filter(|(_, answer)| !answer.admitted);
        let Decision::Denied(denial) = status.decision() else {
            prop_assert_eq!(denied().count(), 0);
            return Ok(());
        };
        prop_assert_eq!(denial.violated().collect::<Vec<_>>(), denied().map(|it| it.0).collect::<Vec<_>>());
        let mut violated: Vec<usize> = status.quotas().filter(|it| it.is_violated()).map(|it| it.dimension()).collect();
        violated.dedup();
        prop_assert_eq!(violated, denial.violated().collect::<Vec<_>>());
        let longest = denied().filter_map(|(_, answer)| answer.retry_after).max();
        prop_assert_eq!(Some(denial.retry_after().as_micros()), longest);
        let by = denied().find(|(place, _)| *place == denial.dimension()).unwrap();
        prop_assert_eq!(by.1.retry_after, longest);
        prop_assert!(by.1.in_the_way & (1 << denial.quota()) != 0, "{:?} by {:?}", denial, by);
        Ok(())
    }
}

fn limiter(store: &Store, rules: [&[Rule]; 2]) -> RedisJointLimiter {
    let quotas = |rules: &[Rule]| -> Vec<Quota> {
        rules.iter().map(|rule| Quota::new(rule.limit, Duration::from_micros(rule.window))).collect()
    };
    let builder = RedisJointLimiter::builder(store, &case_name());
    builder.dimension("one", quotas(rules[0])).dimension("other", quotas(rules[1])).build().unwrap()
}

#[test]
fn logs_decide_as_the_oracle_does() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, runtime, store) = (server.clock(), runtime(), server.store_with_time());
    let cases = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) };
    proptest!(cases, |(one in rules(), other in rules(), ops in prop::collection::vec(ops(), 1..100))| {
        let limiter = limiter(&store, [&one, &other]);
        clock.set(START);
        let oracles = [Oracle::new(&one), Oracle::new(&other)];
        let mut compared =
            Compared { limiter, oracles, now: START, clock: &clock, runtime: &runtime };
        for op in ops {
            compared.run(op)?;
        }
    });
}

/// A charge that is refunded is as if it had never been, once the charges after it are made again.
#[test]
fn a_refunded_charge_leaves_no_trace() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, runtime, store) = (server.clock(), runtime(), server.store_with_time());
    let cases = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) };
    let charges = prop::collection::vec((1_u32..4, 0_u64..400, any::<bool>()), 1..40);
    proptest!(cases, |(charges in charges, limit in 1_u32..40)| {
        let rules = [Rule { limit, window: 1000 }];
        let (with, without) = (limiter(&store, [&rules, &rules]), limiter(&store, [&rules, &rules]));
        let keys: [Option<&[u8]>; 2] = [Some(b"a"), Some(b"b")];
        let mut now = START;
        for (cost, later, is_refunded) in charges {
            now += later;
            clock.set(now);
            runtime.block_on(async {
                let decided = with.try_acquire_n(&keys, cost.min(limit)).await.unwrap();
                if decided.is_admitted() && is_refunded {
                    prop_assert_eq!(with.refund(decided.into_receipt()).await.unwrap(), cost.min(limit));
                } else {
                    assert!(without.try_acquire_n(&keys, cost.min(limit)).await.is_ok());
                }
                let (one, other) = (with.peek(&keys, 0).await.unwrap(), without.peek(&keys, 0).await.unwrap());
                prop_assert_eq!(&*one, &*other);
                Ok(())
            })?;
        }
    });
}
