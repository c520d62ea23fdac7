//! The stamps of one key, and those of all keys.

use std::collections::HashSet;

use super::{Answer, Granted, Left, NeverPossible, Rule, least, longest};

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

    /// Whether a permit is live under one of the rules.
    pub(super) fn is_live(&self, rules: &[Rule], reading: u64) -> bool {
        rules.iter().any(|&rule| self.live(rule, self.base(reading).time).next().is_some())
    }

    /// When the last live permit is free again, under all of the rules.
    pub(super) fn all_free_at(&self, rules: &[Rule], time: u64) -> Option<u128> {
        let ends = |&rule: &Rule| self.live(rule, time).map(move |stamp| u128::from(stamp) + u128::from(rule.window));
        rules.iter().flat_map(ends).max()
    }

    /// Whether `cost` more permits keep to the rule at `later`, if nothing else is granted after `time`.
    fn fits(&self, rule: Rule, time: u64, later: u128, cost: u32) -> bool {
        let live_then = |&stamp: &u64| later < u128::from(stamp) + u128::from(rule.window);
        let used = self.live(rule, time).filter(live_then).count();
        used + usize::try_from(cost).expect("fits") <= usize::try_from(rule.limit).expect("fits")
    }

    /// The first time at which a request that is denied now would succeed: tries each time at which a permit expires.
    fn succeeds_at(&self, rules: &[Rule], time: u64, cost: u32) -> u128 {
        let expiries = rules
            .iter()
            .flat_map(|&rule| self.live(rule, time).map(move |stamp| u128::from(stamp) + u128::from(rule.window)));
        let fit = |&later: &u128| rules.iter().all(|&rule| self.fits(rule, time, later, cost));
        expiries.filter(fit).min().expect("once everything has expired any cost up to the limit fits")
    }

    /// The rules that may be named as those that decide how long to wait until a request succeeds, one bit each: they are in the way
    /// to the last nanosecond, and no other rule implies them. Of rules that are the same, one is as good as the other.
    fn in_the_way(&self, rules: &[Rule], time: u64, succeeds_at: u128, cost: u32) -> u64 {
        let named =
            |&(_, rule): &(usize, Rule)| !self.fits(rule, time, succeeds_at - 1, cost) && !is_implied(rule, rules);
        rules.iter().copied().enumerate().filter(named).map(|(position, _)| 1 << position).sum()
    }

    pub(super) fn peek(&self, rules: &[Rule], now: Moment, cost: u32) -> Result<Answer, NeverPossible> {
        if cost > least(rules) {
            return Err(NeverPossible);
        }
        let admitted = cost == 0 || rules.iter().all(|&rule| self.count_live(rule, now.time) + cost <= rule.limit);
        let succeeds_at = (!admitted).then(|| self.succeeds_at(rules, now.time, cost));
        let from_now = |time: u128| time - u128::from(now.reading);
        Ok(Answer {
            admitted,
            retry_after: succeeds_at.map(from_now),
            in_the_way: succeeds_at.map_or(0, |succeeds_at| self.in_the_way(rules, now.time, succeeds_at, cost)),
            left: core::array::from_fn(|place| rules.get(place).map(|&rule| self.left(rule, now))),
        })
    }

    /// What a rule leaves, and the first times at which it leaves more and all: tries each time at which a permit expires.
    fn left(&self, rule: Rule, now: Moment) -> Left {
        let live_at = |later: u128| {
            let live_then = |&stamp: &u64| later < u128::from(stamp) + u128::from(rule.window);
            u32::try_from(self.live(rule, now.time).filter(live_then).count()).expect("few")
        };
        let live = self.count_live(rule, now.time);
        let ends = || self.live(rule, now.time).map(|stamp| u128::from(stamp) + u128::from(rule.window));
        let from_now = |time: Option<u128>| time.map_or(0, |time| time - u128::from(now.reading));
        let next = ends().filter(|&end| live_at(end) < live).min();
        let reset = ends().filter(|&end| live_at(end) == 0).min();
        Left {
            limit: rule.limit,
            remaining: rule.limit - live,
            next_after: from_now(next),
            reset_after: from_now(reset),
        }
    }

    pub(crate) fn acquire(&mut self, rules: &[Rule], reading: u64, cost: u32) -> Result<Answer, NeverPossible> {
        self.acquire_at(rules, self.base(reading), cost)
    }

    /// The log of a key whose next permits are put off to `time`: under each rule, what is live at the base still is then, for a
    /// nanosecond. A rule that another implies has nothing to add.
    fn put_off_to(&self, rules: &[Rule], base: Moment, time: u64) -> Self {
        let put_off = |&stamp: &u64| {
            let is_live = |rule: &&Rule| base.time - stamp < rule.window;
            let oldest = |rule: &Rule| (time + 1).saturating_sub(rule.window);
            rules.iter().filter(|&&rule| !is_implied(rule, rules)).filter(is_live).map(oldest).fold(stamp, u64::max)
        };
        Self { stamps: self.stamps.iter().map(put_off).collect() }
    }

    pub(super) fn acquire_at(&mut self, rules: &[Rule], now: Moment, cost: u32) -> Result<Answer, NeverPossible> {
        let answer = self.peek(rules, now, cost)?;
        if !answer.admitted {
            return Ok(answer);
        }
        self.stamps.extend((0..cost).map(|_| now.time));
        // The numbers are those after the decision.
        Ok(Answer { admitted: true, ..self.peek(rules, now, 0)? })
    }
}

/// Whether another rule has no more permits in no shorter a window. Rules that are the same don't count.
fn is_implied(rule: Rule, rules: &[Rule]) -> bool {
    let implies = |one: Rule, other: Rule| one.limit <= other.limit && one.window >= other.window;
    rules.iter().any(|&other| implies(other, rule) && !implies(rule, other))
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
    fn may_put_off_to(&self, time: u64, rules: &[Rule], latest: u64) -> bool {
        let ends_a_stamp = || time.checked_sub(longest(rules)).is_some_and(|stamp| self.stamps.contains(&stamp));
        time >= self.horizon && (self.stamps.contains(&time) || time <= latest && ends_a_stamp())
    }

    /// What a key had when it was granted these permits at this reading. `None` if it can't have been.
    pub(super) fn before(&self, log: &Log, rules: &[Rule], latest: u64, granted: Granted, reading: u64) -> Option<Log> {
        let Granted { stamp, cost, left } = granted;
        let base = log.base(reading);
        let put_off = stamp > base.time && self.may_put_off_to(stamp, rules, latest);
        let fits = log.peek(rules, base, cost).is_ok_and(|answer| answer.admitted);
        let (known, unknown) = match log.newest() {
            None => (None, put_off || stamp == reading && reading >= self.horizon),
            Some(newest) => {
                let known = if put_off { log.put_off_to(rules, base, stamp) } else { log.clone() };
                let known = (fits && (put_off || stamp == base.time)).then_some(known);
                let expired = stamp.saturating_sub(newest) >= longest(rules);
                (known, put_off && expired && !log.is_live(rules, latest))
            }
        };
        let is_right = |log: &Log| {
            let after = log.clone().acquire_at(rules, Moment { reading, time: stamp }, cost);
            after.is_ok_and(|after| after.admitted && after.left == left)
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
