//! Reserving and giving back, against a naive account of each algorithm: the same requests at the same times must get the same
//! answers, to the nanosecond; and so must they while quotas change. Time goes on between any two requests.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{Limiter, MockClock, Quota, Receipt};

const KEY: &str = "alice";

fn nanos(count: u64) -> Duration {
    Duration::from_nanos(count)
}

#[derive(Debug, Clone)]
enum Op {
    Acquire(u32),
    /// And keep it, or cancel it at once.
    Reserve {
        cost: u32,
        within: u64,
        keep: bool,
    },
    /// One of the receipts that are there.
    Refund(prop::sample::Index),
    Forget,
    Pass(u64),
    /// The quotas of all keys become others of those that there are.
    Change(usize),
    /// Those of this key do, and no longer follow the others.
    ChangeOwn(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let within = || prop_oneof![Just(0_u64), 0..20_u64, 0..200_u64, Just(u64::MAX)];
    let op = prop_oneof![
        4 => (1..5_u32).prop_map(Op::Acquire),
        6 => (1..5_u32, within(), prop::bool::weighted(0.8)).prop_map(|(cost, within, keep)| Op::Reserve { cost, within, keep }),
        5 => any::<prop::sample::Index>().prop_map(Op::Refund),
        1 => Just(Op::Forget),
        4 => prop_oneof![0..4_u64, 0..40_u64, 0..300_u64].prop_map(Op::Pass),
        1 => (0..3_usize).prop_map(Op::Change),
        1 => (0..3_usize).prop_map(Op::ChangeOwn),
    ];
    prop::collection::vec(op, 1..60)
}

/// What was charged: a number by which the naive account knows it.
type Number = usize;

/// An answer: the delay and the number of the charge, or the wait.
type Answer = Result<(u64, Number), u64>;

trait Naive: Sized {
    /// Without `within` it is not to be given back, and not to wait (but in a queue, as long as that lets it).
    fn request(&mut self, now: u64, cost: u32, within: Option<u64>) -> Answer;
    fn refund(&mut self, now: u64, number: Number) -> u32;
    fn remaining(&self, now: u64) -> u32;
    /// The same key under other quotas, which `fresh` is a new key of.
    fn changed(self, now: u64, fresh: Self) -> Self;
}

/// A list of permits: the number of the charge, and the stamp.
struct Log {
    /// Limits and windows.
    quotas: Vec<(u32, u64)>,
    permits: Vec<(Number, u64)>,
    charges: usize,
}

impl Log {
    fn widest(&self) -> u64 {
        self.quotas.iter().map(|&(_, window)| window).max().expect("a quota")
    }

    fn fits(&self, at: u64, cost: u32) -> bool {
        self.quotas.iter().all(|&(limit, window)| {
            let live = self.permits.iter().filter(|&&(_, stamp)| at < stamp + window).count();
            u32::try_from(live).expect("few") + cost <= limit
        })
    }

    /// The first moment, no earlier than what is reserved, at which the request fits.
    fn fits_at(&self, now: u64, cost: u32) -> u64 {
        let first = self.permits.iter().map(|&(_, stamp)| stamp).fold(now, u64::max);
        let ends =
            self.permits.iter().flat_map(|&(_, stamp)| self.quotas.iter().map(move |&(_, window)| stamp + window));
        let mut moments: Vec<u64> = ends.filter(|&end| end > first).chain([first]).collect();
        moments.sort_unstable();
        moments.into_iter().find(|&moment| self.fits(moment, cost)).expect("it fits once all have expired")
    }
}

impl Naive for Log {
    fn request(&mut self, now: u64, cost: u32, within: Option<u64>) -> Answer {
        let (at, within) = (self.fits_at(now, cost), within.unwrap_or(0).min(self.widest()));
        if at - now > within {
            return Err(at - now - within);
        }
        self.charges += 1;
        self.permits.extend((0..cost).map(|_| (self.charges, at)));
        Ok((at - now, self.charges))
    }

    fn refund(&mut self, now: u64, number: Number) -> u32 {
        let (widest, before) = (self.widest(), self.permits.len());
        self.permits.retain(|&(charge, stamp)| charge != number || now >= stamp + widest);
        u32::try_from(before - self.permits.len()).expect("few")
    }

    fn remaining(&self, now: u64) -> u32 {
        if self.fits_at(now, 1) > now {
            return 0;
        }
        let most = self.quotas.iter().map(|&(limit, _)| limit).min().expect("a quota");
        (1..=most).take_while(|&cost| self.fits(now, cost)).last().unwrap_or(0)
    }

    fn changed(mut self, now: u64, fresh: Self) -> Self {
        let widest = self.widest();
        self.permits.retain(|&(_, stamp)| now < stamp + widest);
        Self { quotas: fresh.quotas, ..self }
    }
}

/// What a bucket holds, in parts of a permit; less than nothing while it owes.
struct Bucket {
    capacity: i128,
    permits: i128,
    period: i128,
    held: i128,
    /// Of a key that was never seen, that is when it is.
    as_of: Option<i128>,
    /// Charges since it was full, and what has been given back of any of them.
    since_full: Vec<(Number, i128)>,
    given_back: Vec<Number>,
    charges: usize,
}

impl Bucket {
    fn new(capacity: u32, permits: u32, period: u64, start: u32) -> Self {
        let period = i128::from(period);
        Self {
            capacity: capacity.into(),
            permits: permits.into(),
            period,
            held: i128::from(start) * period,
            as_of: None,
            since_full: vec![],
            given_back: vec![],
            charges: 0,
        }
    }

    fn held_at(&self, now: u64) -> i128 {
        (self.held + (i128::from(now) - self.as_of.unwrap_or(now.into())) * self.permits)
            .min(self.capacity * self.period)
    }

    fn move_to(&mut self, now: u64) {
        self.held = self.held_at(now);
        self.as_of = Some(now.into());
        if self.held == self.capacity * self.period {
            self.since_full.clear();
        }
    }
}

impl Naive for Bucket {
    fn request(&mut self, now: u64, cost: u32, within: Option<u64>) -> Answer {
        self.move_to(now);
        let lacks = (i128::from(cost) * self.period - self.held).max(0);
        let wait = u64::try_from((lacks + self.permits - 1) / self.permits).expect("soon");
        let fills_in = u64::try_from(self.capacity * self.period / self.permits).expect("soon");
        let within = within.unwrap_or(0).min(fills_in);
        if wait > within {
            return Err(wait - within);
        }
        self.held -= i128::from(cost) * self.period;
        self.charges += 1;
        self.since_full.push((self.charges, cost.into()));
        Ok((wait, self.charges))
    }

    fn refund(&mut self, now: u64, number: Number) -> u32 {
        self.move_to(now);
        let Some(place) = self.since_full.iter().position(|&(charge, _)| charge == number) else { return 0 };
        let (_, cost) = self.since_full[place];
        let back = if self.held >= 0 {
            cost
        } else if self.given_back.iter().any(|&charge| charge >= number) {
            0
        } else {
            let later: i128 = self.since_full[place + 1..].iter().map(|&(_, cost)| cost).sum();
            cost.min((self.capacity - later).max(0))
        };
        if back > 0 {
            // As of any charge that was there by then.
            self.given_back.push(self.charges);
        }
        self.held = (self.held + back * self.period).min(self.capacity * self.period);
        self.move_to(now);
        u32::try_from(back).expect("few")
    }

    fn remaining(&self, now: u64) -> u32 {
        u32::try_from((self.held_at(now) / self.period).max(0)).expect("few")
    }

    fn changed(self, now: u64, fresh: Self) -> Self {
        if self.as_of.is_none() {
            return Self { charges: self.charges, ..fresh };
        }
        let lacks = self.capacity * self.period - self.held_at(now);
        let lacks = ((lacks + self.period - 1) / self.period).min(2 * fresh.capacity);
        let held = (fresh.capacity - lacks) * fresh.period;
        Self { held, as_of: Some(now.into()), charges: self.charges, ..fresh }
    }
}

/// When each place leaves that was given, in parts of a nanosecond, until the queue is empty.
struct Queue {
    permits: i128,
    period: i128,
    max_delay: u64,
    limit: u32,
    next: i128,
    places: Vec<(Number, u32)>,
    charges: usize,
}

impl Queue {
    fn delay(&self, now: u64) -> u64 {
        let ahead = (self.next - i128::from(now) * self.permits).max(0);
        u64::try_from((ahead + self.permits - 1) / self.permits).expect("soon")
    }

    fn leave(&mut self, now: u64) {
        if self.next <= i128::from(now) * self.permits {
            self.next = i128::from(now) * self.permits;
            self.places.clear();
        }
    }
}

impl Naive for Queue {
    fn request(&mut self, now: u64, cost: u32, within: Option<u64>) -> Answer {
        self.leave(now);
        let (delay, longest) = (self.delay(now), within.unwrap_or(u64::MAX).min(self.max_delay));
        if delay > longest {
            return Err(delay - longest);
        }
        self.next += i128::from(cost) * self.period;
        self.charges += 1;
        self.places.push((self.charges, cost));
        Ok((delay, self.charges))
    }

    fn refund(&mut self, now: u64, number: Number) -> u32 {
        self.leave(now);
        match self.places.last() {
            Some(&(charge, cost)) if charge == number => {
                self.places.pop();
                self.next -= i128::from(cost) * self.period;
                cost
            }
            _ => 0,
        }
    }

    fn remaining(&self, now: u64) -> u32 {
        if self.delay(now) <= self.max_delay { self.limit } else { 0 }
    }

    fn changed(self, now: u64, fresh: Self) -> Self {
        let places = i128::from(self.delay(now)) * fresh.permits;
        let places = ((places + fresh.period - 1) / fresh.period).min(2 * i128::from(fresh.limit));
        Self { next: i128::from(now) * fresh.permits + places * fresh.period, charges: self.charges, ..fresh }
    }
}

/// What was granted since an account opened, and in the window before.
struct Windows {
    limit: u32,
    window: i128,
    kind: Kind,
    /// When the account opened, or the window began that it has gone on into.
    opened: Option<i128>,
    current: Vec<(Number, u32)>,
    previous: Vec<(Number, u32)>,
    charges: usize,
    /// How often the quota has changed, and had when each charge was made.
    changes: usize,
    changes_at: Vec<usize>,
    /// And when the account was last asked.
    changes_then: usize,
}

#[derive(Clone, Copy)]
enum Kind {
    /// Windows begin with a request.
    Floating,
    Aligned(i128),
    /// And the one before counts for as much as a window that ends now covers of it.
    Counter(i128),
}

/// What counts at a time, and when the window ends that it lies in.
struct View {
    previous: i128,
    current: i128,
    end: i128,
    /// The window that the account was last charged in has ended.
    is_next: bool,
}

fn sum(grants: &[(Number, u32)]) -> i128 {
    grants.iter().map(|&(_, cost)| i128::from(cost)).sum()
}

impl Windows {
    fn new(limit: u32, window: u64, kind: Kind) -> Self {
        Self {
            limit,
            window: window.into(),
            kind,
            opened: None,
            current: vec![],
            previous: vec![],
            charges: 0,
            changes: 0,
            changes_at: vec![],
            changes_then: 0,
        }
    }

    /// The end of the window that a time lies in.
    fn end_of(&self, time: i128) -> i128 {
        match self.kind {
            Kind::Floating => time + self.window,
            Kind::Aligned(phase) | Kind::Counter(phase) => time + self.window - (time - phase).rem_euclid(self.window),
        }
    }

    /// Nothing if nothing counts any more.
    fn view(&self, now: i128) -> Option<View> {
        let end = self.end_of(self.opened?);
        let (previous, current) = (sum(&self.previous), sum(&self.current));
        match self.kind {
            // What was all given back might as well not have been taken.
            _ if current + previous == 0 => None,
            Kind::Counter(_) if end <= now && now < end + self.window => {
                Some(View { previous: current, current: 0, end: end + self.window, is_next: true })
            }
            _ if end <= now => None,
            _ => Some(View { previous, current, end, is_next: false }),
        }
    }

    fn fits(&self, now: i128, cost: u32) -> bool {
        let Some(view) = self.view(now) else { return true };
        let left = if matches!(self.kind, Kind::Counter(_)) { (view.end - now).min(self.window) } else { 0 };
        view.previous * left + (view.current + i128::from(cost)) * self.window <= i128::from(self.limit) * self.window
    }
}

impl Naive for Windows {
    fn request(&mut self, now: u64, cost: u32, _within: Option<u64>) -> Answer {
        let now = i128::from(now);
        if self.changes_then != self.changes {
            // What was in the window before counts, and does not come back.
            self.previous.iter_mut().for_each(|grant| grant.0 = 0);
            self.changes_then = self.changes;
        }
        if !self.fits(now, cost) {
            let mut wait = 1;
            while !self.fits(now + wait, cost) {
                wait += 1;
            }
            return Err(u64::try_from(wait).expect("soon"));
        }
        match self.view(now) {
            None => {
                (self.opened, self.previous, self.current) = (Some(now), vec![], vec![]);
            }
            Some(view) if view.is_next => {
                self.previous = std::mem::take(&mut self.current);
                self.opened = Some(view.end - self.window);
                // What was charged under another quota counts, and does not come back.
                let (changes, changes_at) = (self.changes, &self.changes_at);
                let is_old = |number: Number| number > 0 && changes_at[number - 1] != changes;
                self.previous.iter_mut().filter(|grant| is_old(grant.0)).for_each(|grant| grant.0 = 0);
            }
            Some(_) => {}
        }
        self.charges += 1;
        self.changes_at.push(self.changes);
        self.current.push((self.charges, cost));
        Ok((0, self.charges))
    }

    fn refund(&mut self, now: u64, number: Number) -> u32 {
        let Some(view) = self.view(now.into()) else { return 0 };
        let grants =
            if view.is_next { [&mut self.current, &mut vec![]] } else { [&mut self.current, &mut self.previous] };
        for grants in grants {
            if let Some(place) = grants.iter().position(|&(charge, _)| charge == number) {
                return grants.remove(place).1;
            }
        }
        0
    }

    fn remaining(&self, now: u64) -> u32 {
        (1..=self.limit).take_while(|&cost| self.fits(now.into(), cost)).last().unwrap_or(0)
    }

    fn changed(self, now: u64, fresh: Self) -> Self {
        let after = if matches!(self.kind, Kind::Counter(_)) { self.window } else { 0 };
        let is_over = self.opened.is_none_or(|opened| self.end_of(opened) + after <= now.into());
        if is_over || sum(&self.current) + sum(&self.previous) == 0 {
            return Self { charges: self.charges, changes: self.changes + 1, changes_at: self.changes_at, ..fresh };
        }
        Self { limit: fresh.limit, window: fresh.window, kind: fresh.kind, changes: self.changes + 1, ..self }
    }
}

/// A receipt and the number by which the naive account knows the charge.
struct Held {
    receipt: Receipt,
    number: Number,
}

/// Quotas and a naive account of a key under them.
struct Way<N> {
    quotas: Vec<Quota>,
    fresh: Box<dyn Fn() -> N>,
}

fn agree<N: Naive>(ways: &[Way<N>], ops: &[Op]) -> Result<(), TestCaseError> {
    let (clock, mut way, mut has_own) = (MockClock::new(), &ways[0], false);
    let mut builder = Limiter::<str>::builder(way.quotas[0]).clock(clock.clone()).keys_with_quotas(2);
    for &quota in &way.quotas[1..] {
        builder = builder.and(quota);
    }
    let limiter = builder.build().expect("quotas that are allowed");
    let most = |way: &Way<N>| way.quotas.iter().map(Quota::limit).min().expect("a quota");
    let (mut account, mut held, mut now) = (Some((way.fresh)()), Vec::<Held>::new(), 0_u64);
    for (step, op) in ops.iter().enumerate() {
        clock.advance(nanos(1));
        now += 1;
        let limit = most(way);
        let key = account.as_mut().expect("it is put back");
        match *op {
            Op::Acquire(cost) => {
                let cost = cost.min(limit);
                let decision = limiter.try_acquire_n(KEY, cost).expect("no more than the limit");
                let told = match decision.into_result() {
                    Ok(admission) => Ok(admission.delay()),
                    Err(denial) => Err(denial.retry_after()),
                };
                let expected = key.request(now, cost, None);
                prop_assert_eq!(
                    told,
                    expected.map(|(delay, _)| nanos(delay)).map_err(nanos),
                    "step {} at {}: {:?}",
                    step,
                    now,
                    op
                );
            }
            Op::Reserve { cost, within, keep } => {
                let cost = cost.min(limit);
                let expected = key.request(now, cost, Some(within));
                match (limiter.reserve(KEY, cost, nanos(within)), expected) {
                    (Ok(reservation), Ok((delay, number))) => {
                        prop_assert_eq!(reservation.delay(), nanos(delay), "step {} at {}: {:?}", step, now, op);
                        if keep {
                            held.push(Held { receipt: reservation.commit(), number });
                        } else {
                            prop_assert_eq!(
                                reservation.cancel(),
                                key.refund(now, number),
                                "step {} at {}: {:?}",
                                step,
                                now,
                                op
                            );
                        }
                    }
                    (told, expected) => {
                        let told = told.map(|reservation| drop(reservation.commit()));
                        let wait = told.err().and_then(|error| error.denial()).map(|denial| denial.retry_after());
                        prop_assert_eq!(wait, expected.err().map(nanos), "step {} at {}: {:?}", step, now, op);
                    }
                }
            }
            Op::Refund(index) if !held.is_empty() => {
                let Held { receipt, number } = held.swap_remove(index.index(held.len()));
                let back = limiter.refund(receipt).expect("of this limiter");
                prop_assert_eq!(back, key.refund(now, number), "step {} at {}: {:?} of {}", step, now, op, number);
            }
            Op::Refund(_) => {}
            Op::Forget => {
                limiter.forget(KEY);
                account = Some((way.fresh)());
                for gone in held.drain(..) {
                    prop_assert_eq!(limiter.refund(gone.receipt).expect("of this limiter"), 0);
                }
            }
            Op::Change(which) => {
                let all = &ways[which % ways.len()];
                limiter.set_quotas(&all.quotas).expect("they can be used");
                if !has_own {
                    way = all;
                    account = account.map(|account| account.changed(now, (way.fresh)()));
                }
            }
            Op::ChangeOwn(which) => {
                (has_own, way) = (true, &ways[which % ways.len()]);
                limiter.set_quotas_of(KEY, &way.quotas).expect("they can be used");
                account = account.map(|account| account.changed(now, (way.fresh)()));
            }
            Op::Pass(by) => {
                clock.advance(nanos(by));
                now += by;
            }
        }
        prop_assert_eq!(
            limiter.peek_n(KEY, 0).expect("a look").remaining(),
            account.as_ref().expect("it is put back").remaining(now),
            "step {} at {}: {:?}",
            step,
            now,
            op
        );
    }
    Ok(())
}

fn cases() -> ProptestConfig {
    ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() }
}

/// One to three ways for a quota to be.
fn ways<P: std::fmt::Debug>(one: impl Strategy<Value = P>) -> impl Strategy<Value = Vec<P>> {
    prop::collection::vec(one, 1..4)
}

fn logs(quotas: &[Vec<(u32, u64)>]) -> Vec<Way<Log>> {
    let way = |quotas: &Vec<(u32, u64)>| {
        let given = quotas.iter().map(|&(limit, window)| Quota::new(limit, nanos(window))).collect();
        let quotas = quotas.clone();
        Way { quotas: given, fresh: Box::new(move || Log { quotas: quotas.clone(), permits: vec![], charges: 0 }) }
    };
    quotas.iter().map(way).collect()
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_log(quotas in ways((1..12_u32, 1..60_u64).prop_map(|one| vec![one])), ops in ops()) {
        agree(&logs(&quotas), &ops)?;
    }

    #[test]
    fn several_logs(quotas in ways(prop::collection::vec((1..12_u32, 1..90_u64), 1..4)), ops in ops()) {
        agree(&logs(&quotas), &ops)?;
    }

    #[test]
    fn a_bucket(quotas in ways((1..12_u32, 1..4_u32, 1..30_u64)), starts_with in 0..12_u32, ops in ops()) {
        let ways: Vec<_> = quotas.into_iter().map(|(capacity, permits, period)| {
            let start = starts_with.min(capacity);
            let quota = Quota::token_bucket(capacity, permits, nanos(period)).starting_with(start);
            Way { quotas: vec![quota], fresh: Box::new(move || Bucket::new(capacity, permits, period, start)) as Box<dyn Fn() -> Bucket> }
        }).collect();
        agree(&ways, &ops)?;
    }

    #[test]
    fn a_queue(quotas in ways((1..4_u32, 1..30_u64, 0..100_u64)), ops in ops()) {
        let ways: Vec<_> = quotas.into_iter().map(|(permits, period, max_delay)| {
            let quota = Quota::leaky_queue(permits, nanos(period), nanos(max_delay));
            let limit = quota.limit();
            let fresh = move || Queue { permits: permits.into(), period: period.into(), max_delay, limit, next: 0, places: vec![], charges: 0 };
            Way { quotas: vec![quota], fresh: Box::new(fresh) as Box<dyn Fn() -> Queue> }
        }).collect();
        agree(&ways, &ops)?;
    }

    #[test]
    fn a_window(quotas in ways((1..12_u32, 1..60_u64)), phase in prop::option::of(0..100_u64), ops in ops()) {
        let ways: Vec<_> = quotas.into_iter().map(|(limit, window)| {
            let quota = Quota::fixed_window(limit, nanos(window));
            let quota = phase.map_or(quota, |phase| quota.aligned(nanos(phase)));
            let kind = phase.map_or(Kind::Floating, |phase| Kind::Aligned(phase.into()));
            Way { quotas: vec![quota], fresh: Box::new(move || Windows::new(limit, window, kind)) as Box<dyn Fn() -> Windows> }
        }).collect();
        agree(&ways, &ops)?;
    }

    #[test]
    fn a_counter(quotas in ways((1..12_u32, 1..60_u64)), ops in ops()) {
        let ways: Vec<_> = quotas.into_iter().map(|(limit, window)| {
            let quota = Quota::sliding_counter(limit, nanos(window));
            Way { quotas: vec![quota], fresh: Box::new(move || Windows::new(limit, window, Kind::Counter(0))) as Box<dyn Fn() -> Windows> }
        }).collect();
        agree(&ways, &ops)?;
    }
}
