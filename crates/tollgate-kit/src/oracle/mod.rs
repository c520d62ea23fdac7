//! The oracle: the answers that the limiter must give, computed naively.
//!
//! A key is a `Vec` of stamps that is never pruned, and each answer is computed from all of them. A
//! key has one or more rules (a limit and a window each), and a request is admitted if it fits
//! every rule. There are no rings, positions, generations or hashes here. The file shares no code
//! and no type with the library, so no mistake of the library can be repeated here.
//!
//! # A clock that was set back
//! A reading *lags* if it is before the latest reading that the limiter has used. The limiter may
//! no longer know the permits that had expired by then. So it is allowed these answers, and no
//! others:
//!
//! - A key is admitted or denied at its *base*: the reading, or its own newest stamp if that is
//!   later. But a key whose permits had all expired by the latest reading may be *unknown*. It is
//!   then treated as a new key.
//! - A permit's stamp is the base. An unknown key may begin at a later time, but not before the end
//!   of its earlier permits.
//! - Under a cap, an unknown key may find a place once the keys that are live at the latest reading
//!   leave a place. It must find one once the keys that are live at this reading do.
//!
//! None of these times is later than the latest reading. So a reading that does not lag has exactly
//! one answer.
//!
//! Times are nanoseconds; answers are in `u128` so that nothing here can overflow.

#[cfg(feature = "calendar")]
pub mod calendar;
mod log;
pub mod meter;

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::RangeInclusive;

use log::Moment;
pub use log::{Answer, Granted, Left, Log, NeverPossible, Rule, least, longest};

/// All that is left of a key without permits.
fn all_left(rules: &[Rule]) -> [Option<Left>; 8] {
    let all = |rule: &Rule| Left { limit: rule.limit, remaining: rule.limit, next_after: 0, reset_after: 0 };
    core::array::from_fn(|place| rules.get(place).map(all))
}

/// What a new key is told when as many keys are live as may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtCap {
    Deny,
    Admit,
}

/// An answer, and what it was decided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    pub answer: Answer,
    pub by: By,
}

/// What a request was decided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The key's own permits.
    OwnQuota,
    /// The key's own permits, of which none are charged.
    Peek,
    /// No place, and so denied. `retry_after` is then how long until a place is free, the most that
    /// may be advised.
    NoPlaceDenied,
    /// No place, and so admitted without charge.
    NoPlaceAdmitted,
}

/// Whether a limiter holds anything for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    Something,
    Nothing,
    /// Expired permits only, which a limiter may have reclaimed or not.
    SomethingExpired,
}

/// Whether a key is decided on permits of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It is live, or there is room for it.
    Certain,
    /// Left to a limiter whose clock lags.
    Either,
    None,
}

/// What was seen of a decision where the oracle leaves something to the limiter.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// Whether it was taken on permits of the key's own.
    pub placed: bool,
    /// What was granted, where the stamp may be another than the base.
    pub granted: Option<Granted>,
}

/// A limiter of many keys.
#[derive(Debug, Clone)]
pub struct Oracle<K> {
    rules: Vec<Rule>,
    cap: usize,
    at_cap: AtCap,
    logs: HashMap<K, Log>,
    latest_reading: u64,
    refused_at_cap: u64,
    admitted: u64,
    denied: u64,
}

impl<K: Hash + Eq + Clone> Oracle<K> {
    pub fn new(rules: &[Rule]) -> Self {
        Self::with_cap(rules, usize::MAX, AtCap::Deny)
    }

    pub fn with_cap(rules: &[Rule], cap: usize, at_cap: AtCap) -> Self {
        Self {
            rules: rules.to_vec(),
            cap,
            at_cap,
            logs: HashMap::new(),
            latest_reading: 0,
            refused_at_cap: 0,
            admitted: 0,
            denied: 0,
        }
    }

    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Says that the limiter has read its clock, and so may have reclaimed what had expired by
    /// then.
    pub fn has_seen(&mut self, reading: u64) {
        self.latest_reading = self.latest_reading.max(reading);
    }

    pub fn lags(&self, reading: u64) -> bool {
        reading < self.latest_reading
    }

    /// Whether a request of this key is decided on permits of its own.
    pub fn place(&self, key: &K, reading: u64) -> Place {
        let others = |reading| {
            let live = self.logs.iter().filter(|&(other, log)| other != key && log.is_live(&self.rules, reading));
            live.count()
        };
        // Not to count them all where there are fewer than places.
        if self.logs.len() < self.cap || !self.may_be_unknown(key) || others(reading) < self.cap {
            Place::Certain
        } else if others(self.latest_reading) >= self.cap {
            Place::None
        } else {
            Place::Either
        }
    }

    /// Whether nothing need be known of the key: all of its permits had expired by the latest
    /// reading.
    pub fn may_be_unknown(&self, key: &K) -> bool {
        !self.logs.get(key).is_some_and(|log| log.is_live(&self.rules, self.latest_reading))
    }

    /// Whether these permits may have been granted at this reading.
    pub fn may_grant(&self, key: &K, granted: Granted, reading: u64) -> bool {
        let nothing = Log::default();
        let log = self.logs.get(key).unwrap_or(&nothing);
        log.before(&self.rules, self.latest_reading, granted, reading).is_some()
    }

    pub fn acquire(&mut self, key: &K, reading: u64, cost: u32, seen: Seen) -> Result<Outcome, NeverPossible> {
        if cost == 0 || cost > least(&self.rules) {
            return self.peek(key, reading, cost).map(|answer| Outcome { answer, by: By::Peek });
        }
        let latest = self.latest_reading;
        let outcome = if seen.placed {
            let log = self.logs.entry(key.clone()).or_default();
            let answer = Self::charge(log, &self.rules, latest, reading, cost, seen.granted)?;
            Outcome { answer, by: By::OwnQuota }
        } else {
            self.refused_at_cap += 1;
            self.peek_without_a_place(key, reading)
        };
        if outcome.answer.admitted {
            self.admitted += 1;
        } else {
            self.denied += 1;
        }
        Ok(outcome)
    }

    fn charge(
        log: &mut Log,
        rules: &[Rule],
        latest: u64,
        reading: u64,
        cost: u32,
        granted: Option<Granted>,
    ) -> Result<Answer, NeverPossible> {
        let mut time = log.base(reading).time;
        let mut before = log.clone();
        if let Some(granted) = granted {
            time = granted.stamp;
            before = log.before(rules, latest, granted, reading).expect("the driver has asked whether it may be");
        }
        let answer = before.acquire_at(rules, Moment { reading, time }, cost)?;
        if answer.admitted {
            *log = before;
        }
        Ok(answer)
    }

    /// What the policy would answer a key without a place.
    pub fn peek_without_a_place(&self, key: &K, reading: u64) -> Outcome {
        let left = all_left(&self.rules);
        match self.at_cap {
            AtCap::Deny => {
                let wait = self.a_place_is_free_after(key, reading);
                let none = |left: Left| Left { remaining: 0, next_after: wait, reset_after: wait, ..left };
                let left = left.map(|left| left.map(none));
                let answer = Answer { admitted: false, retry_after: Some(wait), in_the_way: 1, left };
                Outcome { answer, by: By::NoPlaceDenied }
            }
            AtCap::Admit => {
                let answer = Answer { admitted: true, retry_after: None, in_the_way: 0, left };
                Outcome { answer, by: By::NoPlaceAdmitted }
            }
        }
    }

    /// How long until the first of the keys that hold the places has no live permit left. Where
    /// more keys than places are live, because the clock lags, those that stay longest may hold
    /// them.
    fn a_place_is_free_after(&self, key: &K, reading: u64) -> u128 {
        let others = self.logs.iter().filter(|&(other, _)| other != key).map(|(_, log)| log);
        let mut free_at: Vec<u128> =
            others.filter_map(|log| log.all_free_at(&self.rules, log.base(reading).time)).collect();
        free_at.sort_unstable();
        free_at[free_at.len() - self.cap] - u128::from(reading)
    }

    /// What the key would be told if it has a place and is known.
    pub fn peek(&self, key: &K, reading: u64, cost: u32) -> Result<Answer, NeverPossible> {
        match self.logs.get(key) {
            Some(log) => log.peek(&self.rules, log.base(reading), cost),
            None => self.peek_unknown(cost),
        }
    }

    /// What a key is told that has no permits.
    pub fn peek_unknown(&self, cost: u32) -> Result<Answer, NeverPossible> {
        Log::default().peek(&self.rules, Moment { reading: 0, time: 0 }, cost)
    }

    pub fn forget(&mut self, key: &K) -> Holds {
        match self.logs.remove(key) {
            None => Holds::Nothing,
            Some(log) if log.is_live(&self.rules, self.latest_reading) => Holds::Something,
            Some(_) => Holds::SomethingExpired,
        }
    }

    pub fn clear(&mut self) {
        self.logs.clear();
    }

    /// How many keys have a live permit: at least those that do at the latest reading, at most
    /// those that do at this one.
    pub fn live_keys(&self, reading: u64) -> RangeInclusive<usize> {
        let live_at = |reading| self.logs.values().filter(|log| log.is_live(&self.rules, reading)).count();
        live_at(self.latest_reading)..=live_at(reading)
    }

    /// Keys granted a permit and not forgotten since, live or not.
    pub fn keys_ever_held(&self) -> usize {
        self.logs.len()
    }

    pub fn refused_at_cap(&self) -> u64 {
        self.refused_at_cap
    }

    /// Requests admitted and denied.
    pub fn decisions(&self) -> (u64, u64) {
        (self.admitted, self.denied)
    }
}
