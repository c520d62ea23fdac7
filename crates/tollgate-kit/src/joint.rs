//! A naive account of each key of a joint limiter, by every algorithm, and of the places that live
//! keys take.

use std::collections::HashMap;
use std::time::Duration;

use tollgate::{Decision, DenialReason};

use crate::key::{FAR, Key, Quotas, first};

/// What a request is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    Admitted { delay: u64, is_counted: bool },
    Denied { violated: Vec<usize>, dimension: usize, for_a_place: bool, wait: u64 },
}

impl From<Decision> for Told {
    fn from(decision: Decision) -> Self {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).expect("soon");
        match decision {
            Decision::Admitted(admission) => {
                Self::Admitted { delay: nanos(admission.delay()), is_counted: admission.is_counted() }
            }
            Decision::Denied(denial) => Self::Denied {
                violated: denial.violated().collect(),
                dimension: denial.dimension(),
                for_a_place: denial.reason() == DenialReason::KeyCap,
                wait: nanos(denial.retry_after()),
            },
        }
    }
}

/// What it may be told.
#[derive(Debug)]
pub enum Expected {
    Admitted {
        delay: u64,
        is_counted: bool,
    },
    Denied {
        /// By dimension: the wait by a quota, or none for a place.
        by: Vec<(usize, Option<u64>)>,
        /// The earliest time at which a key that is live now is not live any more.
        next_place: u64,
    },
}

impl Expected {
    pub fn allows(&self, told: &Told) -> bool {
        match (self, told) {
            (&Self::Admitted { delay, is_counted }, said) => *said == Told::Admitted { delay, is_counted },
            (Self::Denied { by, next_place }, Told::Denied { violated, dimension, for_a_place, wait }) => {
                let longest = by.iter().filter_map(|&(_, wait)| wait).max().unwrap_or(0);
                let right_wait = if *for_a_place {
                    // The earliest moment at which there may be a place: not now, and not after
                    // there is one.
                    *wait >= longest.max(1) && *wait <= *next_place
                } else {
                    *wait == longest
                };
                let named = by.iter().find(|(at, _)| at == dimension);
                right_wait
                    && named.is_some_and(|(_, by)| if *for_a_place { by.is_none() } else { *by == Some(longest) })
                    && by.iter().map(|&(at, _)| at).eq(violated.iter().copied())
            }
            _ => false,
        }
    }
}

pub struct Model {
    dimensions: Vec<Quotas>,
    cap: usize,
    admits: bool,
    keys: HashMap<(usize, u32), Key>,
}

impl Model {
    pub fn new(dimensions: &[Quotas], cap: usize, admits: bool) -> Self {
        Self { dimensions: dimensions.to_vec(), cap, admits, keys: HashMap::new() }
    }

    pub fn forget(&mut self, keys: &[Option<u32>]) {
        for (dimension, key) in keys.iter().enumerate() {
            key.and_then(|key| self.keys.remove(&(dimension, key)));
        }
    }

    pub fn clear(&mut self) {
        self.keys.clear();
    }

    /// How many keys are live.
    pub fn live(&self, now: u64) -> usize {
        self.keys.values().filter(|key| key.is_live(now)).count()
    }

    /// The key, if it is live, or a new one; and whether it is new.
    fn key(&self, (dimension, number): (usize, u32), now: u64) -> (Key, bool) {
        let known = self.keys.get(&(dimension, number)).filter(|key| key.is_live(now));
        known.map_or_else(|| (self.dimensions[dimension].key(now), true), |key| (key.clone(), false))
    }

    /// Decides a request.
    pub fn ask(&mut self, keys: &[Option<u32>], cost: u32, now: u64) -> Expected {
        let asked: Vec<(usize, u32)> = keys.iter().enumerate().filter_map(|(at, key)| Some((at, (*key)?))).collect();
        let (mut by, mut delay, mut new, mut charged, mut opened) = (vec![], 0, 0, vec![], vec![]);
        let live = self.live(now);
        // In the order of dimensions a new key takes a place. After the first denial the quotas alone
        // are asked, and if they deny, they alone are named. The first request of a key that does not
        // start with what it asks for begins its account, if there is a place.
        for &name in &asked {
            let (dimension, _) = name;
            let (key, is_new) = self.key(name, now);
            let fits = key.admits(now, cost);
            if is_new && !fits {
                opened.push((name, key.clone()));
            }
            if is_new && by.is_empty() {
                if live + new == self.cap {
                    if !self.admits {
                        by.push((dimension, None));
                    }
                    continue;
                }
                new += 1;
            }
            if fits {
                delay = delay.max(key.delay(now));
            } else {
                by.push((dimension, Some(key.wait(now, cost))));
            }
            charged.push((name, key));
        }
        if by.iter().any(|(_, wait)| wait.is_some()) {
            by.retain(|(_, wait)| wait.is_some());
        }
        let opened = if by.is_empty() { vec![] } else { opened };
        for (name, key) in opened {
            if self.live(now) < self.cap {
                self.keys.insert(name, key);
            }
        }
        let ends = self.keys.values().map(|key| first(now, |at| !key.is_live(at)));
        let next_place = ends.filter(|&end| now < end && end < now + FAR).min().unwrap_or(u64::MAX) - now;
        if !by.is_empty() {
            return Expected::Denied { by, next_place };
        }
        let is_counted = !charged.is_empty();
        for (name, mut key) in charged {
            key.grant(now, cost);
            self.keys.insert(name, key);
        }
        Expected::Admitted { delay, is_counted }
    }
}
