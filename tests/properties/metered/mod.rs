//! Drives a limiter by one of the algorithms beside the log, and the oracle, with the same
//! operations on one mock clock.
//!
//! # A clock that was set back
//! A reading *lags* if it lies before the latest that the limiter has seen. Where it does not there
//! is exactly one answer. Where it does, a key that is known is answered as the head of
//! `oracle/meter.rs` says, exactly. A key that was as new by the latest reading (or was forgotten)
//! may be *unknown*: it is then treated as one that was first seen at some time from this reading
//! to the latest, and not before it was as new. When that was follows from when everything is said
//! to be free again. So a key that was as new may be unknown also where the reading does not lag.
//! No answer shows it then, but a later one may, by a reading before: so for each key there is all
//! that it may be, until an answer rules it out.
//!
//! Whatever was admitted would have been admitted too
//! - at the latest reading: a clock that went back admits no more than one that stood still, as
//!   things stood then; and
//! - by buckets and queues, under a clock that stands still whenever this one goes back, and then
//!   goes on from there. (Windows have other seams under that clock. Of those that begin with a
//!   request it is checked that by that clock the grants can be divided into windows that begin at
//!   least a window's length apart and hold no more than the limit.)

mod elapsed;
use std::collections::HashMap;
use std::time::Duration;

use tollgate::{
    AtKeyCap, CostExceedsLimit, Decision, DenialReason, DirectLimiter, Limiter, Quota, QuotaStatus, Status,
};

use tollgate_kit::clocks::CountedClock;

use elapsed::Lived;
use tollgate_kit::driver::op::{Call, Said, length};
use tollgate_kit::driver::{Cost, END_OF_TIME, Op, Step};
use tollgate_kit::facade::Facade;
use tollgate_kit::oracle::meter::{Meter, Naive};

pub(crate) struct Pair<S> {
    pub(crate) subject: S,
    pub(crate) clock: CountedClock,
    meter: Meter,
    quota: Quota,
    now: u64,
    latest: u64,
    /// The time that has really passed.
    passed: u64,
    /// What each key may be: at least one thing.
    keys: HashMap<u32, Vec<Naive>>,
    lived: HashMap<u32, Lived>,
    cap: Option<(usize, AtKeyCap)>,
    admitted: u64,
    denied: u64,
    asked: usize,
}

type Checked = Result<(), String>;

impl Pair<Limiter<u32, CountedClock>> {
    pub(crate) fn keyed(meter: Meter, start: u64, cap: Option<(usize, AtKeyCap)>) -> Self {
        let clock = CountedClock::new();
        let mut builder = Limiter::<u32>::builder(meter.quota()).clock(clock.clone()).count_decisions(true);
        if let Some((cap, policy)) = cap {
            builder = builder.key_cap(cap).at_key_cap(policy);
        }
        Self::new(builder.build().expect("a good quota and cap"), clock, meter, start, cap)
    }
}

impl Pair<DirectLimiter<CountedClock>> {
    pub(crate) fn direct(meter: Meter, start: u64) -> Self {
        let clock = CountedClock::new();
        let builder = DirectLimiter::builder(meter.quota()).clock(clock.clone()).count_decisions(true);
        let subject = builder.build().expect("a good quota");
        Self::new(subject, clock, meter, start, None)
    }
}

impl<S: Facade> Pair<S> {
    fn new(subject: S, clock: CountedClock, meter: Meter, start: u64, cap: Option<(usize, AtKeyCap)>) -> Self {
        clock.set(start);
        Self {
            subject,
            clock,
            meter,
            quota: meter.quota(),
            now: start,
            latest: 0,
            passed: 0,
            keys: HashMap::new(),
            lived: HashMap::new(),
            cap,
            admitted: 0,
            denied: 0,
            asked: 0,
        }
    }

    /// Does `op` on both sides. `Err` says how they differ.
    pub(crate) fn apply(&mut self, op: Op) -> Checked {
        self.ask(op).map_err(|difference| format!("{op:?} at {} under {:?}: {difference}", self.now, self.meter))
    }

    pub(crate) fn set_clock(&mut self, ns: u64) {
        let ns = ns.min(END_OF_TIME);
        let Some(passed) = self.passed.checked_add(ns.saturating_sub(self.now)).filter(|&passed| passed < 1 << 63)
        else {
            // There and back again too often: so much time can't pass.
            return;
        };
        self.passed = passed;
        self.now = ns;
        self.clock.set(ns);
    }

    fn ask(&mut self, op: Op) -> Checked {
        let limit = self.meter.limit();
        let window = u64::try_from(self.quota.window().as_nanos()).expect("a window");
        match op {
            // Every other step by the length that the quota is made of.
            Op::Advance(step) => {
                let length = length(step, if self.asked % 2 == 0 { window } else { self.meter.period() });
                self.set_clock(self.now.saturating_add(length));
            }
            Op::Leap(by) => self.set_clock(self.now.saturating_add(by)),
            Op::Back(part) => self.set_clock(self.now.saturating_sub(length(Step::Part(part), window))),
            Op::BackToZero => self.set_clock(0),
            Op::AdvanceToRetry { key, cost, off_by } => {
                let told =
                    self.subject.peek_n(&[Some(key)], cost.of(limit)).ok().and_then(|status| status.retry_after());
                self.latest = self.latest.max(self.now);
                let wait = told.map_or(0, |wait| u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
                if wait > 0 {
                    self.set_clock(self.now.saturating_add(wait).saturating_add_signed(off_by.into()));
                }
            }
            _ => {
                self.latest = self.latest.max(self.now);
                self.asked += 1;
                self.request(op, limit)?;
                return self.same_counts();
            }
        }
        Ok(())
    }

    fn request(&mut self, op: Op, limit: u32) -> Checked {
        match op {
            Op::AcquireOne { key } => self.acquire(key, 1, Call::One),
            Op::Status { key, cost: Cost::Zero } => self.same_peek(key, 0, self.subject.status(&[Some(key)], 0)),
            Op::Acquire { key, cost: Cost::Zero } => match self.subject.acquire(&[Some(key)], 0) {
                Ok(Decision::Admitted(_)) => Ok(()),
                other => Err(format!("{other:?} of nothing")),
            },
            Op::Acquire { key, cost } => self.acquire(key, cost.of(limit), Call::Some),
            Op::Status { key, cost } => self.acquire(key, cost.of(limit), Call::Status),
            Op::Peek { key } => self.same_peek(key, 1, Ok(self.subject.peek(&[Some(key)]))),
            Op::PeekN { key, cost } => {
                let cost = cost.of(limit);
                self.same_peek(key, cost, self.subject.peek_n(&[Some(key)], cost))
            }
            Op::Forget { key } => {
                let held = self.subject.forget(&[Some(key)]);
                self.lived.remove(&key);
                match (held, self.keys.remove(&key)) {
                    (Some(true), None) => Err("nothing was held".to_owned()),
                    (Some(false), Some(key)) if !is_as_new(&key, self.latest) => Err(format!("held {key:?}")),
                    _ => Ok(()),
                }
            }
            _ => {
                self.subject.clear();
                (self.keys, self.lived) = (HashMap::new(), HashMap::new());
                Ok(())
            }
        }
    }

    /// Keys that are not as new at this reading, besides `key`.
    fn live_besides(&self, key: Option<u32>, reading: u64) -> usize {
        self.keys.iter().filter(|&(&other, may_be)| Some(other) != key && !is_as_new(may_be, reading)).count()
    }

    /// Whether the key is decided on an account of its own; `None` if that is left to a limiter
    /// whose clock lags.
    fn has_place(&self, key: u32) -> Option<bool> {
        let Some((cap, _)) = self.cap else { return Some(true) };
        let is_live = !is_as_new(self.may_be(key), self.latest);
        if is_live || self.live_besides(Some(key), self.now) < cap {
            Some(true)
        } else if self.live_besides(Some(key), self.latest) >= cap {
            Some(false)
        } else {
            None
        }
    }

    fn refused(&self) -> u64 {
        self.subject.counts().refused_at_cap
    }

    fn acquire(&mut self, key: u32, cost: u32, call: Call) -> Checked {
        let (lags, place) = (self.now < self.latest, self.has_place(key));
        let refused = place.is_none().then(|| self.refused());
        // Where something is left to the limiter, what it chose is seen by the numbers.
        let call = if lags { Call::Status } else { call };
        let said = match call.make(&self.subject, key, cost) {
            Err(_) if cost > self.meter.limit() => return Ok(()),
            Err(error) => return Err(error.to_string()),
            Ok(_) if cost > self.meter.limit() => return Err("more than can ever be had".to_owned()),
            Ok(said) => said,
        };
        let placed = place.unwrap_or_else(|| Some(self.refused()) == refused);
        *(if said.decision.is_admitted() { &mut self.admitted } else { &mut self.denied }) += 1;
        if placed {
            let after = self.decided(self.may_be(key), cost, &said)?;
            self.keys.insert(key, after);
            return if said.decision.is_admitted() { self.lives_up(key, cost) } else { Ok(()) };
        }
        self.same_without_a_place(key, said.decision)
    }

    /// Whether this is what a key without a place must be told.
    fn same_without_a_place(&self, key: u32, decision: Decision) -> Checked {
        let Some((cap, policy)) = self.cap else { return Err("no cap".to_owned()) };
        match (policy, decision) {
            (AtKeyCap::Admit, Decision::Admitted(admission)) if !admission.is_counted() => Ok(()),
            (AtKeyCap::Deny, Decision::Denied(denial)) if denial.reason() == DenialReason::KeyCap => {
                // The earliest moment at which a place may be free: not now, and not after one is.
                let wait = u64::try_from(denial.retry_after().as_nanos()).expect("short");
                let all_live = self.live_besides(Some(key), (self.now + wait).saturating_sub(1)) >= cap;
                let lags = self.now < self.latest;
                if wait > 0 && (all_live || lags) { Ok(()) } else { Err(format!("no place for {wait} ns")) }
            }
            _ => Err(format!("{decision:?} without a place")),
        }
    }

    fn may_be(&self, key: u32) -> &[Naive] {
        self.keys.get(&key).map_or(&[], Vec::as_slice)
    }

    /// All that the key may be after the decision, by the oracle; `Err` if none of what it may have
    /// been was answered so.
    fn decided(&self, known: &[Naive], cost: u32, said: &Said) -> Result<Vec<Naive>, String> {
        let seen = Some(self.seen_first(cost, said)).filter(|&seen| {
            let may_be_unknown = is_as_new(known, self.latest) && is_as_new(known, seen);
            may_be_unknown && (self.now..=self.latest).contains(&seen)
        });
        let unknown = seen.map(|seen| (Naive::new(self.meter, 0, seen), seen));
        let known = known.iter().map(|naive| (naive.clone(), self.now));
        let (mut may_be, mut faults) = (vec![], vec![]);
        for (before, time) in known.chain(unknown) {
            let mut after = before.clone();
            if said.decision.is_admitted() {
                after.grant(time, cost);
            }
            let numbers = || said.status.as_ref().map_or(Ok(()), |status| self.same_numbers(&after, time, status));
            match self.same(&before, time, cost, said.decision).and_then(|()| numbers()) {
                Ok(()) if said.decision.is_admitted() && !before.admits(self.latest, cost) => {
                    return Err(format!("a clock that stood still would not have admitted it: {before:?}"));
                }
                Ok(()) if may_be.contains(&after) => {}
                Ok(()) => may_be.push(after),
                Err(fault) => faults.push(fault),
            }
        }
        if may_be.is_empty() { Err(format!("{:?} {:?}: {faults:?}", said.decision, said.status)) } else { Ok(may_be) }
    }

    /// When a key that was not known is taken to have been seen first, by when everything will be
    /// free.
    fn seen_first(&self, cost: u32, said: &Said) -> u64 {
        let Some(status) = &said.status else { return self.now };
        let granted = if said.decision.is_admitted() { cost } else { 0 };
        let takes =
            |permits: u32, rate: u32, per: u64| (u128::from(permits) * u128::from(per)).div_ceil(u128::from(rate));
        let takes = match self.meter {
            Meter::TokenBucket { capacity, refill, per, start } => takes(capacity - start + granted, refill, per),
            Meter::LeakyBucket { leak, per, .. } => takes(granted, leak, per),
            // Until there is another place.
            Meter::LeakyQueue { leak, per, max_delay } => takes(granted, leak, per).saturating_sub(max_delay.into()),
            Meter::FixedWindow { .. } | Meter::SlidingCounter { .. } => self.quota.window().as_nanos(),
            // To the stamp.
            Meter::QuantisedLog { window, .. } => window.into(),
        };
        let end = u128::from(self.now) + status.reset_after().as_nanos();
        let seen = u64::try_from(end.saturating_sub(takes)).unwrap_or(u64::MAX);
        // Of windows that stand still it is seen which of them it was.
        let stands_still =
            matches!(self.meter, Meter::FixedWindow { phase: Some(_), .. } | Meter::SlidingCounter { .. });
        match self.meter {
            // Some time of the step, if there is one.
            Meter::QuantisedLog { .. } => seen.min(self.latest).max(self.now),
            _ if stands_still => seen.max(self.now),
            _ => seen,
        }
    }

    /// Whether this is what the key must be told of a request that is judged at `time`.
    fn same(&self, key: &Naive, time: u64, cost: u32, decision: Decision) -> Checked {
        let admitted = key.admits(time, cost);
        match decision {
            Decision::Admitted(admission) => {
                let delay = key.delay(self.now);
                let same = admission.is_counted() && i128::try_from(admission.delay().as_nanos()) == Ok(delay);
                if admitted && (same || cost == 0) { Ok(()) } else { Err(format!("{admission:?} by {key:?}")) }
            }
            Decision::Denied(denial) => {
                let passes = u128::from(self.now) + denial.retry_after().as_nanos();
                let right = denial.reason() == DenialReason::Quota
                    && denial.quota() == 0
                    && passes > u128::from(self.now)
                    && key.admits_at(passes, cost)
                    && !key.admits_at(passes - 1, cost);
                if !admitted && right { Ok(()) } else { Err(format!("{denial:?} by {key:?}")) }
            }
        }
    }

    /// Whether these are the numbers of a request that is judged at `time`; waits are from the
    /// reading on.
    fn same_numbers(&self, key: &Naive, time: u64, status: &Status) -> Checked {
        if status.reset_after() == Duration::MAX {
            // A bucket that starts low fills from its first request on.
            let is_new = Naive::new(self.meter, 0, self.now);
            let is_told = (status.remaining(), status.next_after()) == (is_new.most(self.now), Duration::MAX);
            let is_right = self.meter.starts_low() && is_told && key.most(time) == status.remaining();
            return if is_right { Ok(()) } else { Err(format!("{status:?} of {key:?}")) };
        }
        let free = u128::from(self.now) + status.reset_after().as_nanos();
        let is_first = free == u128::from(self.now) || !key.admits_at(free - 1, self.meter.limit());
        let remaining = key.most(time);
        let quota = status.tightest().expect("a quota");
        let numbers = |quota: QuotaStatus| (quota.limit(), quota.remaining(), quota.next_after(), quota.reset_after());
        let short = (status.limit(), status.remaining(), status.next_after(), status.reset_after());
        if (quota.quota(), status.quotas().len()) != (0, 1) || numbers(quota) != short {
            return Err(format!("{status:?} of one quota"));
        }
        // More is left at that time, and not a nanosecond before.
        let next = self.now + u64::try_from(status.next_after().as_nanos()).expect("short");
        let grows = remaining < self.meter.limit();
        let is_next = match grows {
            true => next > self.now && key.most(next) > remaining && key.most(next - 1) == remaining,
            false => next == self.now,
        };
        if !is_next {
            return Err(format!("{status:?}, but not more than {remaining} remain from {next} on of {key:?}"));
        }
        if status.limit() == self.meter.limit()
            && status.remaining() == remaining
            && key.admits_at(free, self.meter.limit())
            && is_first
        {
            Ok(())
        } else {
            Err(format!("{status:?}, but {remaining} remain of {key:?}"))
        }
    }

    /// Compares a peek with the key's own account, or with that of a key never seen if it need not
    /// be known. A key without a place is told the same as by a request.
    fn same_peek(&self, key: u32, cost: u32, status: Result<Status, CostExceedsLimit>) -> Checked {
        let status = match status {
            Err(_) if cost > self.meter.limit() => return Ok(()),
            Err(error) => return Err(error.to_string()),
            Ok(status) => status,
        };
        let same_as = |known: &[Naive]| {
            let unknown = is_as_new(known, self.latest).then(|| Naive::new(self.meter, 0, self.now));
            let same = |naive: &Naive| {
                self.same(naive, self.now, cost, status.decision())
                    .and_then(|()| self.same_numbers(naive, self.now, &status))
            };
            let compared: Vec<Checked> = known.iter().chain(&unknown).map(same).collect();
            if compared.iter().any(Result::is_ok) { Ok(()) } else { Err(format!("{status:?}: {compared:?}")) }
        };
        let own = || same_as(self.may_be(key));
        let without_a_place = || self.same_without_a_place(key, status.decision());
        match self.has_place(key) {
            Some(true) => own(),
            _ if cost == 0 => own(),
            Some(false) => without_a_place(),
            None => own().or_else(|_| without_a_place()),
        }
    }

    fn same_counts(&self) -> Checked {
        // It looks at every key on both sides.
        if self.asked % (1 + self.keys.len() / 16) != 0 {
            return Ok(());
        }
        let counts = self.subject.counts();
        let decisions = counts.decisions.map(|decisions| (decisions.admitted, decisions.denied));
        if decisions != Some((self.admitted, self.denied)) {
            return Err(format!("{decisions:?} decisions, expected {} and {}", self.admitted, self.denied));
        }
        let live = self.live_besides(None, self.latest)..=self.live_besides(None, self.now);
        let cap = self.cap.map_or(usize::MAX, |(cap, _)| cap);
        let right = live.contains(&counts.live_keys) && (counts.live_keys..=cap).contains(&counts.cells);
        if right { Ok(()) } else { Err(format!("{counts:?}, expected {live:?} live keys under a cap of {cap}")) }
    }
}

/// Whether a key is as one that was never seen. All that it may be says the same of when nothing
/// matters any more.
fn is_as_new(may_be: &[Naive], time: u64) -> bool {
    may_be.iter().all(|naive| naive.is_as_new(time))
}
