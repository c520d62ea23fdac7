//! Reserving and giving back, against a naive account of each algorithm: the same requests at the same times must get the same
//! answers, to the nanosecond. Time goes on between any two requests.

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
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let within = || prop_oneof![Just(0_u64), 0..20_u64, 0..200_u64, Just(u64::MAX)];
    let op = prop_oneof![
        4 => (1..5_u32).prop_map(Op::Acquire),
        6 => (1..5_u32, within(), prop::bool::weighted(0.8)).prop_map(|(cost, within, keep)| Op::Reserve { cost, within, keep }),
        5 => any::<prop::sample::Index>().prop_map(Op::Refund),
        1 => Just(Op::Forget),
        4 => prop_oneof![0..4_u64, 0..40_u64, 0..300_u64].prop_map(Op::Pass),
    ];
    prop::collection::vec(op, 1..60)
}

/// What was charged: a number by which the naive account knows it.
type Number = usize;

/// An answer: the delay and the number of the charge, or the wait.
type Answer = Result<(u64, Number), u64>;

trait Naive {
    /// Without `within` it is not to be given back, and not to wait (but in a queue, as long as that lets it).
    fn request(&mut self, now: u64, cost: u32, within: Option<u64>) -> Answer;
    fn refund(&mut self, now: u64, number: Number) -> u32;
    fn remaining(&self, now: u64) -> u32;
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
}

/// Everything that was granted and not given back: the number of the charge, when, and how much.
struct Windows {
    limit: u32,
    window: u64,
    kind: Kind,
    grants: Vec<(Number, u64, u32)>,
    charges: usize,
}

enum Kind {
    /// Windows begin with a request.
    Floating,
    Aligned(u64),
    /// And the one before counts for as much as a window that ends now covers of it.
    Counter(u64),
}

impl Windows {
    /// The start of the window that a time lies in.
    fn start(&self, now: u64) -> Option<u64> {
        match self.kind {
            Kind::Floating => {
                // Those that count for nothing any more were never there.
                let mut start = None;
                for &(_, time, _) in &self.grants {
                    start = Some(start.filter(|&start| time < start + self.window).unwrap_or(time));
                }
                start.filter(|&start| now < start + self.window)
            }
            Kind::Aligned(phase) | Kind::Counter(phase) => {
                let before = (now + self.window - phase % self.window) % self.window;
                now.checked_sub(before).or(Some(0))
            }
        }
    }

    fn granted(&self, from: u64, until: u64) -> u64 {
        self.grants
            .iter()
            .filter(|&&(_, time, _)| (from..until).contains(&time))
            .map(|&(_, _, cost)| u64::from(cost))
            .sum()
    }

    /// All that was granted and counts, times the window.
    fn weight(&self, now: u64) -> u64 {
        let Some(start) = self.start(now) else { return 0 };
        let current = self.granted(start, start + self.window) * self.window;
        match self.kind {
            Kind::Counter(_) => {
                let previous = start.checked_sub(self.window).map_or(0, |before| self.granted(before, start));
                current + previous * (start + self.window - now)
            }
            _ => current,
        }
    }

    fn fits(&self, now: u64, cost: u32) -> bool {
        self.weight(now) + u64::from(cost) * self.window <= u64::from(self.limit) * self.window
    }
}

impl Naive for Windows {
    fn request(&mut self, now: u64, cost: u32, _within: Option<u64>) -> Answer {
        if !self.fits(now, cost) {
            let mut wait = 1;
            while !self.fits(now + wait, cost) {
                wait += 1;
            }
            return Err(wait);
        }
        self.charges += 1;
        self.grants.push((self.charges, now, cost));
        Ok((0, self.charges))
    }

    fn refund(&mut self, now: u64, number: Number) -> u32 {
        let Some(place) = self.grants.iter().position(|&(charge, ..)| charge == number) else { return 0 };
        let (_, time, cost) = self.grants[place];
        let counts = match (&self.kind, self.start(now)) {
            (_, None) => false,
            (Kind::Counter(_), Some(start)) => time + self.window >= start,
            (_, Some(start)) => time >= start,
        };
        if !counts {
            return 0;
        }
        match self.kind {
            // The window goes on with what is left of it, from where it began.
            Kind::Floating if self.granted(self.start(now).expect("it runs"), u64::MAX) > u64::from(cost) => {
                self.grants[place].2 = 0;
            }
            Kind::Floating => self.grants.clear(),
            _ => drop(self.grants.remove(place)),
        }
        cost
    }

    fn remaining(&self, now: u64) -> u32 {
        (1..=self.limit).take_while(|&cost| self.fits(now, cost)).last().unwrap_or(0)
    }
}

/// A log whose stamps are rounded up: the number of each charge, the stamp and the permits.
struct Steps {
    limit: u32,
    window: u64,
    resolution: u64,
    grants: Vec<(Number, u64, u32)>,
    charges: usize,
}

impl Steps {
    fn fits(&self, at: u64, cost: u32) -> bool {
        let live = self.grants.iter().filter(|&&(_, stamp, _)| at < stamp + self.window);
        live.map(|(_, _, permits)| permits).sum::<u32>() + cost <= self.limit
    }
}

impl Naive for Steps {
    fn request(&mut self, now: u64, cost: u32, _: Option<u64>) -> Answer {
        let at = (now..).find(|&at| self.fits(at, cost)).expect("it fits once all have expired");
        if at > now {
            return Err(at - now);
        }
        self.charges += 1;
        self.grants.push((self.charges, now.next_multiple_of(self.resolution), cost));
        Ok((0, self.charges))
    }

    fn refund(&mut self, now: u64, number: Number) -> u32 {
        let window = self.window;
        let place = self.grants.iter().position(|&(charge, stamp, _)| charge == number && now < stamp + window);
        place.map_or(0, |place| self.grants.remove(place).2)
    }

    fn remaining(&self, now: u64) -> u32 {
        (1..=self.limit).take_while(|&cost| self.fits(now, cost)).last().unwrap_or(0)
    }
}

/// A receipt and the number by which the naive account knows the charge.
struct Held {
    receipt: Receipt,
    number: Number,
}

fn agree(
    quotas: &[Quota],
    mut naive: impl FnMut() -> Box<dyn Naive>,
    limit: u32,
    ops: &[Op],
) -> Result<(), TestCaseError> {
    let clock = MockClock::new();
    let mut builder = Limiter::<str>::builder(quotas[0]).clock(clock.clone());
    for &quota in &quotas[1..] {
        builder = builder.and(quota);
    }
    let limiter = builder.build().expect("quotas that are allowed");
    let (mut account, mut held, mut now) = (naive(), Vec::<Held>::new(), 0_u64);
    for (step, op) in ops.iter().enumerate() {
        clock.advance(nanos(1));
        now += 1;
        match *op {
            Op::Acquire(cost) => {
                let cost = cost.min(limit);
                let decision = limiter.try_acquire_n(KEY, cost).expect("no more than the limit");
                let told = match decision.into_result() {
                    Ok(admission) => Ok(admission.delay()),
                    Err(denial) => Err(denial.retry_after()),
                };
                let expected = account.request(now, cost, None);
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
                let expected = account.request(now, cost, Some(within));
                match (limiter.reserve(KEY, cost, nanos(within)), expected) {
                    (Ok(reservation), Ok((delay, number))) => {
                        prop_assert_eq!(reservation.delay(), nanos(delay), "step {} at {}: {:?}", step, now, op);
                        if keep {
                            held.push(Held { receipt: reservation.commit(), number });
                        } else {
                            prop_assert_eq!(
                                reservation.cancel(),
                                account.refund(now, number),
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
                prop_assert_eq!(back, account.refund(now, number), "step {} at {}: {:?} of {}", step, now, op, number);
            }
            Op::Refund(_) => {}
            Op::Forget => {
                limiter.forget(KEY);
                account = naive();
                for gone in held.drain(..) {
                    prop_assert_eq!(limiter.refund(gone.receipt).expect("of this limiter"), 0);
                }
            }
            Op::Pass(by) => {
                clock.advance(nanos(by));
                now += by;
            }
        }
        prop_assert_eq!(
            limiter.peek_n(KEY, 0).expect("a look").remaining(),
            account.remaining(now),
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

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_log(limit in 1..12_u32, window in 1..60_u64, ops in ops()) {
        let naive = || Box::new(Log { quotas: vec![(limit, window)], permits: vec![], charges: 0 }) as Box<dyn Naive>;
        agree(&[Quota::new(limit, nanos(window))], naive, limit, &ops)?;
    }

    #[test]
    fn several_logs(quotas in prop::collection::vec((1..12_u32, 1..90_u64), 2..4), ops in ops()) {
        let most = quotas.iter().map(|&(limit, _)| limit).min().expect("some");
        let given: Vec<Quota> = quotas.iter().map(|&(limit, window)| Quota::new(limit, nanos(window))).collect();
        let naive = || Box::new(Log { quotas: quotas.clone(), permits: vec![], charges: 0 }) as Box<dyn Naive>;
        agree(&given, naive, most, &ops)?;
    }

    #[test]
    fn a_bucket(capacity in 1..12_u32, permits in 1..4_u32, period in 1..30_u64, start in 0..12_u32, ops in ops()) {
        let start = start.min(capacity);
        let quota = Quota::token_bucket(capacity, permits, nanos(period)).starting_with(start);
        agree(&[quota], || Box::new(Bucket::new(capacity, permits, period, start)), capacity, &ops)?;
    }

    #[test]
    fn a_queue(permits in 1..4_u32, period in 1..30_u64, max_delay in 0..100_u64, ops in ops()) {
        let quota = Quota::leaky_queue(permits, nanos(period), nanos(max_delay));
        let limit = quota.limit();
        let naive = || Box::new(Queue {
            permits: permits.into(), period: period.into(), max_delay, limit, next: 0, places: vec![], charges: 0,
        }) as Box<dyn Naive>;
        agree(&[quota], naive, limit, &ops)?;
    }

    #[test]
    fn a_window(limit in 1..12_u32, window in 1..60_u64, phase in prop::option::of(0..100_u64), ops in ops()) {
        let quota = Quota::fixed_window(limit, nanos(window));
        let quota = phase.map_or(quota, |phase| quota.aligned(nanos(phase)));
        let kind = || phase.map_or(Kind::Floating, Kind::Aligned);
        let naive = || Box::new(Windows { limit, window, kind: kind(), grants: vec![], charges: 0 }) as Box<dyn Naive>;
        agree(&[quota], naive, limit, &ops)?;
    }

    #[test]
    fn a_quantised_log(limit in 1..12_u32, resolution in 1..9_u64, steps in 1..9_u64, ops in ops()) {
        let quota = Quota::quantised_log(limit, nanos(resolution * steps), nanos(resolution));
        let naive = || Box::new(Steps { limit, window: resolution * steps, resolution, grants: vec![], charges: 0 }) as Box<dyn Naive>;
        agree(&[quota], naive, limit, &ops)?;
    }

    #[test]
    fn a_counter(limit in 1..12_u32, window in 1..60_u64, ops in ops()) {
        let quota = Quota::sliding_counter(limit, nanos(window));
        let naive = || Box::new(Windows { limit, window, kind: Kind::Counter(0), grants: vec![], charges: 0 }) as Box<dyn Naive>;
        agree(&[quota], naive, limit, &ops)?;
    }
}
