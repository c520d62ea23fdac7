//! Helpers of the loom models of cells.

use core::time::Duration;

use loom::{sync::Arc, thread};

use crate::cell::kit::*;
use crate::quota::Quota;

pub(in crate::cell) const KEY: Fingerprint = Fingerprint::new(1, 2 << 4);

/// A clock that stands still at the given reading.
pub(in crate::cell) struct At(pub(in crate::cell) u64);

impl Clock for At {
    fn now(&self) -> u64 {
        self.0
    }
}

/// One cell, alone in its pool.
pub(in crate::cell) struct One {
    pub(in crate::cell) cells: Cells,
    pub(in crate::cell) id: u32,
    pub(in crate::cell) incarnation: u64,
}

impl One {
    /// A cell under `limit` permits in ten nanoseconds that has been granted `cost` at time `at`.
    pub(in crate::cell) fn log(limit: u32, cost: u32, at: u64) -> Self {
        Self::of(&log(limit), cost, at)
    }

    /// The same, under these quotas.
    pub(in crate::cell) fn of(quotas: &[Quota], cost: u32, at: u64) -> Self {
        let cells = Cells::new([Versions::new(quotas)].into(), 4);
        let (id, incarnation) = cells.create(KEY, cost).unwrap();
        cells.grant(id, incarnation, &At(at));
        Self { cells, id, incarnation }
    }

    pub(in crate::cell) fn seat(&self) -> Option<Seat<'_>> {
        self.cells.seat_for(self.id, self.incarnation, KEY)
    }

    /// Looks the cell up again where it may no longer decide for the key, as the table does.
    pub(in crate::cell) fn ask(&self, ask: Ask, cost: u32, at: u64) -> Option<Status> {
        self.ask_refundable(ask, cost, at).map(|(status, _)| status)
    }

    fn ask_refundable(&self, ask: Ask, cost: u32, at: u64) -> Option<(Status, Charge)> {
        loop {
            let told = self.cells.decide_refundable(ask, self.seat()?, cost, &At(at));
            if told.is_some() {
                return told;
            }
        }
    }

    /// Permits granted, the cost or nothing: as the limiter does it, at once if possible.
    pub(in crate::cell) fn acquire(&self, cost: u32, at: u64) -> u32 {
        let fast = self.seat().and_then(|seat| self.cells.fast_if_open(seat, cost, at));
        let decision = fast.or_else(|| self.ask(Ask::Acquire, cost, at).map(|status| status.decision()));
        decision.map_or(0, |decision| if decision.is_admitted() { cost } else { 0 })
    }

    pub(in crate::cell) fn remaining(&self, at: u64) -> u32 {
        self.ask(Ask::Peek, 0, at).unwrap().remaining()
    }

    /// Takes permits that may be given back, now or within one window; and the delay.
    pub(in crate::cell) fn reserve(&self, cost: u32, within: u64, at: u64) -> Option<(u64, Charge)> {
        let (status, charge) = self.ask_refundable(Ask::Reserve { within }, cost, at)?;
        let delay = status.decision().into_result().ok()?.delay();
        Some((u64::try_from(delay.as_nanos()).unwrap(), charge))
    }

    pub(in crate::cell) fn refund(&self, charge: Charge, cost: u32, at: u64) -> u32 {
        loop {
            let Some(seat) = self.seat() else { return 0 };
            if let Some(given) = self.cells.refund(seat, charge, cost, &At(at)) {
                return given;
            }
        }
    }
}

/// So many permits in any ten nanoseconds.
pub(in crate::cell) fn log(limit: u32) -> [Quota; 1] {
    [Quota::new(limit, Duration::from_nanos(10))]
}

/// One permit every ten nanoseconds.
pub(in crate::cell) fn bucket(capacity: u32) -> [Quota; 1] {
    [Quota::token_bucket(capacity, 1, Duration::from_nanos(10))]
}

/// Runs the model with a bound on preemptions: three find all the errors that were put in on
/// purpose.
pub(in crate::cell) fn explore(body: impl Fn() + Sync + Send + 'static) {
    explore_with(3, body);
}

/// The same, with a bound of its own.
pub(in crate::cell) fn explore_with(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    crate::sync::check_model(&model, body);
}

/// Each request runs in a thread of its own; gives the permits granted to each.
pub(in crate::cell) fn race(one: &Arc<One>, requests: &[(u32, u64)]) -> Vec<u32> {
    let run = |&(cost, at): &(u32, u64)| {
        let one = Arc::clone(one);
        thread::spawn(move || one.acquire(cost, at))
    };
    let threads: Vec<_> = requests[1..].iter().map(run).collect();
    let first = one.acquire(requests[0].0, requests[0].1);
    core::iter::once(first).chain(threads.into_iter().map(|thread| thread.join().unwrap())).collect()
}

/// Runs something on the cell in a thread of its own.
pub(in crate::cell) fn spawned<T: Send + 'static>(
    one: &Arc<One>,
    run: impl FnOnce(&One) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let one = Arc::clone(one);
    thread::spawn(move || run(&one))
}
