//! Drives a limiter and the oracle with the same operations on one mock clock and compares every answer.
//!
//! A difference is an `Err` that says what was asked, when, and what each of the two said, so that property tests and
//! fuzzing can both use this file.
#![allow(dead_code, reason = "every test crate that includes this file uses a different part of it")]

use std::time::Duration;

use tollgate::{
    AtKeyCap, CostExceedsLimit, Counts, Decision, DenialReason, DirectLimiter, Limiter, MockClock, Quota, Status,
};

use crate::oracle::{Answer, AtCap, By, Holds, NeverPossible, Oracle, Outcome, Rule};

/// No test sets its clock past 73 years, so that a window of 36 years on top still fits the 109 that a limiter tells apart.
pub(crate) const END_OF_TIME: u64 = (1 << 61) - (1 << 41);

/// How many permits to ask for, whatever the limit is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cost {
    Zero,
    One,
    /// 1 to the limit.
    Some(u32),
    Limit,
    PastLimit,
}

impl Cost {
    fn of(self, limit: u32) -> u32 {
        match self {
            Self::Zero => 0,
            Self::One => 1,
            Self::Some(any) => 1 + any % limit,
            Self::Limit => limit,
            Self::PastLimit => limit + 1,
        }
    }
}

/// How far to move the clock forward.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Nothing,
    OneNanosecond,
    WindowLessOne,
    Window,
    WindowAndOne,
    /// This many parts in 65,536 of two windows.
    Part(u16),
}

/// One operation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Op {
    /// `try_acquire`.
    AcquireOne {
        key: u32,
    },
    /// `try_acquire_n`.
    Acquire {
        key: u32,
        cost: Cost,
    },
    /// `try_acquire_status`.
    Status {
        key: u32,
        cost: Cost,
    },
    Peek {
        key: u32,
    },
    PeekN {
        key: u32,
        cost: Cost,
    },
    Forget {
        key: u32,
    },
    Clear,
    Advance(Step),
    /// To the very moment at which the key's next request of this cost will succeed, or a nanosecond before or after.
    AdvanceToRetry {
        key: u32,
        cost: Cost,
        off_by: i8,
    },
    /// Sets the clock back by this many parts in 65,536 of two windows.
    Back(u16),
    /// Sets the clock back to zero.
    BackToZero,
    /// Far ahead: years.
    Leap(u64),
}

/// How far back the clock may be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backwards {
    Anywhere,
    /// Never so far that permits become live again that a limiter may have reclaimed already.
    WhileCertain,
}

impl Backwards {
    /// How far a clock may go back under this rule with few keys. A ring of one never grows, and remembers its permit for as
    /// long as its key is known; a longer one may have lost what expired when it grew.
    pub(crate) fn for_few_keys(rule: Rule) -> Self {
        if rule.limit == 1 { Self::Anywhere } else { Self::WhileCertain }
    }
}

/// What is tested: a keyed limiter, or one without keys, which takes all of them for the same.
pub(crate) trait Subject {
    fn acquire_one(&self, key: u32) -> Decision;
    fn acquire(&self, key: u32, cost: u32) -> Result<Decision, CostExceedsLimit>;
    fn status(&self, key: u32, cost: u32) -> Result<Status, CostExceedsLimit>;
    fn peek(&self, key: u32) -> Status;
    fn peek_n(&self, key: u32, cost: u32) -> Result<Status, CostExceedsLimit>;
    /// `None` where it is not said whether anything was held.
    fn forget(&self, key: u32) -> Option<bool>;
    fn clear(&self);
    fn counts(&self) -> Option<Counts>;
}

impl Subject for Limiter<u32, MockClock> {
    fn acquire_one(&self, key: u32) -> Decision {
        self.try_acquire(&key)
    }
    fn acquire(&self, key: u32, cost: u32) -> Result<Decision, CostExceedsLimit> {
        self.try_acquire_n(&key, cost)
    }
    fn status(&self, key: u32, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.try_acquire_status(&key, cost)
    }
    fn peek(&self, key: u32) -> Status {
        self.peek(&key)
    }
    fn peek_n(&self, key: u32, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.peek_n(&key, cost)
    }
    fn forget(&self, key: u32) -> Option<bool> {
        Some(self.forget(&key))
    }
    fn clear(&self) {
        self.clear();
    }
    fn counts(&self) -> Option<Counts> {
        Some(self.counts())
    }
}

impl Subject for DirectLimiter<MockClock> {
    fn acquire_one(&self, _: u32) -> Decision {
        self.try_acquire()
    }
    fn acquire(&self, _: u32, cost: u32) -> Result<Decision, CostExceedsLimit> {
        self.try_acquire_n(cost)
    }
    fn status(&self, _: u32, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.try_acquire_status(cost)
    }
    fn peek(&self, _: u32) -> Status {
        self.peek()
    }
    fn peek_n(&self, _: u32, cost: u32) -> Result<Status, CostExceedsLimit> {
        self.peek_n(cost)
    }
    fn forget(&self, _: u32) -> Option<bool> {
        self.clear();
        None
    }
    fn clear(&self) {
        self.clear();
    }
    fn counts(&self) -> Option<Counts> {
        None
    }
}

/// A limiter and the oracle, at the same time.
pub(crate) struct Pair<S> {
    pub(crate) subject: S,
    clock: MockClock,
    oracle: Oracle<u32>,
    now: u64,
    cap: usize,
    backwards: Backwards,
    asked: usize,
}

impl Pair<Limiter<u32, MockClock>> {
    pub(crate) fn keyed(rule: Rule, start: u64, cap: Option<(usize, AtCap)>, backwards: Backwards) -> Self {
        let clock = MockClock::new();
        clock.set(start);
        let mut builder = Limiter::<u32>::builder(quota(rule)).clock(clock.clone()).count_decisions(true);
        let (cap, at_cap) = match cap {
            Some((cap, at_cap)) => {
                builder = builder.key_cap(cap).at_key_cap(policy(at_cap));
                (cap, at_cap)
            }
            None => (usize::MAX, AtCap::Deny),
        };
        let subject = builder.build().expect("a good quota and cap");
        Self { subject, clock, oracle: Oracle::with_cap(rule, cap, at_cap), now: start, cap, backwards, asked: 0 }
    }
}

impl Pair<DirectLimiter<MockClock>> {
    pub(crate) fn direct(rule: Rule, start: u64, backwards: Backwards) -> Self {
        let clock = MockClock::new();
        clock.set(start);
        let subject = DirectLimiter::with_clock(quota(rule), clock.clone()).expect("a good quota");
        Self { subject, clock, oracle: Oracle::new(rule), now: start, cap: usize::MAX, backwards, asked: 0 }
    }
}

impl<S: Subject> Pair<S> {
    /// Does `op` on both sides. `Err` says how they differ.
    pub(crate) fn apply(&mut self, op: Op) -> Result<(), String> {
        if self.move_clock(op) {
            return Ok(());
        }
        self.oracle.has_seen(self.now);
        self.ask(op).map_err(|difference| {
            format!("{op:?} at {} ns under {:?}, cap {}: {difference}", self.now, self.oracle.rule(), self.cap)
        })
    }

    pub(crate) fn rule(&self) -> Rule {
        self.oracle.rule()
    }

    pub(crate) fn set_clock(&mut self, ns: u64) {
        self.now = ns.min(END_OF_TIME);
        self.clock.set(self.now);
    }

    /// Whether `op` was one that moves the clock.
    fn move_clock(&mut self, op: Op) -> bool {
        let Rule { limit, window } = self.oracle.rule();
        match op {
            Op::Advance(step) => self.set_clock(self.now.saturating_add(length(step, window))),
            Op::Leap(by) => self.set_clock(self.now.saturating_add(by)),
            Op::Back(part) => self.set_back(self.now.saturating_sub(length(Step::Part(part), window))),
            Op::BackToZero => self.set_back(0),
            Op::AdvanceToRetry { key, cost, off_by } => {
                let answer = self.oracle.peek(&key, self.now, cost.of(limit));
                if let Ok(Answer { retry_after: Some(wait), .. }) = answer {
                    let target = u64::try_from(u128::from(self.now) + wait).unwrap_or(u64::MAX);
                    self.set_clock(target.saturating_add_signed(off_by.into()));
                }
            }
            _ => return false,
        }
        true
    }

    fn ask(&mut self, op: Op) -> Result<(), String> {
        let limit = self.oracle.rule().limit;
        match op {
            Op::AcquireOne { key } => {
                let expected = self.oracle.acquire(&key, self.now, 1);
                self.same_decision(Ok(self.subject.acquire_one(key)), expected)?;
            }
            Op::Acquire { key, cost } => {
                let cost = cost.of(limit);
                let expected = self.oracle.acquire(&key, self.now, cost);
                self.same_decision(self.subject.acquire(key, cost), expected)?;
            }
            Op::Status { key, cost } => {
                let cost = cost.of(limit);
                let status = self.subject.status(key, cost);
                if cost == 0 {
                    self.same_peek(key, cost, status)?;
                } else {
                    let expected = self.oracle.acquire(&key, self.now, cost);
                    self.same_status(status, expected)?;
                }
            }
            Op::Peek { key } => self.same_peek(key, 1, Ok(self.subject.peek(key)))?,
            Op::PeekN { key, cost } => {
                let cost = cost.of(limit);
                self.same_peek(key, cost, self.subject.peek_n(key, cost))?;
            }
            Op::Forget { key } => match (self.subject.forget(key), self.oracle.forget(&key)) {
                (None, _)
                | (_, Holds::SomethingExpired)
                | (Some(true), Holds::Something)
                | (Some(false), Holds::Nothing) => {}
                (Some(held), expected) => return Err(format!("said {held}, expected {expected:?}")),
            },
            Op::Clear => {
                self.subject.clear();
                self.oracle.clear();
            }
            Op::Advance(_) | Op::AdvanceToRetry { .. } | Op::Back(_) | Op::BackToZero | Op::Leap(_) => {}
        }
        self.same_counts()
    }

    fn set_back(&mut self, to: u64) {
        let earliest = match self.backwards {
            Backwards::Anywhere => 0,
            Backwards::WhileCertain => self.oracle.earliest_certain_reading(),
        };
        self.set_clock(to.max(earliest).min(self.now));
    }

    fn same_decision(
        &self,
        decision: Result<Decision, CostExceedsLimit>,
        expected: Result<Outcome, NeverPossible>,
    ) -> Result<(), String> {
        let (decision, Outcome { answer, by }) = match (decision, expected) {
            (Err(_), Err(NeverPossible)) => return Ok(()),
            (Ok(decision), Ok(outcome)) => (decision, outcome),
            (decision, expected) => return Err(format!("{decision:?}, expected {expected:?}")),
        };
        let difference = || Err(format!("{decision:?}, expected {answer:?} by {by:?}"));
        match (decision, answer.retry_after) {
            (Decision::Admitted(_), None) if by == By::Peek => Ok(()),
            (Decision::Admitted(admission), None) if admission.is_counted() == (by != By::NoPlaceAdmitted) => Ok(()),
            (Decision::Denied(denial), Some(wait)) => {
                let said = denial.retry_after().as_nanos();
                let right = match denial.reason() {
                    DenialReason::Quota => by != By::NoPlaceDenied && said == wait,
                    // The earliest moment at which a place may be free: not now, and not after one is.
                    DenialReason::KeyCap => by == By::NoPlaceDenied && 0 < said && said <= wait,
                    _ => false,
                };
                if right { Ok(()) } else { difference() }
            }
            _ => difference(),
        }
    }

    fn same_status(
        &self,
        status: Result<Status, CostExceedsLimit>,
        expected: Result<Outcome, NeverPossible>,
    ) -> Result<(), String> {
        self.same_decision(status.map(|status| status.decision()), expected)?;
        let (Ok(status), Ok(Outcome { answer, .. })) = (status, expected) else { return Ok(()) };
        let said = (status.limit(), status.remaining(), status.reset_after().as_nanos());
        let right = (self.oracle.rule().limit, answer.remaining, answer.reset_after);
        if said == right {
            Ok(())
        } else {
            Err(format!("(limit, remaining, reset after) {said:?}, expected {right:?}"))
        }
    }

    /// Compares a peek with the key's own permits. A key that would find no place may as well be told what the policy
    /// would answer it.
    fn same_peek(&self, key: u32, cost: u32, status: Result<Status, CostExceedsLimit>) -> Result<(), String> {
        let own = self.oracle.peek(&key, self.now, cost).map(|answer| Outcome { answer, by: By::Peek });
        self.same_status(status, own).or_else(|difference| {
            if cost == 0 || own.is_err() || self.oracle.has_place(&key, self.now) {
                return Err(difference);
            }
            self.same_status(status, self.oracle.peek_without_a_place(self.now, cost))
        })
    }

    fn same_counts(&mut self) -> Result<(), String> {
        self.asked += 1;
        // Counting looks at every key on both sides: with many of them, now and then is often enough.
        if !self.asked.is_multiple_of(1 + self.oracle.keys_ever_held() / 16) {
            return Ok(());
        }
        let Some(counts) = self.subject.counts() else { return Ok(()) };
        let decisions = counts.decisions.map(|decisions| (decisions.admitted, decisions.denied));
        let said = (counts.live_keys, counts.refused_at_cap, decisions);
        let right = (self.oracle.live_keys(self.now), self.oracle.refused_at_cap(), Some(self.oracle.decisions()));
        if said != right {
            return Err(format!("(live keys, refused at cap, decisions) {said:?}, expected {right:?}"));
        }
        if counts.cells < counts.live_keys || counts.cells > self.cap {
            return Err(format!("{} cells for {} live keys and a cap of {}", counts.cells, counts.live_keys, self.cap));
        }
        Ok(())
    }
}

fn length(step: Step, window: u64) -> u64 {
    match step {
        Step::Nothing => 0,
        Step::OneNanosecond => 1,
        Step::WindowLessOne => window - 1,
        Step::Window => window,
        Step::WindowAndOne => window + 1,
        Step::Part(part) => u64::try_from((u128::from(window) * u128::from(part)) >> 15).expect("at most two windows"),
    }
}

fn quota(rule: Rule) -> Quota {
    Quota::new(rule.limit, Duration::from_nanos(rule.window))
}

fn policy(at_cap: AtCap) -> AtKeyCap {
    match at_cap {
        AtCap::Deny => AtKeyCap::Deny,
        AtCap::Admit => AtKeyCap::Admit,
        AtCap::Share => AtKeyCap::Share,
    }
}
