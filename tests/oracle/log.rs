//! The stamps of one key, and those of all keys.

use std::collections::HashSet;

use super::{Answer, NeverPossible, Rule};

/// A reading, from which waits are told, and the time that it is taken for, by which permits are live.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) reading: u64,
    pub(super) time: u64,
}

/// The stamps of one key (or of a limiter without keys): every permit ever granted, in no order that matters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    stamps: Vec<u64>,
}

impl Log {
    fn newest(&self) -> Option<u64> {
        self.stamps.iter().copied().max()
    }

    /// A reading from before the newest stamp is taken for that stamp.
    pub(super) fn base(&self, reading: u64) -> Moment {
        Moment { reading, time: reading.max(self.newest().unwrap_or(0)) }
    }

    /// The stamps with `time - stamp < window`; the time is no earlier than any of them.
    fn live(&self, rule: Rule, time: u64) -> impl Iterator<Item = u64> {
        self.stamps.iter().copied().filter(move |&stamp| time - stamp < rule.window)
    }

    fn count_live(&self, rule: Rule, time: u64) -> u32 {
        u32::try_from(self.live(rule, time).count()).expect("a test grants fewer than 2^32 permits")
    }

    pub(super) fn is_live(&self, rule: Rule, reading: u64) -> bool {
        self.live(rule, self.base(reading).time).next().is_some()
    }

    /// When the last live permit is free again.
    pub(super) fn all_free_at(&self, rule: Rule, time: u64) -> Option<u128> {
        self.live(rule, time).map(|stamp| u128::from(stamp) + u128::from(rule.window)).max()
    }

    /// The first time at which a request that is denied now would succeed: tries each time at which a permit expires.
    fn succeeds_at(&self, rule: Rule, time: u64, cost: u32) -> u128 {
        let live: Vec<u128> = self.live(rule, time).map(u128::from).collect();
        let window = u128::from(rule.window);
        let fits = |time: u128| {
            let used = live.iter().filter(|&&stamp| time < stamp + window).count();
            used + usize::try_from(cost).expect("fits") <= usize::try_from(rule.limit).expect("fits")
        };
        let expiries = live.iter().map(|stamp| stamp + window);
        expiries.filter(|&time| fits(time)).min().expect("once everything has expired any cost up to the limit fits")
    }

    pub(super) fn peek(&self, rule: Rule, now: Moment, cost: u32) -> Result<Answer, NeverPossible> {
        if cost > rule.limit {
            return Err(NeverPossible);
        }
        let used = self.count_live(rule, now.time);
        let admitted = cost == 0 || used + cost <= rule.limit;
        let from_now = |time: u128| time - u128::from(now.reading);
        Ok(Answer {
            admitted,
            retry_after: (!admitted).then(|| from_now(self.succeeds_at(rule, now.time, cost))),
            remaining: rule.limit - used,
            reset_after: self.all_free_at(rule, now.time).map_or(0, from_now),
        })
    }

    pub(crate) fn acquire(&mut self, rule: Rule, reading: u64, cost: u32) -> Result<Answer, NeverPossible> {
        self.acquire_at(rule, self.base(reading), cost)
    }

    pub(super) fn acquire_at(&mut self, rule: Rule, now: Moment, cost: u32) -> Result<Answer, NeverPossible> {
        let answer = self.peek(rule, now, cost)?;
        if !answer.admitted {
            return Ok(answer);
        }
        self.stamps.extend((0..cost).map(|_| now.time));
        // The numbers are those after the decision.
        Ok(Answer { admitted: true, ..self.peek(rule, now, 0)? })
    }
}

/// What permits may be put off to: whatever was granted before, and to whom does not matter.
#[derive(Debug, Clone, Default)]
pub(super) struct Past {
    /// Every stamp, also of keys that were forgotten.
    stamps: HashSet<u64>,
    /// The latest time that a permit is known to have been put off to.
    horizon: u64,
}

impl Past {
    fn may_put_off_to(&self, time: u64, rule: Rule, latest: u64) -> bool {
        let ends_a_stamp = || time.checked_sub(rule.window).is_some_and(|stamp| self.stamps.contains(&stamp));
        time >= self.horizon && (self.stamps.contains(&time) || time <= latest && ends_a_stamp())
    }

    /// Whether permits that were granted at this reading may have this stamp.
    pub(super) fn may_stamp(&self, log: &Log, rule: Rule, latest: u64, stamp: u64, reading: u64, cost: u32) -> bool {
        let put_off = |from: u64| stamp > from && self.may_put_off_to(stamp, rule, latest);
        let Some(newest) = log.newest() else {
            return put_off(reading) || stamp == reading && reading >= self.horizon;
        };
        let base = log.base(reading);
        let fits = log.peek(rule, base, cost).is_ok_and(|answer| answer.admitted);
        let may_be_unknown = !log.is_live(rule, latest) && stamp.saturating_sub(newest) >= rule.window;
        stamp == base.time && fits || put_off(base.time) && (fits || may_be_unknown)
    }

    pub(super) fn note(&mut self, log: &Log, stamp: u64, reading: u64) {
        self.stamps.insert(stamp);
        if stamp > log.base(reading).time {
            self.horizon = stamp;
        }
    }
}
