//! Many threads, every call of which is recorded with the clock before and after it.

use std::sync::Barrier;
use std::thread;

use tollgate::{Clock, Decision, DenialReason, MonotonicClock};

use super::{Event, Told};

/// By how much readings of the real clock may disagree between processors, or be taken out of order
/// on one.
pub const READING_ERROR: u64 = 1000;

/// What each thread does.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub threads: u32,
    pub calls: u32,
    pub keys: u32,
    /// Costs are 1 to this.
    pub costs: u32,
    /// After so many denials a thread waits as long as it was told, so that many ask again at the
    /// moment of expiry.
    pub obeys_every: u32,
}

/// Numbers that look random and are the same in every run (xorshift).
pub struct Numbers(u64);

impl Numbers {
    fn of_thread(thread: u32) -> Self {
        Self(0x9e37_79b9_7f4a_7c15 ^ (u64::from(thread) + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9))
    }

    /// A number less than `end`.
    pub fn below(&mut self, end: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from((self.0 >> 32) % u64::from(end)).expect("less than a u32")
    }
}

/// Calls `decide(key, cost)` from many threads at once. `between` is what a thread does after each
/// call.
pub fn record<C: Clock + Sync>(
    plan: Plan,
    clock: &C,
    decide: impl Fn(u32, u32) -> Decision + Sync,
    between: impl Fn(&mut Numbers, Told) + Sync,
) -> Vec<Event> {
    let start = Barrier::new(usize::try_from(plan.threads).expect("few"));
    let one_thread = |thread: u32| {
        let mut numbers = Numbers::of_thread(thread);
        let mut events = Vec::with_capacity(usize::try_from(plan.calls).expect("few"));
        start.wait();
        for _ in 0..plan.calls {
            let (key, cost) = (numbers.below(plan.keys), 1 + numbers.below(plan.costs));
            let before = clock.now();
            let decision = decide(key, cost);
            // Never less than before the call, though the thread may have moved to a processor that
            // is a little behind.
            let after = clock.now().max(before);
            let told = told(decision);
            events.push(Event { key, cost, before, after, told });
            between(&mut numbers, told);
        }
        events
    };
    thread::scope(|scope| {
        let one_thread = &one_thread;
        let threads: Vec<_> = (0..plan.threads).map(|thread| scope.spawn(move || one_thread(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread panicked")).collect()
    })
}

pub fn told(decision: Decision) -> Told {
    match decision {
        Decision::Admitted(_) => Told::Admitted,
        Decision::Denied(denial) if denial.reason() == DenialReason::KeyCap => Told::NoPlace,
        Decision::Denied(denial) => Told::Denied {
            // No wait helps a cost above a limit that was lowered meanwhile.
            retry_after: u64::try_from(denial.retry_after().as_nanos()).unwrap_or(u64::MAX),
            quota: denial.quota(),
        },
    }
}

/// Now and then waits as long as it was told; gives up the processor while it does.
pub fn obey(plan: Plan, clock: &MonotonicClock) -> impl Fn(&mut Numbers, Told) + Sync {
    move |numbers, told| {
        if let Told::Denied { retry_after, .. } = told
            && numbers.below(plan.obeys_every) == 0
        {
            let end = clock.now() + retry_after;
            while clock.now() < end {
                thread::yield_now();
            }
        }
    }
}
