//! One key, by every algorithm.

use tollgate::Quota;

use crate::oracle::meter::{Meter, Naive};
use crate::oracle::{Log, Rule, least};

/// What decides a key: one or more logs, or another algorithm.
#[derive(Debug, Clone)]
pub enum Quotas {
    Logs(Vec<Rule>),
    Meter(Meter),
}

impl Quotas {
    pub fn log(limit: u32, window: u64) -> Self {
        Self::Logs(vec![Rule { limit, window }])
    }

    pub fn quotas(&self) -> Vec<Quota> {
        match self {
            Self::Logs(rules) => rules.iter().map(|rule| rule.quota()).collect(),
            Self::Meter(meter) => vec![meter.quota()],
        }
    }

    /// The most that a request may ask for.
    pub fn most(&self) -> u32 {
        match self {
            Self::Logs(rules) => least(rules),
            Self::Meter(meter) => meter.limit(),
        }
    }

    /// A key that is first seen at this time, where windows and steps begin at multiples of their
    /// length.
    pub fn key(&self, time: u64) -> Key {
        match self {
            Self::Logs(rules) => Key::Logs(rules.clone(), Log::default()),
            &Self::Meter(meter) => Key::Meter(Naive::new(meter, 0, time)),
        }
    }
}

/// What a key was granted.
#[derive(Debug, Clone)]
pub enum Key {
    Logs(Vec<Rule>, Log),
    Meter(Naive),
}

/// Longer than anything matters.
pub const FAR: u64 = 1 << 60;

/// The first time from `from` on at which something holds that then goes on holding, found by
/// halving; [`FAR`] later if it never does.
pub fn first(from: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (from, if holds(from) { from } else { from + FAR });
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

impl Key {
    pub fn admits(&self, time: u64, cost: u32) -> bool {
        match self {
            Self::Logs(rules, log) => log.admits(rules, time, cost),
            Self::Meter(naive) => naive.admits(time, cost),
        }
    }

    /// Charges what was admitted.
    pub fn grant(&mut self, time: u64, cost: u32) {
        match self {
            Self::Logs(_, log) => log.grant(time, cost),
            Self::Meter(naive) => naive.grant(time, cost),
        }
    }

    /// How long a request would have to wait until it is admitted, if nobody else came.
    pub fn wait(&self, now: u64, cost: u32) -> u64 {
        first(now, |time| self.admits(time, cost)) - now
    }

    /// How long a request that is admitted is delayed.
    pub fn delay(&self, now: u64) -> u64 {
        match self {
            Self::Logs(..) => 0,
            Self::Meter(naive) => u64::try_from(naive.delay(now)).expect("soon"),
        }
    }

    /// Whether the key is in any way different from one that was never seen.
    pub fn is_live(&self, time: u64) -> bool {
        match self {
            Self::Logs(rules, log) => log.is_live(rules, time),
            Self::Meter(naive) => !naive.is_as_new(time),
        }
    }
}
