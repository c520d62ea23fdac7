//! Requests, refunds and settled costs of each algorithm, on one key or two at once, against naive
//! accounts that know nothing of strides, packed counts or stamps in a string.

use std::time::Duration;

use proptest::prelude::*;
use tokio::runtime::Runtime;
use tollgate::{Decision, Quota};
use tollgate_redis::{Receipt, RedisJointLimiter, Store};

use tollgate_kit::oracle::meter::Meter;
use tollgate_kit::redis::{Clock, START, Server, case_name, runtime};
use tollgate_kit::reservations::account::Account;
use tollgate_kit::reservations::{Naive, Number};

const KEY: &[u8] = b"alice";

/// The quotas of a dimension. Times are microseconds.
#[derive(Debug, Clone)]
enum Kind {
    /// Limits and windows.
    Log(Vec<(u32, u64)>),
    Meter(Meter),
}

impl Kind {
    fn quotas(&self) -> Vec<Quota> {
        match self {
            Self::Log(quotas) => {
                quotas.iter().map(|&(limit, window)| Quota::new(limit, Duration::from_micros(window))).collect()
            }
            &Self::Meter(meter) => vec![tollgate_kit::quota_of!(Quota, meter, Duration::from_micros)],
        }
    }

    fn account(&self) -> Account {
        match self {
            Self::Log(quotas) => Account::of_logs(quotas.clone(), false),
            &Self::Meter(meter) => Account::of(meter, 0),
        }
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    let limit = || 1_u32..12;
    let window = || 1_u64..60;
    let meter = prop_oneof![
        (limit(), 1_u32..4, 1_u64..30, 0_u32..12).prop_map(|(capacity, refill, per, start)| {
            Meter::TokenBucket { capacity, refill, per, start: start.min(capacity) }
        }),
        (limit(), 1_u32..4, 1_u64..30).prop_map(|(capacity, leak, per)| Meter::LeakyBucket { capacity, leak, per }),
        (1_u32..4, 1_u64..30, 0_u64..100).prop_map(|(leak, per, max_delay)| Meter::LeakyQueue { leak, per, max_delay }),
        (limit(), window(), prop::option::of(0_u128..100)).prop_map(|(limit, window, phase)| Meter::FixedWindow {
            limit,
            window,
            phase
        }),
        (limit(), window(), 0_u128..100).prop_map(|(limit, window, phase)| Meter::SlidingCounter {
            limit,
            window,
            phase
        }),
        (limit(), 1_u64..9, 1_u64..9).prop_map(|(limit, steps, resolution)| Meter::QuantisedLog {
            limit,
            window: steps * resolution,
            resolution
        }),
    ];
    prop_oneof![
        1 => prop::collection::vec((limit(), window()), 1..4).prop_map(Kind::Log),
        3 => meter.prop_map(Kind::Meter),
    ]
}

#[derive(Debug, Clone)]
enum Op {
    /// Its receipt is kept.
    Acquire(u32),
    /// One of the receipts that are there.
    Refund(usize),
    /// One of them costs so many permits.
    Settle(usize, u32),
    Forget,
    Pass(u64),
    /// Until the last denied request passes, or nearly.
    Retry(i8),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let actual = prop_oneof![4 => 0_u32..5, 4 => 0_u32..40, 1 => any::<u32>()];
    let op = prop_oneof![
        8 => (0_u32..5).prop_map(Op::Acquire),
        3 => (0_usize..60).prop_map(Op::Refund),
        5 => (0_usize..60, actual).prop_map(|(place, actual)| Op::Settle(place, actual)),
        1 => Just(Op::Forget),
        4 => prop_oneof![0_u64..4, 0_u64..40, 0_u64..300].prop_map(Op::Pass),
        2 => (-1_i8..=1).prop_map(Op::Retry),
    ];
    prop::collection::vec(op, 1..60)
}

/// A receipt, the numbers by which the naive accounts know the charge, its permits, and how many
/// had been charged by then.
struct Held {
    receipt: Receipt,
    numbers: Vec<Number>,
    cost: u32,
    asked: u64,
}

/// A bucket that is never full forgets its receipts when so many permits have flowed in.
const FORGETS_AFTER: u64 = 1 << 18;

/// A limiter of one dimension or two, with one key each, and an account for each.
struct Compared<'a> {
    kinds: &'a [Kind],
    accounts: Vec<Account>,
    limiter: RedisJointLimiter,
    held: Vec<Held>,
    /// The permits that were charged so far.
    asked: u64,
    now: u64,
    /// When the last denied request passes.
    passes: u64,
    clock: &'a Clock,
    runtime: &'a Runtime,
}

impl<'a> Compared<'a> {
    fn new(kinds: &'a [Kind], store: &Store, (clock, runtime): (&'a Clock, &'a Runtime), now: u64) -> Self {
        let mut builder = RedisJointLimiter::builder(store, &case_name());
        for (name, kind) in ["one", "other"].into_iter().zip(kinds) {
            builder = builder.dimension(name, kind.quotas());
        }
        let (limiter, accounts) = (builder.build().unwrap(), kinds.iter().map(Kind::account).collect());
        clock.set(now);
        Self { kinds, accounts, limiter, held: vec![], asked: 0, now, passes: now, clock, runtime }
    }

    fn keys(&self) -> Vec<Option<&'static [u8]>> {
        vec![Some(KEY); self.kinds.len()]
    }

    fn run(&mut self, op: &Op) -> Result<(), TestCaseError> {
        match *op {
            Op::Acquire(cost) => self.acquire(cost)?,
            Op::Refund(place) if !self.held.is_empty() => {
                let held = self.held.swap_remove(place % self.held.len());
                let charged = self.account_for(&held, 0);
                let refunded = self.runtime.block_on(self.limiter.refund(held.receipt)).unwrap();
                prop_assert_eq!(refunded, held.cost - charged);
            }
            Op::Settle(place, actual) if !self.held.is_empty() => {
                let held = self.held.swap_remove(place % self.held.len());
                let charged = self.account_for(&held, actual);
                prop_assert_eq!(self.runtime.block_on(self.limiter.settle(held.receipt, actual)).unwrap(), charged);
                self.asked += u64::from(actual);
            }
            Op::Refund(_) | Op::Settle(..) => {}
            Op::Forget => {
                for dimension in 0..self.kinds.len() {
                    self.runtime.block_on(self.limiter.forget(dimension, KEY)).unwrap();
                }
                self.accounts = self.kinds.iter().map(Kind::account).collect();
                // They would refund what is charged in the same moment.
                self.held.clear();
            }
            Op::Pass(by) => {
                self.now += by;
                self.forget_old_receipts();
            }
            Op::Retry(off_by) => {
                self.now = self.passes.saturating_add_signed(off_by.into()).max(self.now);
                self.forget_old_receipts();
            }
        }
        self.clock.set(self.now);
        self.same_numbers()
    }

    /// What was charged before may have flowed in meanwhile.
    fn forget_old_receipts(&mut self) {
        let asked = self.asked;
        self.held.retain(|held| asked - held.asked < FORGETS_AFTER);
    }

    fn acquire(&mut self, cost: u32) -> Result<(), TestCaseError> {
        let limit = |kind: &Kind| kind.quotas().iter().map(Quota::limit).min().expect("a quota");
        let cost = cost.min(self.kinds.iter().map(limit).min().expect("a dimension"));
        let decided = self.runtime.block_on(self.limiter.try_acquire_n(&self.keys(), cost)).unwrap();
        let now = self.now;
        let denies = |account: &Account| cost > 0 && account.remaining(now) < cost;
        match *decided {
            Decision::Admitted(admission) => {
                prop_assert!(!self.accounts.iter().any(denies), "it is admitted");
                // Of no permits, there is nothing to be found.
                let charge = |account: &mut Account| account.request(now, cost, None).expect("it fits");
                let none = vec![(0, Number::MAX); self.accounts.len()];
                let charges = if cost == 0 { none } else { self.accounts.iter_mut().map(charge).collect() };
                let delay = charges.iter().map(|&(delay, _)| delay).max().expect("a dimension");
                prop_assert!(cost == 0 || admission.delay() == Duration::from_micros(delay));
                let numbers = charges.iter().map(|&(_, number)| number).collect();
                self.asked += u64::from(cost);
                self.held.push(Held { receipt: decided.into_receipt(), numbers, cost, asked: self.asked });
            }
            Decision::Denied(denial) => {
                let mut wait = None;
                for account in &mut self.accounts {
                    if denies(account) {
                        wait = wait.max(account.request(now, cost, None).err());
                    } else if let Account::Bucket(_) = account {
                        // A new key earns permits from its first request on, which charges none.
                        account.owe(now, 0);
                    }
                }
                prop_assert_eq!(Some(denial.retry_after()), wait.map(Duration::from_micros));
                self.passes = now + wait.expect("it is denied");
            }
        }
        Ok(())
    }

    /// What is charged then, in the dimension with the least. On the store a queue refunds no
    /// place.
    fn account_for(&mut self, held: &Held, actual: u32) -> u32 {
        let (now, cost) = (self.now, held.cost);
        let settle = |(account, &number): (&mut Account, &Number)| match account {
            Account::Queue(_) if actual < cost => cost,
            account => account.settle(now, number, cost, actual),
        };
        self.accounts.iter_mut().zip(&held.numbers).map(settle).min().expect("a dimension")
    }

    fn same_numbers(&self) -> Result<(), TestCaseError> {
        let status = self.runtime.block_on(self.limiter.peek(&self.keys(), 0)).unwrap();
        for (dimension, account) in self.accounts.iter().enumerate() {
            let told = status.quotas().filter(|quota| quota.dimension() == dimension).map(|quota| quota.remaining());
            prop_assert_eq!(told.min(), Some(account.remaining(self.now)), "dimension {}", dimension);
        }
        Ok(())
    }
}

#[test]
fn settled_costs_are_charged_as_the_naive_accounts_say() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, runtime, store) = (server.clock(), runtime(), server.store_with_time());
    let cases = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) };
    proptest!(cases, |(kinds in prop::collection::vec(kind(), 1..3), ops in ops(), later in 0_u64..1000)| {
        let mut compared = Compared::new(&kinds, &store, (&clock, &runtime), START + later);
        for (step, op) in ops.iter().enumerate() {
            let told = compared.run(op);
            prop_assert!(told.is_ok(), "step {step}, {op:?}: {}", told.unwrap_err());
        }
    });
}

/// Buckets and queues whose products are near the largest that doubles have exactly.
fn large() -> [Meter; 4] {
    [
        Meter::TokenBucket { capacity: 1 << 30, refill: 999_999_937, per: 1_000_003, start: 1 << 30 },
        Meter::LeakyBucket { capacity: 300_000, leak: 7, per: 1_000_000_007 },
        Meter::TokenBucket { capacity: 10, refill: 7, per: 31_536_000_000_000, start: 3 },
        Meter::LeakyQueue { leak: 300_007, per: 1_000_003, max_delay: 999_999 },
    ]
}

/// What is owed for decades has products that doubles do not have.
#[test]
fn a_debt_of_decades_is_exact() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, runtime, store) = (server.clock(), runtime(), server.store_with_time());
    for meter in large() {
        let kinds = [Kind::Meter(meter)];
        let mut compared = Compared::new(&kinds, &store, (&clock, &runtime), START);
        let mut run = |op: Op| compared.run(&op).unwrap_or_else(|error| panic!("{meter:?}, {op:?}: {error}"));
        for round in 0..60 {
            run(Op::Acquire(0));
            run(Op::Settle(0, if round < 4 { flows_in(meter, 400_000_000_000_000) } else { 1 }));
            run(Op::Acquire(1));
        }
        run(Op::Retry(-1));
        run(Op::Acquire(1));
        run(Op::Retry(0));
        run(Op::Acquire(1));
    }
}

/// Once it is paid, the account goes on as any other, and a receipt of before is known through it.
#[test]
fn a_debt_of_many_strides_is_exact() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, runtime, store) = (server.clock(), runtime(), server.store_with_time());
    for meter in large() {
        let kinds = [Kind::Meter(meter)];
        let mut compared = Compared::new(&kinds, &store, (&clock, &runtime), START);
        for round in 1..=30 {
            compared.held.clear();
            let mut run = |op: Op| compared.run(&op).unwrap_or_else(|error| panic!("{meter:?}, {op:?}: {error}"));
            run(Op::Acquire(meter.limit() / 3 + 1));
            run(Op::Acquire(1));
            run(Op::Acquire(0));
            run(Op::Settle(1, flows_in(meter, 500_000_000_000_000 / round)));
            run(Op::Acquire(1));
            run(Op::Refund(0));
            // Nothing fits before.
            run(Op::Retry(-1));
            run(Op::Acquire(1));
            run(Op::Retry(0));
            run(Op::Acquire(1));
            run(Op::Pass(round * 77));
        }
    }
}

/// As many permits, but no more than a cost can be.
fn flows_in(meter: Meter, micros: u64) -> u32 {
    let (Meter::TokenBucket { refill: flow, per, .. }
    | Meter::LeakyBucket { leak: flow, per, .. }
    | Meter::LeakyQueue { leak: flow, per, .. }) = meter
    else {
        panic!("nothing flows: {meter:?}")
    };
    u32::try_from(u128::from(micros) * u128::from(flow) / u128::from(per)).unwrap_or(u32::MAX)
}

/// Work that is not asked about before: its account never rests, and no request is admitted.
#[test]
fn an_account_that_is_only_settled_is_the_same_account() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, runtime, store) = (server.clock(), runtime(), server.store_with_time());
    for meter in large() {
        let kinds = [Kind::Meter(meter)];
        let mut compared = Compared::new(&kinds, &store, (&clock, &runtime), START);
        let mut run = |op: Op| compared.run(&op).unwrap_or_else(|error| panic!("{meter:?}, {op:?}: {error}"));
        for round in 0..100 {
            run(Op::Acquire(0));
            run(Op::Settle(0, meter.limit() + round % 3));
            run(Op::Acquire(1));
            // As long as it takes to pay most of it.
            run(Op::Retry(-1));
        }
    }
}
