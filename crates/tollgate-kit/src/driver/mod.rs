//! Drives a limiter and the oracle with the same operations on one mock clock and compares every
//! answer.
//!
//! A difference is an `Err` that says what was asked, when, and what each of the two said, so that
//! property tests and fuzzing can both use this file.

mod lived;
pub mod op;

use tollgate::{AtKeyCap, CostExceedsLimit, Decision, DenialReason, DirectLimiter, Limiter, QuotaStatus, Status};

use crate::clocks::CountedClock;
use crate::facade::Facade;

use crate::oracle::{
    Answer, AtCap, By, Granted, Holds, Left, NeverPossible, Oracle, Outcome, Place, Rule, Seen, least, longest,
};
use lived::Lived;
use op::{Call, Said, length};
pub use op::{Cost, Op, Step};

/// No test sets its clock past 73 years, so that a window of 36 years on top still fits the 109
/// that a limiter tells apart.
pub const END_OF_TIME: u64 = (1 << 61) - (1 << 41);

/// A limiter and the oracle, at the same time.
pub struct Pair<S> {
    pub subject: S,
    clock: CountedClock,
    oracle: Oracle<u32>,
    now: u64,
    cap: usize,
    asked: usize,
    /// Steps of the clock so far: they go through the windows of the rules in turn.
    steps: usize,
    lived: Lived,
}

impl Pair<Limiter<u32, CountedClock>> {
    pub fn keyed(rules: &[Rule], start: u64, cap: Option<(usize, AtCap)>) -> Self {
        let clock = CountedClock::new();
        clock.set(start);
        let mut builder = Limiter::<u32>::builder(rules[0].quota()).clock(clock.clone()).count_decisions(true);
        for &rule in &rules[1..] {
            builder = builder.and(rule.quota());
        }
        let (cap, at_cap) = match cap {
            Some((cap, at_cap)) => {
                builder = builder.key_cap(cap).at_key_cap(policy(at_cap));
                (cap, at_cap)
            }
            None => (usize::MAX, AtCap::Deny),
        };
        let subject = builder.build().expect("a good quota and cap");
        Self {
            subject,
            clock,
            oracle: Oracle::with_cap(rules, cap, at_cap),
            now: start,
            cap,
            asked: 0,
            steps: 0,
            lived: Lived::default(),
        }
    }
}

impl Pair<DirectLimiter<CountedClock>> {
    pub fn direct(rules: &[Rule], start: u64) -> Self {
        let clock = CountedClock::new();
        clock.set(start);
        let builder = DirectLimiter::builder(rules[0].quota()).clock(clock.clone()).count_decisions(true);
        let builder = rules[1..].iter().fold(builder, |builder, rule| builder.and(rule.quota()));
        let subject = builder.build().expect("good quotas");
        Self {
            subject,
            clock,
            oracle: Oracle::new(rules),
            now: start,
            cap: usize::MAX,
            asked: 0,
            steps: 0,
            lived: Lived::default(),
        }
    }
}

impl<S: Facade> Pair<S> {
    /// Does `op` on both sides. `Err` says how they differ.
    pub fn apply(&mut self, op: Op) -> Result<(), String> {
        if self.move_clock(op) {
            return Ok(());
        }
        self.oracle.has_seen(self.now);
        self.ask(op).map_err(|difference| {
            format!("{op:?} at {} ns under {:?}, cap {}: {difference}", self.now, self.oracle.rules(), self.cap)
        })
    }

    /// The most that one request may ask for.
    pub fn limit(&self) -> u32 {
        least(self.oracle.rules())
    }

    pub fn set_clock(&mut self, ns: u64) {
        let ns = ns.min(END_OF_TIME);
        self.lived.step(self.now, ns);
        self.now = ns;
        self.clock.set(self.now);
    }

    /// Whether `op` was one that moves the clock.
    fn move_clock(&mut self, op: Op) -> bool {
        let rules = self.oracle.rules();
        let (limit, window) = (least(rules), rules[self.steps % rules.len()].window);
        self.steps += 1;
        match op {
            Op::Advance(step) => self.set_clock(self.now.saturating_add(length(step, window))),
            Op::Leap(by) => self.set_clock(self.now.saturating_add(by)),
            Op::Back(part) => self.set_clock(self.now.saturating_sub(length(Step::Part(part), window))),
            Op::BackToZero => self.set_clock(0),
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
        let limit = self.limit();
        match op {
            Op::AcquireOne { key } => self.acquire(key, 1, Call::One)?,
            Op::Acquire { key, cost } => self.acquire(key, cost.of(limit), Call::Some)?,
            Op::Status { key, cost: Cost::Zero } => self.same_peek(key, 0, self.subject.status(&[Some(key)], 0))?,
            Op::Status { key, cost } => self.acquire(key, cost.of(limit), Call::Status)?,
            Op::Peek { key } => self.same_peek(key, 1, Ok(self.subject.peek(&[Some(key)])))?,
            Op::PeekN { key, cost } => {
                let cost = cost.of(limit);
                self.same_peek(key, cost, self.subject.peek_n(&[Some(key)], cost))?;
            }
            Op::Forget { key } => {
                self.lived.forget(key);
                Self::same_holds(self.subject.forget(&[Some(key)]), self.oracle.forget(&key))?;
            }
            Op::Clear => {
                self.lived.clear();
                self.subject.clear();
                self.oracle.clear();
            }
            Op::Advance(_) | Op::AdvanceToRetry { .. } | Op::Back(_) | Op::BackToZero | Op::Leap(_) => {}
        }
        self.same_counts()
    }

    fn acquire(&mut self, key: u32, cost: u32, call: Call) -> Result<(), String> {
        let (place, lags) = (self.oracle.place(&key, self.now), self.oracle.lags(self.now));
        let refused = self.refused_if(place == Place::Either);
        let said = call.make(&self.subject, key, cost);
        let placed = match place {
            Place::Certain => true,
            Place::None => false,
            Place::Either => refused == self.refused_if(true),
        };
        let admitted = said.as_ref().ok().filter(|said| said.decision.is_admitted() && cost > 0);
        if placed && admitted.is_some_and(Said::is_counted) {
            self.lived.grant(key, cost, self.oracle.rules())?;
        }
        let granted = if lags { self.granted(key, cost, admitted)? } else { None };
        let expected = self.oracle.acquire(&key, self.now, cost, Seen { placed, granted });
        match said {
            Ok(Said { status: Some(status), .. }) => self.same_status(Ok(status), expected),
            said => self.same_decision(said.map(|said| said.decision), expected),
        }
    }

    fn same_holds(held: Option<bool>, expected: Holds) -> Result<(), String> {
        match (held, expected) {
            (None, _)
            | (_, Holds::SomethingExpired)
            | (Some(true), Holds::Something)
            | (Some(false), Holds::Nothing) => Ok(()),
            (Some(held), expected) => Err(format!("said {held}, expected {expected:?}")),
        }
    }

    /// Requests that found no place so far, where it matters: it takes a look at every cell.
    fn refused_if(&self, it_matters: bool) -> Option<u64> {
        it_matters.then(|| self.subject.counts().refused_at_cap)
    }

    /// What has just been granted; by when the last of all permits is said to be free again its
    /// stamp is known. It must be something that the oracle allows. `None` of permits that are not
    /// counted.
    fn granted(&self, key: u32, cost: u32, said: Option<&Said>) -> Result<Option<Granted>, String> {
        if !said.is_some_and(Said::is_counted) {
            return Ok(None);
        }
        let status = self.subject.peek_n(&[Some(key)], 0).map_err(|error| error.to_string())?;
        let window = longest(self.oracle.rules());
        let reset = status.quotas().map(|quota| quota.reset_after()).max().expect("a quota");
        let end = u128::from(self.now) + reset.as_nanos();
        let stamp = end.checked_sub(u128::from(window)).and_then(|stamp| u64::try_from(stamp).ok());
        let left = left_by(&status);
        match stamp.map(|stamp| Granted { cost, stamp, left }) {
            Some(granted) if self.oracle.may_grant(&key, granted, self.now) => Ok(Some(granted)),
            _ => Err(format!("granted until {end} and then {left:?} remains, which the oracle rules out")),
        }
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
                    DenialReason::Quota => {
                        by != By::NoPlaceDenied && said == wait && answer.in_the_way >> denial.quota() & 1 == 1
                    }
                    // The earliest moment at which a place may be free: not now, and not after one
                    // is.
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
        self.same_decision(status.as_ref().map(Status::decision).map_err(|error| *error), expected)?;
        let (Ok(status), Ok(Outcome { mut answer, by })) = (status, expected) else { return Ok(()) };
        if let (By::NoPlaceDenied, Some(wait)) = (by, status.retry_after()) {
            // Of all the times that may be advised, the one that was.
            for left in answer.left.iter_mut().flatten() {
                (left.next_after, left.reset_after) = (wait.as_nanos(), wait.as_nanos());
            }
        }
        if let Some((place, quota)) = status.quotas().enumerate().find(|(place, quota)| quota.quota() != *place) {
            return Err(format!("{quota:?} in place {place}"));
        }
        let tightest = status.tightest().expect("a quota");
        let said = left_by(&status);
        if said != answer.left {
            return Err(format!("{said:?}, expected {:?}", answer.left));
        }
        let tightest = (tightest.quota(), left_of(tightest));
        let short = Left {
            limit: status.limit(),
            remaining: status.remaining(),
            next_after: status.next_after().as_nanos(),
            reset_after: status.reset_after().as_nanos(),
        };
        if tightest != answer.tightest() || short != tightest.1 {
            return Err(format!("tightest is {tightest:?}, {short:?}, expected {:?}", answer.tightest()));
        }
        Ok(())
    }

    /// Compares a peek with the key's own permits. A key that need not be known may be told that it
    /// has none, and one that would find no place may as well be told what the policy would answer
    /// it.
    fn same_peek(&self, key: u32, cost: u32, status: Result<Status, CostExceedsLimit>) -> Result<(), String> {
        let by_peek = |answer| Outcome { answer, by: By::Peek };
        let own = self.same_status(status.clone(), self.oracle.peek(&key, self.now, cost).map(by_peek));
        if own.is_ok() || status.is_err() || !self.oracle.may_be_unknown(&key) {
            return own;
        }
        let unknown = self.same_status(status.clone(), self.oracle.peek_unknown(cost).map(by_peek));
        if unknown.is_ok() || cost == 0 || self.oracle.place(&key, self.now) == Place::Certain {
            return unknown.or(own);
        }
        self.same_status(status, Ok(self.oracle.peek_without_a_place(&key, self.now)))
    }

    fn same_counts(&mut self) -> Result<(), String> {
        self.asked += 1;
        // Counting looks at every key on both sides: with many of them, now and then is often
        // enough.
        if self.asked % (1 + self.oracle.keys_ever_held() / 16) != 0 {
            return Ok(());
        }
        let counts = self.subject.counts();
        let decisions = counts.decisions.map(|decisions| (decisions.admitted, decisions.denied));
        let said = (counts.refused_at_cap, decisions);
        let right = (self.oracle.refused_at_cap(), Some(self.oracle.decisions()));
        if said != right {
            return Err(format!("(refused at cap, decisions) {said:?}, expected {right:?}"));
        }
        let live = self.oracle.live_keys(self.now);
        if !live.contains(&counts.live_keys) {
            return Err(format!("{} live keys, expected {live:?}", counts.live_keys));
        }
        if counts.cells < counts.live_keys || counts.cells > self.cap {
            return Err(format!("{} cells for {} live keys and a cap of {}", counts.cells, counts.live_keys, self.cap));
        }
        Ok(())
    }
}

/// What each quota leaves.
fn left_by(status: &Status) -> [Option<Left>; 8] {
    let mut quotas = status.quotas().map(left_of);
    core::array::from_fn(|_| quotas.next())
}

fn left_of(quota: QuotaStatus) -> Left {
    Left {
        limit: quota.limit(),
        remaining: quota.remaining(),
        next_after: quota.next_after().as_nanos(),
        reset_after: quota.reset_after().as_nanos(),
    }
}

fn policy(at_cap: AtCap) -> AtKeyCap {
    match at_cap {
        AtCap::Deny => AtKeyCap::Deny,
        AtCap::Admit => AtKeyCap::Admit,
    }
}
