//! A shard with what its table has, for tests.

use super::*;
use crate::decision::{Denial, PerQuota};
use crate::quota::Quota;
use crate::state::cell::{MOST_SHARD_BITS, TIME_ZERO};
use crate::state::table::{Refundable, Table};
use core::cell::Cell as Counter;
use core::time::Duration;

pub(in crate::state) struct World {
    pub(in crate::state) table: Table,
}

/// A clock that stands still.
#[cfg(not(tollgate_loom))]
#[derive(Clone, Copy, Debug)]
pub(in crate::state) struct At(pub(in crate::state) u64);

#[cfg(not(tollgate_loom))]
impl Clock for At {
    fn now(&self) -> u64 {
        self.0
    }
}

/// Spreads small numbers as a fingerprint does.
pub(in crate::state) fn key(number: u64) -> Key {
    let spread = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = spread(number + 1) & !0xf | 0x10;
    Key { tag: spread(mixed ^ mixed >> 32) >> MOST_SHARD_BITS & !0xf | 0x10 }
}

pub(in crate::state) fn log(limit: u32, window: u64) -> Quota {
    Quota::new(limit, Duration::from_nanos(window))
}

/// A clock, and its first reading: that of a decision by one attempt.
struct First<'a>(&'a dyn Clock, Counter<Option<u64>>);

impl Clock for First<'_> {
    fn now(&self) -> u64 {
        let now = self.0.now();
        self.1.set(self.1.get().or(Some(now)));
        now
    }
}

/// An answer, with the reading of the clock at which the permits were granted. If the clock lags, the
/// stamp may be later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::state) enum Answer {
    Admitted { stamp: u64 },
    Denied { wait_ns: u64 },
    Full,
}

impl World {
    pub(in crate::state) fn new(quotas: &[Quota], cap: usize, room: usize) -> Self {
        Self { table: Table::with_shards(Plans::new(&[quotas], 0), 0, cap, room) }
    }

    pub(in crate::state) fn shard(&self) -> &Shard {
        &self.table.shards()[0]
    }

    pub(in crate::state) fn with<'a>(&'a self, clock: &'a dyn Clock) -> Context<'a> {
        self.table.with_shard(self.shard(), clock)
    }

    /// The answer of a log.
    pub(in crate::state) fn ask(&self, number: u64, cost: u32, clock: &dyn Clock) -> Answer {
        let clock = First(clock, Counter::new(None));
        match self.answer(number, cost, &clock) {
            Err(Full) => Answer::Full,
            Ok((decision, _)) if !decision.is_admitted() => Answer::Denied { wait_ns: decision.wait_ns() },
            Ok((_, charged)) => Answer::Admitted {
                stamp: charged.map_or_else(
                    || clock.1.get().expect("it was read"),
                    |charged| u64::try_from(charged.mark).expect("the stamp of a log") - TIME_ZERO,
                ),
            },
        }
    }

    /// Decides a request as a table does, without a collection at the key cap.
    pub(in crate::state) fn decide(&self, number: u64, cost: u32, clock: &dyn Clock) -> Result<FastDecision, Full> {
        self.answer(number, cost, clock).map(|(decision, _)| decision)
    }

    /// Grants a key its first permit.
    pub(in crate::state) fn charge(&self, number: u64, clock: &dyn Clock) -> Charged {
        let (decision, charged) = self.answer(number, 1, clock).expect("there is a place");
        assert!(decision.is_admitted());
        charged.expect("the key had no permits")
    }

    /// The answer to a request. The short way tells nothing of the charge.
    fn answer(&self, number: u64, cost: u32, clock: &dyn Clock) -> Result<(FastDecision, Option<Charged>), Full> {
        let key = key(number);
        let (shard, now) = (self.shard(), || self.with(clock).now());
        let (decision, is_due) = shard.decide(key, cost, |arena| arena.known(key), now, None, || shard);
        if is_due {
            self.with(clock).keep_up(&shard.root());
        }
        if let Some(decision) = decision {
            return Ok((decision, None));
        }
        self.answer_generally(key, Request::acquire(cost), clock)
    }

    fn answer_generally(
        &self,
        key: Key,
        request: Request,
        clock: &dyn Clock,
    ) -> Result<(FastDecision, Option<Charged>), Full> {
        let mut lost = 0;
        loop {
            let (shard, with) = (self.shard(), self.with(clock));
            if let Some(Prepared { decision, charged, mut change }) = with.prepare(key, request, None)? {
                if change.swap() {
                    with.keep_up(&change.arena);
                    return Ok((decision, Some(charged)));
                }
            }
            if request.cost > shard.root().version(key).most {
                return Ok((FastDecision::denied(Denial::NEVER, 0), None));
            }
            back_off(&mut lost);
        }
    }

    /// The charge of a request, if it is admitted.
    #[cfg(tollgate_loom)]
    pub(in crate::state) fn grant(&self, number: u64, request: Request, clock: &dyn Clock) -> Option<Charged> {
        let (decision, charged) = self.answer_generally(key(number), request, clock).expect("there is a place");
        charged.filter(|_| decision.is_admitted())
    }

    /// The permits left of a key that has some.
    pub(in crate::state) fn left(&self, number: u64, clock: &dyn Clock) -> Option<u32> {
        let mut left = PerQuota::NONE;
        let (_, is_known) = self.with(clock).peek(key(number), Request::acquire(1), &mut left);
        is_known.then(|| left.first().remaining)
    }

    pub(in crate::state) fn forget(&self, number: u64, clock: &dyn Clock) -> bool {
        self.with(clock).forget(key(number))
    }

    pub(in crate::state) fn refund(&self, number: u64, cost: u32, stamp: u64, clock: &dyn Clock) -> u32 {
        let charged = Charged { mark: (stamp + TIME_ZERO).into(), life: self.life(number, clock) };
        self.refund_charged(key(number), cost, charged, clock)
    }

    pub(in crate::state) fn refund_charged(&self, key: Key, cost: u32, charged: Charged, clock: &dyn Clock) -> u32 {
        let settled = self.table.settle(&[Refundable { key, cost, charged }], 0, clock);
        cost - settled.expect("there is a charge")
    }

    fn life(&self, number: u64, clock: &dyn Clock) -> u64 {
        let life = self.with(clock).look(key(number), |_, seen| Some(seen.cell.hint.life()));
        life.unwrap_or(0)
    }

    /// Changes the quotas of all keys.
    pub(in crate::state) fn change(&self, quotas: &[Quota], clock: &dyn Clock) {
        let version = self.shard().plans().version(quotas);
        self.with(clock).set_plans(|plans| plans.with(0, &version));
    }

    pub(in crate::state) fn taken(&self) -> u64 {
        self.table.shared.places.cap - self.table.shared.places.free()
    }
}
