//! The oracle: a limiter with a penalty and lists, worked out the naive way. It knows no type of
//! the library's.
//!
//! A key is three lists of times that are never pruned, of which that of the blocks has their numbers
//! and ends, too. Whether a request would be admitted at a time is one function, and how long a denied one has to wait is found by asking that function at
//! each moment at which anything expires.

use std::collections::{HashMap, HashSet};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) limit: usize,
    pub(crate) window: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Penalty {
    pub(crate) denials: usize,
    pub(crate) within: u64,
    pub(crate) blocked_for: u64,
    /// By what each block is multiplied, the longest, and the quiet time.
    pub(crate) growth: Option<(u64, u64, u64)>,
}

impl Penalty {
    /// How long the block with this number lasts.
    fn length(&self, number: u8) -> u64 {
        let Some((factor, longest, _)) = self.growth else { return self.blocked_for };
        let mut length = u128::from(self.blocked_for);
        for _ in 1..number {
            length = u128::from(longest).min(length * u128::from(factor));
        }
        u64::try_from(length).expect("no longer than the longest")
    }
}

/// A block: its number, and when it begins and ends.
#[derive(Debug, Clone, Copy)]
struct Block {
    number: u8,
    start: u64,
    end: u64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Key {
    granted: Vec<u64>,
    denied: Vec<u64>,
    blocks: Vec<Block>,
}

impl Key {
    pub(crate) fn fits(&self, rules: &[Rule], then: u64, cost: usize) -> bool {
        rules.iter().all(|rule| live(&self.granted, then, rule.window) + cost <= rule.limit)
    }

    /// The number of the block that goes on at that time.
    pub(crate) fn block(&self, then: u64) -> Option<u8> {
        self.blocks.iter().find(|block| block.start <= then && then < block.end).map(|block| block.number)
    }

    /// When anything expires.
    fn moments(&self, rules: &[Rule]) -> impl Iterator<Item = u64> {
        let ends = self.granted.iter().flat_map(|stamp| rules.iter().map(move |rule| stamp + rule.window));
        ends.chain(self.blocks.iter().map(|block| block.end))
    }

    /// How long until the first time at which nothing is in the way.
    pub(crate) fn wait(&self, rules: &[Rule], now: u64, cost: usize) -> u64 {
        let is_free = |then| self.fits(rules, then, cost) && self.block(then).is_none();
        let free = self.moments(rules).filter(|&then| then > now && is_free(then));
        free.min().expect("everything expires") - now
    }

    pub(crate) fn grant(&mut self, now: u64, cost: usize) {
        self.granted.extend(std::iter::repeat_n(now, cost));
    }

    /// Notes that the quota denied a request. Whether a block begins.
    pub(crate) fn deny(&mut self, now: u64, penalty: Penalty) -> bool {
        let begins = live(&self.denied, now, penalty.within) + 1 >= penalty.denials;
        if begins {
            let quiet_for = penalty.growth.map_or(0, |(.., quiet_for)| quiet_for);
            let last = self.blocks.iter().max_by_key(|block| block.end);
            let number = last.filter(|last| now - last.end < quiet_for).map_or(1, |last| last.number.saturating_add(1));
            self.blocks.push(Block { number, start: now, end: now + penalty.length(number) });
        } else {
            self.denied.push(now)
        }
        begins
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    Quota,
    /// With the number of the block.
    Penalty(u8),
    DenyList,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Charged,
    Uncharged,
    /// And how long to wait, if any wait helps.
    Denied(Why, Option<u64>),
}

/// What remains of each rule, how long until more does, and how long until everything does, if
/// ever.
pub(crate) type Numbers = Vec<(usize, Option<u64>, Option<u64>)>;

#[derive(Debug)]
pub(crate) struct Oracle {
    rules: Vec<Rule>,
    penalty: Penalty,
    list_cap: usize,
    keys: HashMap<u32, Key>,
    pub(crate) allowed: HashSet<u32>,
    pub(crate) barred: HashSet<u32>,
    pub(crate) penalties: u64,
}

fn live(stamps: &[u64], now: u64, window: u64) -> usize {
    stamps.iter().filter(|&&stamp| now < stamp + window).count()
}

impl Oracle {
    pub(crate) fn new(rules: &[Rule], penalty: Penalty, list_cap: usize) -> Self {
        let (keys, allowed, barred) = (HashMap::new(), HashSet::new(), HashSet::new());
        Self { rules: rules.to_vec(), penalty, list_cap, keys, allowed, barred, penalties: 0 }
    }

    pub(crate) fn limit(&self) -> usize {
        self.rules.iter().map(|rule| rule.limit).min().expect("a rule")
    }

    /// Whether a request of this cost is decided: it can be granted, or a list decides.
    pub(crate) fn has_answer(&self, name: u32, cost: usize) -> bool {
        cost <= self.limit() || self.allowed.contains(&name) || self.barred.contains(&name)
    }

    fn look(&self, name: u32, now: u64, cost: usize) -> Answer {
        let key = self.keys.get(&name).cloned().unwrap_or_default();
        let wait = || key.wait(&self.rules, now, cost);
        if cost == 0 {
            Answer::Charged
        } else if self.barred.contains(&name) {
            Answer::Denied(Why::DenyList, None)
        } else if self.allowed.contains(&name) {
            Answer::Uncharged
        } else if let Some(number) = key.block(now) {
            Answer::Denied(Why::Penalty(number), Some(wait()))
        } else if key.fits(&self.rules, now, cost) {
            Answer::Charged
        } else {
            Answer::Denied(Why::Quota, Some(wait()))
        }
    }

    pub(crate) fn peek(&self, name: u32, now: u64, cost: usize) -> (Answer, Numbers) {
        let answer = self.look(name, now, cost);
        (answer, self.numbers(name, now, cost))
    }

    pub(crate) fn acquire(&mut self, name: u32, now: u64, cost: usize) -> (Answer, Numbers) {
        let answer = match self.look(name, now, cost) {
            Answer::Charged => {
                self.keys.entry(name).or_default().grant(now, cost);
                Answer::Charged
            }
            Answer::Denied(Why::Quota, wait) => {
                if !self.keys.entry(name).or_default().deny(now, self.penalty) {
                    return (Answer::Denied(Why::Quota, wait), self.numbers(name, now, cost));
                }
                self.penalties += 1;
                self.look(name, now, cost)
            }
            other => other,
        };
        (answer, self.numbers(name, now, cost))
    }

    fn numbers(&self, name: u32, now: u64, cost: usize) -> Numbers {
        let numbers = |rule: &Rule| match cost {
            0 => self.numbers_by(rule, name, now, false),
            _ if self.barred.contains(&name) => (0, None, None),
            _ if self.allowed.contains(&name) => (rule.limit, Some(0), Some(0)),
            _ => self.numbers_by(rule, name, now, true),
        };
        self.rules.iter().map(numbers).collect()
    }

    /// What one rule leaves now; and the first of all moments at which anything expires when it
    /// leaves more, and all.
    fn numbers_by(&self, rule: &Rule, name: u32, now: u64, blocks: bool) -> (usize, Option<u64>, Option<u64>) {
        let key = self.keys.get(&name).cloned().unwrap_or_default();
        let left = |then: u64| match blocks && key.block(then).is_some() {
            true => 0,
            false => rule.limit - live(&key.granted, then, rule.window),
        };
        let moments = key.moments(std::slice::from_ref(rule));
        let moments: Vec<u64> = moments.filter(|&then| then > now).collect();
        let first = |is_so: &dyn Fn(u64) -> bool| {
            let first = moments.iter().copied().filter(|&then| is_so(then)).min();
            first.map_or(0, |then| then - now)
        };
        let is_all = left(now) == rule.limit;
        let next = if is_all { 0 } else { first(&|then| left(then) > left(now)) };
        let reset = if is_all { 0 } else { first(&|then| left(then) == rule.limit) };
        (left(now), Some(next), Some(reset))
    }

    pub(crate) fn forget(&mut self, name: u32) {
        self.keys.remove(&name);
    }

    pub(crate) fn clear(&mut self) {
        self.keys.clear();
    }

    /// Whether the key was new on the list; `None` where the lists are full.
    pub(crate) fn list(&mut self, name: u32, allow: bool) -> Option<bool> {
        let full = self.allowed.len() + self.barred.len() >= self.list_cap;
        let list = if allow { &mut self.allowed } else { &mut self.barred };
        if list.contains(&name) {
            return Some(false);
        }
        (!full).then(|| list.insert(name))
    }

    pub(crate) fn unlist(&mut self, name: u32) -> bool {
        self.allowed.remove(&name) | self.barred.remove(&name)
    }
}
