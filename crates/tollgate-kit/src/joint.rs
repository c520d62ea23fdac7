//! A naive account of each key of a joint limiter, by every algorithm, and of the places that live
//! keys take.

use std::collections::HashMap;
use std::time::Duration;

use tollgate::{Decision, DenialReason, Quota};

/// A quota, or several of them; times are in units.
#[derive(Debug, Clone)]
pub enum Spec {
    Log(Vec<(u32, u64)>),
    Bucket { capacity: u32, refill: u32, per: u64, start: u32 },
    LeakyBucket { capacity: u32, leak: u32, per: u64 },
    Queue { leak: u32, per: u64, max_delay: u64 },
    Fixed { limit: u32, window: u64, phase: Option<u64> },
    Counter { limit: u32, window: u64 },
    Steps { limit: u32, window: u64, resolution: u64 },
}

impl Spec {
    pub fn quotas(&self, unit: u64) -> Vec<Quota> {
        let time = |units: u64| Duration::from_nanos(units * unit);
        vec![match *self {
            Self::Log(ref quotas) => {
                return quotas.iter().map(|&(limit, window)| Quota::new(limit, time(window))).collect();
            }
            Self::Bucket { capacity, refill, per, start } => {
                Quota::token_bucket(capacity, refill, time(per)).starting_with(start)
            }
            Self::LeakyBucket { capacity, leak, per } => Quota::leaky_bucket(capacity, leak, time(per)),
            Self::Queue { leak, per, max_delay } => Quota::leaky_queue(leak, time(per), time(max_delay)),
            Self::Fixed { limit, window, phase: None } => Quota::fixed_window(limit, time(window)),
            Self::Fixed { limit, window, phase: Some(phase) } => {
                Quota::fixed_window(limit, time(window)).aligned(time(phase))
            }
            Self::Counter { limit, window } => Quota::sliding_counter(limit, time(window)),
            Self::Steps { limit, window, resolution } => Quota::quantised_log(limit, time(window), time(resolution)),
        }]
    }

    /// The most that a request may ask for.
    pub fn most(&self, unit: u64) -> u32 {
        self.quotas(unit).iter().map(Quota::limit).min().expect("a quota")
    }
}

/// One key: the grants, as times and permits; of a bucket and a queue, what it lacks or owes, as of
/// a time.
#[derive(Debug, Clone)]
struct Key {
    grants: Vec<(u64, u32)>,
    /// Of a bucket: what is missing; of a queue: when the next place leaves, from `as_of` on. In
    /// parts.
    lacks: i128,
    as_of: u64,
}

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
    specs: Vec<Spec>,
    cap: usize,
    admits: bool,
    unit: u64,
    keys: HashMap<(usize, u32), Key>,
}

/// Longer than anything matters.
const FAR: u64 = 1 << 50;

/// The first time from `from` on at which something holds that then goes on holding.
fn first(from: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (from, from + FAR);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

impl Model {
    pub fn new(specs: &[Spec], cap: usize, admits: bool, unit: u64) -> Self {
        Self { specs: specs.to_vec(), cap, admits, unit, keys: HashMap::new() }
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
        self.keys.iter().filter(|((dimension, _), key)| self.is_live(*dimension, key, now)).count()
    }

    fn new_key(&self, dimension: usize, now: u64) -> Key {
        let lacks = match self.specs[dimension] {
            Spec::Bucket { capacity, per, start, .. } => i128::from(capacity - start) * i128::from(per * self.unit),
            _ => 0,
        };
        Key { grants: vec![], lacks, as_of: now }
    }

    /// What is missing in a bucket, or how far ahead a queue's next place is, in parts.
    fn lacks(&self, dimension: usize, key: &Key, now: u64) -> i128 {
        let (Spec::Bucket { refill: rate, .. } | Spec::LeakyBucket { leak: rate, .. } | Spec::Queue { leak: rate, .. }) =
            self.specs[dimension]
        else {
            return 0;
        };
        (key.lacks - i128::from(now - key.as_of) * i128::from(rate)).max(0)
    }

    /// Whether the key is in any way different from one that was never seen.
    fn is_live(&self, dimension: usize, key: &Key, now: u64) -> bool {
        let time = |units: u64| units * self.unit;
        let newest = key.grants.last().map(|&(at, _)| at);
        match self.specs[dimension] {
            Spec::Log(ref quotas) => {
                let widest = quotas.iter().map(|&(_, window)| time(window)).max().expect("a quota");
                newest.is_some_and(|stamp| now < stamp + widest)
            }
            Spec::Bucket { capacity, start, .. } if start < capacity => true,
            Spec::Bucket { .. } | Spec::LeakyBucket { .. } | Spec::Queue { .. } => self.lacks(dimension, key, now) > 0,
            Spec::Fixed { window, phase: None, .. } => {
                key.grants.first().is_some_and(|&(at, _)| now < at + time(window))
            }
            Spec::Fixed { window, phase: Some(phase), .. } => {
                newest.is_some_and(|at| number(at, time(window), time(phase)) == number(now, time(window), time(phase)))
            }
            Spec::Counter { window, .. } => {
                newest.is_some_and(|at| number(at, time(window), 0) + 1 >= number(now, time(window), 0))
            }
            Spec::Steps { window, resolution, .. } => {
                newest.is_some_and(|at| now < at.next_multiple_of(time(resolution)) + time(window))
            }
        }
    }

    /// Whether the key admits the request at a time.
    fn fits(&self, dimension: usize, key: &Key, at: u64, cost: u32) -> bool {
        let time = |units: u64| units * self.unit;
        let permits = |counts: &dyn Fn(u64) -> bool| -> u32 {
            key.grants.iter().filter(|&&(at, _)| counts(at)).map(|&(_, permits)| permits).sum()
        };
        match self.specs[dimension] {
            Spec::Log(ref quotas) => {
                quotas.iter().all(|&(limit, window)| permits(&|stamp| at < stamp + time(window)) + cost <= limit)
            }
            Spec::Bucket { capacity, per, .. } | Spec::LeakyBucket { capacity, per, .. } => {
                self.lacks(dimension, key, at) + i128::from(cost) * i128::from(time(per))
                    <= i128::from(capacity) * i128::from(time(per))
            }
            Spec::Queue { max_delay, .. } => self.delay(dimension, key, at) <= time(max_delay),
            Spec::Fixed { limit, .. } => {
                let counts = self.is_live(dimension, key, at);
                permits(&|_| counts) + cost <= limit
            }
            Spec::Counter { limit, window } => {
                let window = time(window);
                let now = number(at, window, 0);
                let current = permits(&|then| number(then, window, 0) == now);
                let previous = permits(&|then| number(then, window, 0) + 1 == now);
                let covered = window - at % window;
                u128::from(current + cost) * u128::from(window) + u128::from(previous) * u128::from(covered)
                    <= u128::from(limit) * u128::from(window)
            }
            Spec::Steps { limit, window, resolution } => {
                permits(&|then| at < then.next_multiple_of(time(resolution)) + time(window)) + cost <= limit
            }
        }
    }

    fn delay(&self, dimension: usize, key: &Key, now: u64) -> u64 {
        match self.specs[dimension] {
            Spec::Queue { leak, .. } => {
                let (ahead, leak) = (self.lacks(dimension, key, now), i128::from(leak));
                u64::try_from((ahead + leak - 1) / leak).expect("soon")
            }
            _ => 0,
        }
    }

    fn charge(&mut self, dimension: usize, number: u32, now: u64, cost: u32) {
        let old = self.keys.remove(&(dimension, number)).filter(|key| self.is_live(dimension, key, now));
        let mut key = old.unwrap_or_else(|| self.new_key(dimension, now));
        let per = match self.specs[dimension] {
            Spec::Bucket { per, .. } | Spec::LeakyBucket { per, .. } | Spec::Queue { per, .. } => per * self.unit,
            _ => 0,
        };
        key.lacks = self.lacks(dimension, &key, now) + i128::from(cost) * i128::from(per);
        key.as_of = now;
        key.grants.push((now, cost));
        self.keys.insert((dimension, number), key);
    }

    /// Decides a request.
    pub fn ask(&mut self, keys: &[Option<u32>], cost: u32, now: u64) -> Expected {
        let asked: Vec<(usize, u32)> = keys.iter().enumerate().filter_map(|(at, key)| Some((at, (*key)?))).collect();
        let (mut by, mut delay, mut new, mut without, mut opened) = (vec![], 0, 0, vec![], vec![]);
        let live = self.live(now);
        // In the order of dimensions a new key takes a place. After the first denial the quotas alone
        // are asked, and if they deny, they alone are named. The first request of a key that does not start with what it asks for begins its
        // account, if there is a place.
        for &(dimension, number) in &asked {
            let known = self.keys.get(&(dimension, number)).filter(|key| self.is_live(dimension, key, now)).cloned();
            let is_new = known.is_none();
            let key = known.unwrap_or_else(|| self.new_key(dimension, now));
            let fits = self.fits(dimension, &key, now, cost);
            if is_new && !fits {
                opened.push(((dimension, number), key.clone()));
            }
            if is_new && by.is_empty() {
                if live + new == self.cap {
                    without.push((dimension, number));
                    if !self.admits {
                        by.push((dimension, None));
                    }
                    continue;
                }
                new += 1;
            }
            if fits {
                delay = delay.max(self.delay(dimension, &key, now));
            } else {
                by.push((dimension, Some(first(now, |at| self.fits(dimension, &key, at, cost)) - now)));
            }
        }
        if by.iter().any(|(_, wait)| wait.is_some()) {
            by.retain(|(_, wait)| wait.is_some());
        }
        let opened = if by.is_empty() { vec![] } else { opened };
        for (number, key) in opened {
            if self.live(now) < self.cap {
                self.keys.insert(number, key);
            }
        }
        let ends = self.keys.iter().map(|((dimension, _), key)| first(now, |at| !self.is_live(*dimension, key, at)));
        let next_place = ends.filter(|&end| now < end && end < now + FAR).min().unwrap_or(u64::MAX) - now;
        if !by.is_empty() {
            return Expected::Denied { by, next_place };
        }
        let charged: Vec<_> = asked.iter().copied().filter(|key| !without.contains(key)).collect();
        for &(dimension, number) in &charged {
            self.charge(dimension, number, now, cost);
        }
        Expected::Admitted { delay, is_counted: !charged.is_empty() }
    }
}

/// Which window a time lies in, counted from the one that begins with the phase.
fn number(at: u64, window: u64, phase: u64) -> i128 {
    (i128::from(at) - i128::from(phase)).div_euclid(window.into())
}
