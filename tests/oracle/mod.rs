//! The oracle: what the limiter must answer, worked out the naive way.
//!
//! A key is a `Vec` of stamps that is never pruned, and every question is answered by looking at all of them. There are no
//! rings, no positions, no generations and no hashes here, and nothing is shared with the library, so that no mistake of
//! its can hide in this file too. It knows no type of the library's either: any test crate can include it by path.
//!
//! Times are nanoseconds; answers are in `u128` so that nothing here can overflow.
#![allow(dead_code, reason = "every test crate that includes this file uses a different part of it")]

use std::collections::HashMap;
use std::hash::Hash;

/// A limit and a window in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) limit: u32,
    pub(crate) window: u64,
}

/// More permits at once than the limit: no time is late enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NeverPossible;

/// What a request is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) admitted: bool,
    /// How long until the same request would first succeed; only of a denial.
    pub(crate) retry_after: Option<u128>,
    /// Permits free after the decision.
    pub(crate) remaining: u32,
    /// How long until every permit is free.
    pub(crate) reset_after: u128,
}

/// The stamps of one key (or of a limiter without keys): every permit ever granted, in no order that matters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    stamps: Vec<u64>,
}

impl Log {
    /// The reading that counts: one from before the newest stamp is taken for that stamp.
    fn effective(&self, reading: u64) -> u64 {
        self.stamps.iter().copied().fold(reading, u64::max)
    }

    /// The stamps with `reading - stamp < window`.
    fn live(&self, rule: Rule, reading: u64) -> impl Iterator<Item = u64> {
        let now = self.effective(reading);
        self.stamps.iter().copied().filter(move |&stamp| now - stamp < rule.window)
    }

    fn count_live(&self, rule: Rule, reading: u64) -> u32 {
        u32::try_from(self.live(rule, reading).count()).expect("a test grants fewer than 2^32 permits")
    }

    pub(crate) fn is_live(&self, rule: Rule, reading: u64) -> bool {
        self.live(rule, reading).next().is_some()
    }

    /// When the last live permit is free again.
    fn all_free_at(&self, rule: Rule, reading: u64) -> Option<u128> {
        self.live(rule, reading).map(|stamp| u128::from(stamp) + u128::from(rule.window)).max()
    }

    /// The first time at which a request that is denied now would succeed: tries each time at which a permit expires.
    fn succeeds_at(&self, rule: Rule, reading: u64, cost: u32) -> u128 {
        let live: Vec<u128> = self.live(rule, reading).map(u128::from).collect();
        let window = u128::from(rule.window);
        let fits = |time: u128| {
            let used = live.iter().filter(|&&stamp| time < stamp + window).count();
            used + usize::try_from(cost).expect("fits") <= usize::try_from(rule.limit).expect("fits")
        };
        let expiries = live.iter().map(|stamp| stamp + window);
        expiries.filter(|&time| fits(time)).min().expect("once everything has expired any cost up to the limit fits")
    }

    pub(crate) fn peek(&self, rule: Rule, reading: u64, cost: u32) -> Result<Answer, NeverPossible> {
        if cost > rule.limit {
            return Err(NeverPossible);
        }
        let used = self.count_live(rule, reading);
        let admitted = cost == 0 || used + cost <= rule.limit;
        let from_now = |time: u128| time - u128::from(reading);
        Ok(Answer {
            admitted,
            retry_after: (!admitted).then(|| from_now(self.succeeds_at(rule, reading, cost))),
            remaining: rule.limit - used,
            reset_after: self.all_free_at(rule, reading).map_or(0, from_now),
        })
    }

    pub(crate) fn acquire(&mut self, rule: Rule, reading: u64, cost: u32) -> Result<Answer, NeverPossible> {
        let answer = self.peek(rule, reading, cost)?;
        if !answer.admitted {
            return Ok(answer);
        }
        let stamp = self.effective(reading);
        self.stamps.extend((0..cost).map(|_| stamp));
        // The numbers are those after the decision.
        Ok(Answer { admitted: true, ..self.peek(rule, reading, 0)? })
    }
}

/// What a new key is told when as many keys are live as may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtCap {
    Deny,
    Admit,
    Share,
}

/// An answer, and what it was decided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) answer: Answer,
    pub(crate) by: By,
}

/// What a request was decided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// The key's own permits.
    OwnQuota,
    /// The key's own permits, of which none are charged.
    Peek,
    /// The permits shared by all keys without a place.
    SharedQuota,
    /// No place, and so denied. `retry_after` is then how long until a place is free, the most that may be advised.
    NoPlaceDenied,
    /// No place, and so admitted without charge.
    NoPlaceAdmitted,
}

/// Whether a limiter holds anything for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Something,
    Nothing,
    /// Expired permits only, which a limiter may have reclaimed or not.
    SomethingExpired,
}

/// A limiter of many keys.
#[derive(Debug, Clone)]
pub(crate) struct Oracle<K> {
    rule: Rule,
    cap: usize,
    at_cap: AtCap,
    logs: HashMap<K, Log>,
    shared: Log,
    latest_reading: u64,
    /// What [`earliest_certain_reading`](Self::earliest_certain_reading) was when permits were last forgotten.
    earliest_certain: u64,
    refused_at_cap: u64,
    admitted: u64,
    denied: u64,
}

impl<K: Hash + Eq + Clone> Oracle<K> {
    pub(crate) fn new(rule: Rule) -> Self {
        Self::with_cap(rule, usize::MAX, AtCap::Deny)
    }

    pub(crate) fn with_cap(rule: Rule, cap: usize, at_cap: AtCap) -> Self {
        Self {
            rule,
            cap,
            at_cap,
            logs: HashMap::new(),
            shared: Log::default(),
            latest_reading: 0,
            earliest_certain: 0,
            refused_at_cap: 0,
            admitted: 0,
            denied: 0,
        }
    }

    pub(crate) fn rule(&self) -> Rule {
        self.rule
    }

    /// Whether a request of this key would be decided on permits of its own: it is live, or there is room for it.
    pub(crate) fn has_place(&self, key: &K, reading: u64) -> bool {
        self.logs.get(key).is_some_and(|log| log.is_live(self.rule, reading)) || self.live_keys(reading) < self.cap
    }

    pub(crate) fn acquire(&mut self, key: &K, reading: u64, cost: u32) -> Result<Outcome, NeverPossible> {
        if cost == 0 || cost > self.rule.limit {
            return self.peek(key, reading, cost).map(|answer| Outcome { answer, by: By::Peek });
        }
        let outcome = if self.has_place(key, reading) {
            let log = self.logs.entry(key.clone()).or_default();
            Outcome { answer: log.acquire(self.rule, reading, cost)?, by: By::OwnQuota }
        } else {
            self.refused_at_cap += 1;
            self.acquire_without_a_place(reading, cost)?
        };
        if outcome.answer.admitted {
            self.admitted += 1;
        } else {
            self.denied += 1;
        }
        Ok(outcome)
    }

    fn acquire_without_a_place(&mut self, reading: u64, cost: u32) -> Result<Outcome, NeverPossible> {
        let outcome = self.peek_without_a_place(reading, cost)?;
        if outcome.by != By::SharedQuota {
            return Ok(outcome);
        }
        Ok(Outcome { answer: self.shared.acquire(self.rule, reading, cost)?, ..outcome })
    }

    /// What the policy would answer a key without a place.
    pub(crate) fn peek_without_a_place(&self, reading: u64, cost: u32) -> Result<Outcome, NeverPossible> {
        let limit = self.rule.limit;
        Ok(match self.at_cap {
            AtCap::Deny => {
                let retry_after = Some(self.a_place_is_free_after(reading));
                let answer = Answer { admitted: false, retry_after, remaining: 0, reset_after: 0 };
                Outcome { answer, by: By::NoPlaceDenied }
            }
            AtCap::Admit => {
                let answer = Answer { admitted: true, retry_after: None, remaining: limit, reset_after: 0 };
                Outcome { answer, by: By::NoPlaceAdmitted }
            }
            AtCap::Share => Outcome { answer: self.shared.peek(self.rule, reading, cost)?, by: By::SharedQuota },
        })
    }

    /// How long until the first of the live keys has no live permit left.
    fn a_place_is_free_after(&self, reading: u64) -> u128 {
        let free_at = self.logs.values().filter_map(|log| log.all_free_at(self.rule, reading)).min();
        free_at.expect("without a live key there is a place") - u128::from(reading)
    }

    /// What the key would be told if it has a place.
    pub(crate) fn peek(&self, key: &K, reading: u64, cost: u32) -> Result<Answer, NeverPossible> {
        match self.logs.get(key) {
            Some(log) => log.peek(self.rule, reading, cost),
            None => Log::default().peek(self.rule, reading, cost),
        }
    }

    /// Says that the limiter has read its clock, and so may have reclaimed what had expired by then.
    pub(crate) fn has_seen(&mut self, reading: u64) {
        self.latest_reading = self.latest_reading.max(reading);
    }

    pub(crate) fn forget(&mut self, key: &K) -> Holds {
        self.earliest_certain = self.earliest_certain_reading();
        match self.logs.remove(key) {
            None => Holds::Nothing,
            Some(log) if log.is_live(self.rule, self.latest_reading) => Holds::Something,
            Some(_) => Holds::SomethingExpired,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.earliest_certain = self.earliest_certain_reading();
        self.logs.clear();
        self.shared = Log::default();
    }

    pub(crate) fn live_keys(&self, reading: u64) -> usize {
        self.logs.values().filter(|log| log.is_live(self.rule, reading)).count()
    }

    /// Keys granted a permit and not forgotten since, live or not.
    pub(crate) fn keys_ever_held(&self) -> usize {
        self.logs.len()
    }

    pub(crate) fn refused_at_cap(&self) -> u64 {
        self.refused_at_cap
    }

    /// Requests admitted and denied.
    pub(crate) fn decisions(&self) -> (u64, u64) {
        (self.admitted, self.denied)
    }

    /// The earliest reading at which nothing is live that had expired by the latest reading.
    ///
    /// A limiter may reclaim whatever has expired. A clock that goes back further than this makes expired permits live
    /// again, and what is answered then depends on whether they had been reclaimed.
    pub(crate) fn earliest_certain_reading(&self) -> u64 {
        let stamps = self.logs.values().chain([&self.shared]).flat_map(|log| &log.stamps);
        let expiries = stamps.map(|stamp| stamp.saturating_add(self.rule.window));
        expiries.filter(|&expiry| expiry <= self.latest_reading).fold(self.earliest_certain, u64::max)
    }
}
