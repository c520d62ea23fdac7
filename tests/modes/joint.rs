//! A limiter of several dimensions with penalties, lists and keys with quotas of their own, the
//! same one in shadow mode, and an oracle that is worked out the naive way: the same operations on
//! one clock.

mod compared;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use proptest::prelude::*;
use tollgate::{Decision, DenialReason, JointError, JointLimiter, Quota};

use tollgate_kit::clocks::CountedClock;

use crate::naive::{self, Key, Rule};
use crate::penalties::{of_library, penalties};

const DIMENSIONS: usize = 3;
const WINDOWS: [u64; DIMENSIONS] = [10, 35, 100];
/// So many keys has each dimension.
const KEYS: u32 = 3;

type Keys = [Option<u32>; DIMENSIONS];
type Name = (usize, u32);

/// What a request is told.
#[derive(Debug, Clone, PartialEq)]
enum Told {
    Charged,
    Uncharged,
    /// By the lists, in these dimensions.
    Barred(Vec<usize>),
    /// What is in the way in each dimension: the number of the block, if it is one, and how long to wait
    /// for it.
    Denied([Option<(Option<u8>, u64)>; DIMENSIONS]),
}

#[derive(Debug)]
struct Oracle {
    limits: [usize; DIMENSIONS],
    own: HashMap<Name, usize>,
    penalties: [Option<naive::Penalty>; DIMENSIONS],
    keys: HashMap<Name, Key>,
    allowed: HashSet<Name>,
    barred: HashSet<Name>,
    begun: u64,
}

fn named(keys: &Keys) -> impl Iterator<Item = Name> {
    keys.iter().enumerate().filter_map(|(dimension, key)| Some((dimension, (*key)?)))
}

impl Oracle {
    fn limit(&self, name: Name) -> usize {
        self.own.get(&name).copied().unwrap_or(self.limits[name.0])
    }

    fn asked(&self, keys: &Keys) -> Vec<Name> {
        named(keys).filter(|name| !self.allowed.contains(name)).collect()
    }

    /// What is in the way of this key, and the first time after now at which nothing is.
    fn in_the_way(&self, name: Name, now: u64, cost: usize) -> Option<(Option<u8>, u64)> {
        let key = self.keys.get(&name).cloned().unwrap_or_default();
        let rules = [Rule { limit: self.limit(name), window: WINDOWS[name.0] }];
        let block = key.block(now);
        let is_in_the_way = block.is_some() || !key.fits(&rules, now, cost);
        is_in_the_way.then(|| (block, key.wait(&rules, now, cost)))
    }

    fn look(&self, keys: &Keys, now: u64, cost: usize) -> Told {
        if cost == 0 {
            return Told::Charged;
        }
        let barred: Vec<usize> = named(keys).filter(|name| self.barred.contains(name)).map(|(at, _)| at).collect();
        if !barred.is_empty() {
            return Told::Barred(barred);
        }
        let asked = self.asked(keys);
        if asked.is_empty() {
            return Told::Uncharged;
        }
        let mut ways = [None; DIMENSIONS];
        asked.iter().for_each(|&name| ways[name.0] = self.in_the_way(name, now, cost));
        if ways.iter().all(Option::is_none) { Told::Charged } else { Told::Denied(ways) }
    }

    fn acquire(&mut self, keys: &Keys, now: u64, cost: usize) -> Told {
        let told = self.look(keys, now, cost);
        match &told {
            Told::Charged => {
                for name in self.asked(keys) {
                    self.keys.entry(name).or_default().grant(now, cost);
                }
            }
            Told::Denied(ways) if !ways.iter().flatten().any(|(block, _)| block.is_some()) => {
                for name in self.asked(keys).into_iter().filter(|name| ways[name.0].is_some()) {
                    let Some(penalty) = self.penalties[name.0] else { continue };
                    self.begun += u64::from(self.keys.entry(name).or_default().deny(now, penalty));
                }
                return self.look(keys, now, cost);
            }
            _ => {}
        }
        told
    }
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Acquire {
        keys: Keys,
        cost: usize,
    },
    /// By the method for many requests.
    AcquireMany([Keys; 3]),
    Reserve {
        keys: Keys,
        keep: bool,
    },
    Peek {
        keys: Keys,
        cost: usize,
    },
    Allow(Keys),
    Deny(Keys),
    Unlist(Keys),
    Forget(Keys),
    OwnLimit {
        name: Name,
        limit: usize,
    },
    Clear,
    Advance(u64),
    AdvanceToRetry {
        keys: Keys,
        cost: usize,
        exactly: bool,
    },
}

fn keys() -> impl Strategy<Value = Keys> {
    prop::array::uniform3(prop::option::weighted(0.8, 0..KEYS))
}

fn few_keys() -> impl Strategy<Value = Keys> {
    prop::array::uniform3(prop::option::weighted(0.3, 0..KEYS))
}

fn op() -> impl Strategy<Value = Op> {
    let cost = || prop_oneof![6 => Just(1_usize), 1 => Just(0), 2 => 1_usize..4];
    prop_oneof![
        24 => (keys(), cost()).prop_map(|(keys, cost)| Op::Acquire { keys, cost }),
        4 => [keys(), keys(), keys()].prop_map(Op::AcquireMany),
        3 => (keys(), any::<bool>()).prop_map(|(keys, keep)| Op::Reserve { keys, keep }),
        6 => (keys(), cost()).prop_map(|(keys, cost)| Op::Peek { keys, cost }),
        1 => few_keys().prop_map(Op::Allow),
        1 => few_keys().prop_map(Op::Deny),
        3 => keys().prop_map(Op::Unlist),
        1 => few_keys().prop_map(Op::Forget),
        1 => ((0..DIMENSIONS, 0..KEYS), 1_usize..5).prop_map(|(name, limit)| Op::OwnLimit { name, limit }),
        1 => Just(Op::Clear),
        6 => (0_u64..40).prop_map(Op::Advance),
        4 => (keys(), cost(), any::<bool>()).prop_map(|(keys, cost, exactly)| Op::AdvanceToRetry { keys, cost, exactly }),
    ]
}

type Limiter = JointLimiter<[u32], CountedClock>;
