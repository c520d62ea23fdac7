//! The stamps of one key, and those of all keys.

use std::collections::HashSet;

use super::{Answer, Granted, NeverPossible, Rule};

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

    /// The log of a key whose next permits are put off to `time`: what is live at the base still is then, for a nanosecond.
    fn put_off_to(&self, rule: Rule, base: Moment, time: u64) -> Self {
        let oldest = (time + 1).saturating_sub(rule.window);
        let is_live = |stamp| base.time - stamp < rule.window;
        let put_off = |&stamp: &u64| if is_live(stamp) { stamp.max(oldest) } else { stamp };
        Self { stamps: self.stamps.iter().map(put_off).collect() }
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

    /// What a key had when it was granted these permits at this reading. `None` if it can't have been.
    pub(super) fn before(&self, log: &Log, rule: Rule, latest: u64, granted: Granted, reading: u64) -> Option<Log> {
        let Granted { stamp, cost, remaining } = granted;
        let base = log.base(reading);
        let put_off = stamp > base.time && self.may_put_off_to(stamp, rule, latest);
        let fits = log.peek(rule, base, cost).is_ok_and(|answer| answer.admitted);
        let (known, unknown) = match log.newest() {
            None => (None, put_off || stamp == reading && reading >= self.horizon),
            Some(newest) => {
                let known = if put_off { log.put_off_to(rule, base, stamp) } else { log.clone() };
                let known = (fits && (put_off || stamp == base.time)).then_some(known);
                let expired = stamp.saturating_sub(newest) >= rule.window;
                (known, put_off && expired && !log.is_live(rule, latest))
            }
        };
        let is_right = |log: &Log| {
            let after = log.clone().acquire_at(rule, Moment { reading, time: stamp }, cost);
            after.is_ok_and(|after| after.admitted && after.remaining == remaining)
        };
        known.into_iter().chain(unknown.then(Log::default)).find(is_right)
    }

    pub(super) fn note(&mut self, log: &Log, stamp: u64, reading: u64) {
        self.stamps.insert(stamp);
        if stamp > log.base(reading).time {
            self.horizon = stamp;
        }
    }
}
