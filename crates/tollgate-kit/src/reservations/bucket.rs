//! The token bucket, which is also the leaky bucket.

use super::{Answer, Naive, Number};

/// What a bucket holds, in parts of a permit; less than nothing while it owes.
pub struct Bucket {
    capacity: i128,
    permits: i128,
    period: i128,
    held: i128,
    start: i128,
    /// Of a key that was never seen, that is when it is.
    as_of: Option<i128>,
    /// Charges since it was full, and what has been given back of any of them.
    since_full: Vec<(Number, i128)>,
    /// Whether one of them had to wait, so that it may owe to reservations.
    waited: bool,
    refunded: Vec<Number>,
    charges: usize,
}

impl Bucket {
    pub fn new(capacity: u32, permits: u32, period: u64, start: u32) -> Self {
        let period = i128::from(period);
        Self {
            capacity: capacity.into(),
            permits: permits.into(),
            period,
            held: i128::from(start) * period,
            start: start.into(),
            as_of: None,
            since_full: vec![],
            waited: false,
            refunded: vec![],
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
            self.waited = false;
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
        self.owe(now, cost);
        self.waited |= wait > 0;
        Ok((wait, self.charges))
    }

    fn owe(&mut self, now: u64, cost: u32) {
        self.move_to(now);
        self.held -= i128::from(cost) * self.period;
        self.charges += 1;
        self.since_full.push((self.charges, cost.into()));
    }

    fn refund(&mut self, now: u64, number: Number, kept: u32) -> u32 {
        if self.as_of.is_none() {
            return 0;
        }
        self.move_to(now);
        let Some(place) = self.since_full.iter().position(|&(charge, _)| charge == number) else { return 0 };
        let (cost, kept) = (self.since_full[place].1, i128::from(kept));
        let back = if self.held >= 0 || !self.waited {
            cost - kept
        } else if self.refunded.iter().any(|&charge| charge >= number) {
            0
        } else {
            let later: i128 = self.since_full[place + 1..].iter().map(|&(_, cost)| cost).sum();
            (cost - kept).min((self.capacity - later - kept).max(0))
        };
        if back > 0 {
            // As of any charge that was there by then.
            self.refunded.push(self.charges);
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
        let same_rate = self.permits * fresh.period == fresh.permits * self.period;
        if same_rate && (self.capacity, self.start) == (fresh.capacity, fresh.start) {
            // As many permits flow, in as few parts: it is the same bucket.
            let parts = |amount: i128| amount * fresh.period / self.period;
            return Self { held: parts(self.held), permits: fresh.permits, period: fresh.period, ..self };
        }
        // A key whose bucket is full is a new key, unless new keys have less.
        if self.start == self.capacity && self.held_at(now) == self.capacity * self.period {
            return Self { charges: self.charges, ..fresh };
        }
        // In the parts in which the new bucket flows, rounded up.
        let divisor = greatest_common_divisor(fresh.permits, fresh.period);
        let parts = |amount: i128| {
            let (times, by) = (fresh.period / divisor, self.period);
            (amount * times + by - 1) / by * divisor
        };
        let held = fresh.capacity * fresh.period - parts(self.capacity * self.period - self.held_at(now));
        Self { held, as_of: Some(now.into()), charges: self.charges, ..fresh }
    }
}

fn greatest_common_divisor(greater: i128, less: i128) -> i128 {
    if less == 0 { greater } else { greatest_common_divisor(less, greater % less) }
}
