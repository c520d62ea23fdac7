//! The other algorithms, each alone on a key.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tollgate::{Decision, Quota, Status};
use tollgate_redis::{RedisLimiter, Store, StoreError};

use tollgate_kit::oracle::meter::{Meter, Naive};
use tollgate_kit::redis::{Clock, START, Server, case_name, runtime};

const KEY: &str = "k";

#[derive(Debug, Clone, Copy)]
enum Op {
    Acquire(u32),
    /// So many requests that share calls.
    Together {
        cost: u32,
        times: usize,
    },
    Peek(u32),
    Forget,
    /// By this part of the quota's window.
    Advance(u16),
    One,
    /// To the moment at which the last denied request passes, or near it.
    Retry(i8),
    Back(u16),
}

/// Times are microseconds here: the oracle does not care.
fn meters() -> impl Strategy<Value = Meter> {
    let limit = || prop_oneof![1_u32..=5, 1_u32..=300];
    let time = || prop_oneof![1_u64..=12, 1_u64..=5_000_000];
    let phase = || 0_u128..10_000_000;
    prop_oneof![
        (limit(), 1_u32..=50, time(), prop::option::of(0_u32..300)).prop_map(|(capacity, refill, per, start)| {
            Meter::TokenBucket { capacity, refill, per, start: start.unwrap_or(capacity).min(capacity) }
        }),
        (limit(), 1_u32..=50, time()).prop_map(|(capacity, leak, per)| Meter::LeakyBucket { capacity, leak, per }),
        (1_u32..=50, time(), 0_u64..20_000_000).prop_map(|(leak, per, max_delay)| {
            // A queue of no more than some thousand places.
            Meter::LeakyQueue { leak, per, max_delay: max_delay.min(per * 100) }
        }),
        (limit(), time(), prop::option::of(phase())).prop_map(|(limit, window, phase)| Meter::FixedWindow {
            limit,
            window,
            phase
        }),
        (limit(), time(), phase()).prop_map(|(limit, window, phase)| Meter::SlidingCounter { limit, window, phase }),
        (limit(), 1_u64..=70, prop_oneof![1_u64..4, 1_u64..100_000]).prop_map(|(limit, steps, resolution)| {
            Meter::QuantisedLog { limit, window: steps * resolution, resolution }
        }),
    ]
}

fn quota(meter: Meter) -> Quota {
    tollgate_kit::quota_of!(Quota, meter, Duration::from_micros)
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let cost = || prop_oneof![3 => Just(1_u32), 1 => Just(0), 4 => 1_u32..=300];
    let op = prop_oneof![
        12 => cost().prop_map(Op::Acquire),
        2 => (1_u32..=100, 2_usize..20).prop_map(|(cost, times)| Op::Together { cost, times }),
        3 => cost().prop_map(Op::Peek),
        3 => any::<u16>().prop_map(Op::Advance),
        4 => (0_u16..3000).prop_map(Op::Advance),
        2 => Just(Op::One),
        3 => (-1_i8..=1).prop_map(Op::Retry),
        1 => (0_u16..3000).prop_map(Op::Back),
        1 => Just(Op::Forget),
    ];
    prop::collection::vec(op, 1..120)
}

struct Compared<'a> {
    meter: Meter,
    naive: Naive,
    /// Whether the store has an account of the key.
    is_known: bool,
    limiter: Arc<RedisLimiter>,
    now: u64,
    /// When the last denied request passes.
    passes: Option<u64>,
    clock: &'a Clock,
    runtime: &'a Runtime,
}

impl<'a> Compared<'a> {
    /// A key that is new, in the store and in the oracle.
    fn new(meter: Meter, store: &Store, clock: &'a Clock, runtime: &'a Runtime) -> Self {
        let limiter = RedisLimiter::new(store, &case_name(), quota(meter)).unwrap();
        clock.set(START);
        Self {
            meter,
            naive: Naive::new(meter, 0, START),
            is_known: false,
            limiter: Arc::new(limiter),
            now: START,
            passes: None,
            clock,
            runtime,
        }
    }

    fn run(&mut self, op: Op) -> Result<(), TestCaseError> {
        let part = |part: u16| {
            let window = u64::try_from(self.limiter.quotas()[0].window().as_micros()).expect("short");
            window * u64::from(part) / 65_536
        };
        match op {
            Op::Advance(some) => self.now += part(some),
            Op::One => self.now += 1,
            Op::Retry(off_by) => {
                let Some(passes) = self.passes else { return Ok(()) };
                self.now = passes.saturating_add_signed(off_by.into()).max(self.now);
            }
            Op::Back(some) => self.now -= part(some).min(self.now - START),
            Op::Forget => {
                self.runtime.block_on(self.limiter.forget(KEY)).unwrap();
                self.is_known = false;
            }
            Op::Acquire(cost) => return self.request(cost, true),
            Op::Peek(cost) => return self.request(cost, false),
            Op::Together { cost, times } => return self.together(cost, times),
        }
        self.clock.set(self.now);
        Ok(())
    }

    fn request(&mut self, cost: u32, charges: bool) -> Result<(), TestCaseError> {
        let status = self.runtime.block_on(async {
            match charges {
                true => self.limiter.try_acquire_status(KEY, cost).await,
                false => self.limiter.peek(KEY, cost).await,
            }
        });
        let too_much = cost > self.meter.limit();
        let status = match status {
            Ok(status) if !too_much => status,
            Err(StoreError::CostExceedsLimit { .. }) if too_much => return Ok(()),
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        };
        self.see();
        self.is_known |= charges && cost > 0;
        let admitted = self.naive.admits(self.now, cost);
        match status.decision() {
            Decision::Admitted(admission) => {
                prop_assert!(admitted);
                let delay = i128::try_from(admission.delay().as_micros()).expect("short");
                prop_assert!(cost == 0 || delay == self.naive.delay(self.now));
                if charges && cost > 0 {
                    self.naive.grant(self.now, cost);
                }
            }
            Decision::Denied(denial) => {
                prop_assert!(!admitted && status.quotas().all(|left| left.is_violated()));
                let passes = u128::from(self.now) + denial.retry_after().as_micros();
                prop_assert!(passes > u128::from(self.now));
                prop_assert!(self.naive.admits_at(passes, cost) && !self.naive.admits_at(passes - 1, cost));
                self.passes = u64::try_from(passes).ok();
            }
        }
        self.same_numbers(&status)
    }

    /// As many are admitted as if they had come one after the other.
    fn together(&mut self, cost: u32, times: usize) -> Result<(), TestCaseError> {
        if cost > self.meter.limit() {
            return Ok(());
        }
        let decisions = self.runtime.block_on(async {
            let mut tasks = JoinSet::new();
            for _ in 0..times {
                let limiter = Arc::clone(&self.limiter);
                tasks.spawn(async move { limiter.try_acquire_n(KEY, cost).await.unwrap() });
            }
            tasks.join_all().await
        });
        self.see();
        self.is_known = true;
        let mut admitted = 0;
        while admitted < times && self.naive.admits(self.now, cost) {
            self.naive.grant(self.now, cost);
            admitted += 1;
        }
        prop_assert_eq!(decisions.iter().filter(|decision| decision.is_admitted()).count(), admitted);
        for denied in decisions.iter().filter_map(|decided| decided.retry_after()) {
            let passes = u128::from(self.now) + denied.as_micros();
            prop_assert!(self.naive.admits_at(passes, cost) && !self.naive.admits_at(passes - 1, cost));
        }
        Ok(())
    }

    /// Of a key that the store does not know it learns now.
    fn see(&mut self) {
        if !self.is_known {
            let starts_low = matches!(self.meter, Meter::TokenBucket { capacity, start, .. } if start < capacity);
            self.naive = Naive::new(self.meter, 0, if starts_low { self.now } else { START });
        }
    }

    fn same_numbers(&self, told: &Status) -> Result<(), TestCaseError> {
        let remaining = self.naive.most(self.now);
        prop_assert_eq!((told.limit(), told.remaining()), (self.meter.limit(), remaining));
        let free = u128::from(self.now) + told.reset_after().as_micros();
        let is_first = free == u128::from(self.now) || !self.naive.is_free(free - 1);
        prop_assert!(self.naive.is_free(free) && is_first, "{:?}", told);
        let next = self.now + u64::try_from(told.next_after().as_micros()).expect("short");
        match remaining < self.meter.limit() {
            true => prop_assert!(self.naive.most(next) > remaining && self.naive.most(next - 1) == remaining),
            false => prop_assert_eq!(next, self.now),
        }
        Ok(())
    }
}

#[test]
fn the_other_algorithms_decide_as_the_oracle_does() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, runtime, store) = (server.clock(), runtime(), server.store_with_time());
    let cases = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) };
    proptest!(cases, |(meter in meters(), ops in ops())| {
        let mut compared = Compared::new(meter, &store, &clock, &runtime);
        for op in ops {
            compared.run(op)?;
        }
    });
}

/// A stride of permits flows by again and again while the bucket or queue is never at rest.
#[test]
fn an_account_that_advances_is_the_same_account() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, runtime, store) = (server.clock(), runtime(), server.store_with_time());
    // So large that a stride is little more than the capacity.
    let meters = [
        Meter::TokenBucket { capacity: 1 << 30, refill: 999_999_937, per: 1_000_003, start: 1 << 30 },
        Meter::LeakyBucket { capacity: 300_000, leak: 7, per: 1_000_000_007 },
        Meter::LeakyQueue { leak: 300_007, per: 1_000_003, max_delay: 999_999 },
    ];
    for meter in meters {
        let mut compared = Compared::new(meter, &store, &clock, &runtime);
        let half = meter.limit() / 2;
        for request in 0..200 {
            compared.run(Op::Acquire(half + request * 3)).unwrap();
            compared.run(Op::Acquire(half)).unwrap();
            // At once when it passes, so it never rests.
            compared.run(Op::Retry(0)).unwrap();
        }
    }
}

/// A permit in each step, so that entries come to be cut off again and again.
#[test]
fn steps_that_are_cut_off_leave_what_was_granted_before() {
    let Some(server) = Server::start(&[]) else { return };
    let (clock, runtime, store) = (server.clock(), runtime(), server.store_with_time());
    let meter = Meter::QuantisedLog { limit: 6, window: 4_000, resolution: 1_000 };
    let limiter = Arc::new(RedisLimiter::new(&store, &case_name(), quota(meter)).unwrap());
    let naive = Naive::new(meter, 0, START);
    let mut compared =
        Compared { meter, naive, is_known: false, limiter, now: START, passes: None, clock: &clock, runtime: &runtime };
    // In the middle of steps: at its end, one that is over would be the entry that is left.
    compared.now += 500;
    clock.set(compared.now);
    for _ in 0..300 {
        compared.run(Op::Acquire(1)).unwrap();
        compared.now += 1_000;
        clock.set(compared.now);
        compared.run(Op::Peek(3)).unwrap();
    }
}
