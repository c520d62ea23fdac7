//! What keys were granted by the time that has really passed: every step of the clock forward, and
//! none back.

use std::collections::HashMap;

use crate::oracle::Rule;

#[derive(Debug, Default)]
pub(super) struct Lived {
    time: u128,
    /// When each key was granted how many permits.
    granted: HashMap<u32, Vec<(u128, u32)>>,
}

impl Lived {
    pub(super) fn step(&mut self, from: u64, to: u64) {
        self.time += u128::from(to.saturating_sub(from));
    }

    pub(super) fn forget(&mut self, key: u32) {
        self.granted.remove(&key);
    }

    pub(super) fn clear(&mut self) {
        self.granted.clear();
    }

    /// Whatever a clock shows that was set back, no more may be granted for it.
    pub(super) fn grant(&mut self, key: u32, cost: u32, rules: &[Rule]) -> Result<(), String> {
        let granted = self.granted.entry(key).or_default();
        granted.push((self.time, cost));
        for rule in rules {
            let live = granted.iter().filter(|&&(then, _)| self.time - then < u128::from(rule.window));
            let live: u32 = live.map(|&(_, cost)| cost).sum();
            if live > rule.limit {
                return Err(format!("{live} permits in one window of the time that has passed, under {rule:?}"));
            }
        }
        Ok(())
    }
}
