//! The stamps of one key.

/// A limit and a window in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    pub limit: u32,
    pub window: u64,
}

/// The most permits that a request can be granted.
pub fn least(rules: &[Rule]) -> u32 {
    rules.iter().map(|rule| rule.limit).min().expect("at least one rule")
}

/// The longest time for which a permit matters.
pub fn longest(rules: &[Rule]) -> u64 {
    rules.iter().map(|rule| rule.window).max().expect("at least one rule")
}

/// The cost is more than the limit, so no wait would help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeverPossible;

/// The answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    pub admitted: bool,
    /// How long until the same request would first succeed; only of a denial.
    pub retry_after: Option<u128>,
    /// The rules that may be named as those that decide how long; bit 0 for the first.
    pub in_the_way: u64,
    /// What each rule leaves after the decision, in the order of the rules.
    pub left: [Option<Left>; 8],
}

/// What one rule leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    pub limit: u32,
    /// Permits free after the decision.
    pub remaining: u32,
    /// How long until more are free; zero when all are.
    pub next_after: u128,
    /// How long until every permit is free.
    pub reset_after: u128,
}

impl Answer {
    /// The rule that leaves the fewest permits: of several the one that takes longest to leave
    /// more, and then the first.
    pub fn tightest(&self) -> (usize, Left) {
        let mut tightest: Option<(usize, Left)> = None;
        for (place, &left) in self.left.iter().enumerate() {
            let Some(left) = left else { continue };
            let is_tighter = tightest.is_none_or(|(_, other)| {
                left.remaining < other.remaining
                    || left.remaining == other.remaining && left.next_after > other.next_after
            });
            if is_tighter {
                tightest = Some((place, left));
            }
        }
        tightest.expect("at least one rule")
    }
}

/// Permits, as they were seen right after they were granted.
#[derive(Debug, Clone, Copy)]
pub struct Granted {
    pub cost: u32,
    pub stamp: u64,
    /// What each rule left.
    pub left: [Option<Left>; 8],
}

/// A reading, from which waits count, and the time that stands for it, at which permits are live.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) reading: u64,
    pub(super) time: u64,
}

/// The stamps of one key, or of a limiter without keys: every permit ever granted, in any order.
#[derive(Debug, Clone, Default)]
pub struct Log {
    stamps: Vec<u64>,
}

impl Log {
    fn newest(&self) -> Option<u64> {
        self.stamps.iter().copied().max()
    }

    /// The newest stamp stands for an earlier reading.
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
    pub fn is_live(&self, rules: &[Rule], reading: u64) -> bool {
        rules.iter().any(|&rule| self.live(rule, self.base(reading).time).next().is_some())
    }

    /// When the last live permit is free again, under all of the rules.
    pub fn all_free_at(&self, rules: &[Rule], time: u64) -> Option<u128> {
        let ends = |&rule: &Rule| self.live(rule, time).map(move |stamp| u128::from(stamp) + u128::from(rule.window));
        rules.iter().flat_map(ends).max()
    }

    /// Whether `cost` more permits fit the rule at `later`, if no other permits are granted after
    /// `time`.
    fn fits(&self, rule: Rule, time: u64, later: u128, cost: u32) -> bool {
        let live_then = |&stamp: &u64| later < u128::from(stamp) + u128::from(rule.window);
        let used = self.live(rule, time).filter(live_then).count();
        used + usize::try_from(cost).expect("fits") <= usize::try_from(rule.limit).expect("fits")
    }

    /// Whether so many more permits fit every rule at a time.
    pub fn admits(&self, rules: &[Rule], time: u64, cost: u32) -> bool {
        rules.iter().all(|&rule| self.fits(rule, time, time.into(), cost))
    }

    /// Charges what was admitted.
    pub fn grant(&mut self, time: u64, cost: u32) {
        self.stamps.extend((0..cost).map(|_| time));
    }

    /// The first time at which a request that is denied now would succeed: tries each time at which
    /// a permit expires.
    fn succeeds_at(&self, rules: &[Rule], time: u64, cost: u32) -> u128 {
        let expiries = rules
            .iter()
            .flat_map(|&rule| self.live(rule, time).map(move |stamp| u128::from(stamp) + u128::from(rule.window)));
        let fit = |&later: &u128| rules.iter().all(|&rule| self.fits(rule, time, later, cost));
        expiries.filter(fit).min().expect("once everything has expired any cost up to the limit fits")
    }

    /// The rules that may be named as deciding the wait, one bit each: of those that deny the
    /// request to the last nanosecond, and that no other rule implies, the one with most permits.
    /// Of equal rules any may be named.
    fn in_the_way(&self, rules: &[Rule], time: u64, succeeds_at: u128, cost: u32) -> u64 {
        let named =
            |&(_, rule): &(usize, Rule)| !self.fits(rule, time, succeeds_at - 1, cost) && !is_implied(rule, rules);
        let named: Vec<(usize, Rule)> = rules.iter().copied().enumerate().filter(named).collect();
        let most = named.iter().map(|(_, rule)| rule.limit).max();
        named.iter().filter(|(_, rule)| Some(rule.limit) == most).map(|(position, _)| 1 << position).sum()
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

    /// The permits left of a rule, and the first times at which more and all are left. Tries each
    /// time at which a permit expires.
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

    pub fn acquire(&mut self, rules: &[Rule], reading: u64, cost: u32) -> Result<Answer, NeverPossible> {
        self.acquire_at(rules, self.base(reading), cost)
    }

    /// The log just before it was granted these permits at this reading. `None` if the grant is not
    /// possible.
    pub(super) fn before(&self, rules: &[Rule], latest: u64, granted: Granted, reading: u64) -> Option<Self> {
        let Granted { stamp, cost, left } = granted;
        let base = self.base(reading);
        let fits = self.peek(rules, base, cost).is_ok_and(|answer| answer.admitted);
        let known = self.newest().is_some() && fits && stamp == base.time;
        let may_begin = reading <= stamp && stamp <= latest.max(reading);
        let is_over = |newest: u64| stamp.saturating_sub(newest) >= longest(rules) && !self.is_live(rules, latest);
        let unknown = may_begin && self.newest().is_none_or(is_over);
        let is_right = |log: &Self| {
            let after = log.clone().acquire_at(rules, Moment { reading, time: stamp }, cost);
            after.is_ok_and(|after| after.admitted && after.left == left)
        };
        known.then(|| self.clone()).into_iter().chain(unknown.then(Self::default)).find(is_right)
    }

    pub(super) fn acquire_at(&mut self, rules: &[Rule], now: Moment, cost: u32) -> Result<Answer, NeverPossible> {
        let answer = self.peek(rules, now, cost)?;
        if !answer.admitted {
            return Ok(answer);
        }
        self.grant(now.time, cost);
        // The permits left are those after the decision.
        Ok(Answer { admitted: true, ..self.peek(rules, now, 0)? })
    }
}

/// Whether another rule has no more permits in no shorter a window. Equal rules don't count.
fn is_implied(rule: Rule, rules: &[Rule]) -> bool {
    let implies = |one: Rule, other: Rule| one.limit <= other.limit && one.window >= other.window;
    rules.iter().any(|&other| implies(other, rule) && !implies(rule, other))
}
