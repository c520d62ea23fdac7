//! Two threads on one limiter of three dimensions: ten million calls, recorded with the clock
//! before and after, and checked in each dimension by itself, round by round.
//!
//! That no dimension goes over its quota and that each denial is explained is seen from the calls.
//! That each admission was charged once in each dimension is seen from what the limiter says
//! afterwards of each key, while nobody else calls.
//!
//! Nothing here passes or fails by timing: whatever the scheduler does, a limiter that is right is
//! found right.

mod faults;

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tollgate::{Clock, Decision, JointLimiter, MockClock, MonotonicClock, Quota};
use tollgate_kit::checker::{Event, Expiry, Fault, Limit, Run, Told};

/// By how much readings of the real clock may disagree between processors, or be taken out of order
/// on one.
const READING_ERROR: u64 = 1000;

/// User, address, endpoint.
const DIMENSIONS: usize = 3;

/// So many keys has each dimension at a time.
const KEYS: [u32; DIMENSIONS] = [4, 3, 2];

/// Costs are 1 to this.
const COSTS: u32 = 3;

/// The keys of one request.
type Keys = [Option<u32>; DIMENSIONS];

/// A limit and a window in nanoseconds: the quotas of each dimension. None can hold more than the
/// threads ask for.
fn quotas() -> [Vec<(u32, u64)>; DIMENSIONS] {
    [vec![(30, 500_000)], vec![(80, 1_000_000)], vec![(20, 100_000), (100, 1_200_000)]]
}

/// How long after the last call nothing is live any more.
const QUIET: u64 = 1_200_000 + 2 * READING_ERROR;

fn limiter<C: Clock>(clock: C) -> JointLimiter<[u32], C> {
    let quotas = quotas().map(|quotas| {
        quotas.into_iter().map(|(limit, window)| Quota::new(limit, Duration::from_nanos(window))).collect::<Vec<_>>()
    });
    let names = ["user", "address", "endpoint"];
    let builder =
        names.into_iter().zip(quotas).fold(JointLimiter::builder(), |it, (name, quotas)| it.dimension(name, quotas));
    builder.clock(clock).build().expect("good quotas")
}

/// One call, or one peek.
#[derive(Debug, Clone, Copy)]
struct Call {
    keys: Keys,
    cost: u32,
    before: u64,
    after: u64,
    /// What was said of a denial.
    denied: Option<Denied>,
}

#[derive(Debug, Clone, Copy)]
struct Denied {
    retry_after: u64,
    dimension: u8,
    quota: u8,
    /// A bit for each dimension.
    violated: u8,
}

/// What happened between two quiet moments, and what was said in the second.
struct Round {
    calls: Vec<Call>,
    peeks: Vec<Call>,
    reading_error: u64,
}

/// What is wrong with a round.
#[derive(Debug)]
#[expect(dead_code, reason = "read in messages only")]
enum Trouble {
    /// In this dimension, under this of its quotas.
    Fault(usize, usize, Fault),
    /// The denial names a dimension that was not in the way.
    NotInTheWay(usize, Event),
    /// The denial is not by one of the keys that were asked.
    NotAsked(Call),
    /// A peek was told that there is room, where there is none if each admission was charged.
    NotCharged(usize, usize, Fault),
    /// More permits fit at once than fewer.
    NotInOrder(Call),
}

impl Call {
    fn new(clock: &impl Clock, keys: Keys, cost: u32, decide: impl FnOnce(Keys, u32) -> Decision) -> Self {
        let before = clock.now();
        let decision = decide(keys, cost);
        // Never less than before the call, though the thread may have moved to a processor that is
        // a little behind.
        let after = clock.now().max(before);
        let denied = match decision {
            Decision::Admitted(_) => None,
            Decision::Denied(denial) => Some(Denied {
                retry_after: u64::try_from(denial.retry_after().as_nanos()).expect("short windows"),
                dimension: u8::try_from(denial.dimension()).expect("few"),
                quota: u8::try_from(denial.quota()).expect("few"),
                violated: denial.violated().fold(0, |bits, dimension| bits | 1 << dimension),
            }),
        };
        Self { keys, cost, before, after, denied }
    }

    fn event(self, dimension: usize, told: Told) -> Option<Event> {
        let Self { cost, before, after, .. } = self;
        Some(Event { key: self.keys[dimension]?, cost, before, after, told })
    }

    fn violates(self, dimension: usize) -> bool {
        self.denied.is_some_and(|denied| denied.violated & (1 << dimension) != 0)
    }
}

impl Round {
    /// Looks for trouble. Gives the permits of all dimensions and the denials.
    fn check(&self) -> Result<(u64, u64), Trouble> {
        for &call in self.calls.iter().chain(&self.peeks) {
            let asked = (0..DIMENSIONS).all(|dimension| !call.violates(dimension) || call.keys[dimension].is_some());
            let named = call.denied.is_none_or(|denied| call.violates(denied.dimension.into()));
            if !asked || !named {
                return Err(Trouble::NotAsked(call));
            }
        }
        let (mut permits, mut denials) = (0, 0);
        for (dimension, quotas) in quotas().into_iter().enumerate() {
            let run = |(limit, window), events| Run {
                limits: vec![Limit { permits: limit, window }],
                events,
                reading_error: self.reading_error,
                expiry: Expiry::EachOnItsOwn,
            };
            let in_dimension = |told: &dyn Fn(&Call) -> Option<Told>, calls: &[Call]| -> Vec<Event> {
                calls.iter().filter_map(|call| call.event(dimension, told(call)?)).collect()
            };
            let admitted = |call: &Call| call.denied.is_none().then_some(Told::Admitted);
            let granted = in_dimension(&admitted, &self.calls);
            let mut beside = in_dimension(&|call| call.violates(dimension).then_some(Told::InTheWay), &self.calls);
            for (place, &quota) in quotas.iter().enumerate() {
                let denied = |call: &Call| {
                    let by = call
                        .denied
                        .filter(|by| (usize::from(by.dimension), usize::from(by.quota)) == (dimension, place))?;
                    Some(Told::Denied { retry_after: by.retry_after, quota: 0 })
                };
                let mut events = granted.clone();
                events.extend(in_dimension(&denied, &self.calls));
                events.extend(in_dimension(&denied, &self.peeks));
                let summary = run(quota, events).check().map_err(|fault| Trouble::Fault(dimension, place, fault))?;
                // Each quota of a key counts the same permits.
                permits += if place == 0 { summary.permits } else { 0 };
                denials += summary.denials;
                // Explained by one of them is enough.
                let events = granted.iter().copied().chain(beside).collect();
                beside = run(quota, events).not_in_the_way();
                self.check_peeks(dimension, &granted, |events| run(quota, events))
                    .map_err(|fault| Trouble::NotCharged(dimension, place, fault))?;
            }
            if let Some(&event) = beside.first() {
                return Err(Trouble::NotInTheWay(dimension, event));
            }
        }
        self.check_order()?;
        Ok((permits, denials))
    }

    /// The most that a peek at a key found room for is granted for the sake of the argument: it has
    /// to fit.
    fn check_peeks(&self, dimension: usize, granted: &[Event], run: impl Fn(Vec<Event>) -> Run) -> Result<(), Fault> {
        let found_room = self.peeks.iter().filter(|peek| peek.denied.is_none());
        let found_room: Vec<Event> = found_room.filter_map(|peek| peek.event(dimension, Told::Admitted)).collect();
        for key in found_room.iter().map(|peek| peek.key).collect::<BTreeSet<_>>() {
            let of_key = |event: &&Event| event.key == key;
            let most = found_room.iter().filter(of_key).max_by_key(|peek| peek.cost);
            let lately = |event: &&Event| most.is_some_and(|most| event.after + QUIET >= most.before);
            run(granted.iter().filter(of_key).filter(lately).chain(most).copied().collect()).check()?;
        }
        Ok(())
    }

    /// Looks go from the largest cost to the smallest: once one fits, those after it do, too.
    fn check_order(&self) -> Result<(), Trouble> {
        let pairs = self.peeks.iter().zip(self.peeks.iter().skip(1));
        match pairs
            .into_iter()
            .find(|(one, next)| one.keys == next.keys && one.denied.is_none() && next.denied.is_some())
        {
            Some((_, &peek)) => Err(Trouble::NotInOrder(peek)),
            None => Ok(()),
        }
    }
}

/// What the limiter says of each key at each cost that may be asked for at once.
fn peek<C: Clock>(limiter: &JointLimiter<[u32], C>, first_key: u32) -> Vec<Call> {
    let mut peeks = Vec::new();
    for (dimension, quotas) in quotas().iter().enumerate() {
        let most = quotas.iter().map(|&(limit, _)| limit).min().expect("each has a quota");
        for key in 0..KEYS[dimension] {
            let mut keys = [None; DIMENSIONS];
            keys[dimension] = Some(first_key + key);
            for cost in (1..=most).rev() {
                peeks.push(Call::new(limiter.clock(), keys, cost, |keys, cost| {
                    limiter.peek_n(keys.each_ref().map(Option::as_ref), cost).expect("costs up to the limit").decision()
                }));
            }
        }
    }
    peeks
}

/// Numbers that look random and are the same in every run (xorshift).
struct Numbers(u64);

impl Numbers {
    /// A number less than `end`.
    fn below(&mut self, end: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from((self.0 >> 32) % u64::from(end)).expect("less than a u32")
    }

    /// One key of each dimension; one in eight is not there, but not all of them.
    fn keys(&mut self, first_key: u32) -> Keys {
        loop {
            let keys = KEYS.map(|keys| (self.below(8) != 0).then(|| first_key + self.below(keys)));
            if keys.iter().any(Option::is_some) {
                return keys;
            }
        }
    }
}

fn acquire<C: Clock>(limiter: &JointLimiter<[u32], C>, keys: Keys, cost: u32) -> Call {
    Call::new(limiter.clock(), keys, cost, |keys, cost| {
        limiter.try_acquire_n(keys.each_ref().map(Option::as_ref), cost).expect("costs up to the limit")
    })
}

/// Two threads make so many calls each, and then the answers of the limiter are read.
fn record(limiter: &JointLimiter<[u32]>, number: u32, calls: usize) -> Round {
    // New keys every other round: their rings grow, and the cells of the old keys go to others.
    let first_key = number / 2 * 10;
    let start = Barrier::new(2);
    let one_thread = |thread: u32| {
        let mut numbers =
            Numbers(0x9e37_79b9_7f4a_7c15 ^ (u64::from(2 * number + thread) + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9));
        start.wait();
        let call = |_| {
            let (keys, cost) = (numbers.keys(first_key), 1 + numbers.below(COSTS));
            acquire(limiter, keys, cost)
        };
        (0..calls).map(call).collect::<Vec<_>>()
    };
    let calls = thread::scope(|scope| {
        let one_thread = &one_thread;
        let threads = [0, 1].map(|thread| scope.spawn(move || one_thread(thread)));
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread panicked")).collect()
    });
    Round { calls, peeks: peek(limiter, first_key), reading_error: READING_ERROR }
}

#[test]
fn ten_million_calls_of_two_threads_over_three_dimensions() {
    const ROUNDS: u32 = 100;
    const CALLS: usize = 50_000;
    let limiter = limiter(MonotonicClock::new());
    let (mut calls, mut permits, mut denials) = (0, 0, 0);
    for number in 0..ROUNDS {
        let round = record(&limiter, number, CALLS);
        let summary = round.check().unwrap_or_else(|trouble| panic!("round {number}: {trouble:?}"));
        calls += round.calls.len();
        permits += summary.0;
        denials += summary.1;
        let end = limiter.clock().now() + QUIET;
        while limiter.clock().now() < end {
            thread::yield_now();
        }
    }
    assert_eq!(calls, 10_000_000);
    assert!(permits > 0 && denials > 0, "{permits} permits, {denials} denials");
    println!("{calls} calls, {permits} permits, {denials} denials");
}
