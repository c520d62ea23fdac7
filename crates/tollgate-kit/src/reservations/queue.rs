//! The leaky bucket as a queue.

use super::{Answer, Naive, Number};

/// When each place leaves that was given, in parts of a nanosecond, until the queue is empty.
pub struct Queue {
    pub permits: i128,
    pub period: i128,
    pub max_delay: u64,
    pub limit: u32,
    pub next: i128,
    pub places: Vec<(Number, u32)>,
    pub charges: usize,
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
        self.owe(now, cost);
        Ok((delay, self.charges))
    }

    fn owe(&mut self, now: u64, cost: u32) {
        self.leave(now);
        self.next += i128::from(cost) * self.period;
        self.charges += 1;
        self.places.push((self.charges, cost));
    }

    fn refund(&mut self, now: u64, number: Number, kept: u32) -> u32 {
        self.leave(now);
        match self.places.last() {
            Some(&(charge, cost)) if charge == number => {
                self.places.pop();
                self.places.extend((kept > 0).then_some((0, kept)));
                self.next -= i128::from(cost - kept) * self.period;
                cost - kept
            }
            _ => 0,
        }
    }

    fn remaining(&self, now: u64) -> u32 {
        if self.delay(now) <= self.max_delay { self.limit } else { 0 }
    }

    fn changed(self, _: u64, fresh: Self) -> Self {
        if self.permits * fresh.period == fresh.permits * self.period && self.max_delay == fresh.max_delay {
            let next = self.next * fresh.permits / self.permits;
            return Self { next, permits: fresh.permits, period: fresh.period, ..self };
        }
        // The next place leaves when it would have.
        let divisor = (1..=fresh.permits).rev().find(|by| fresh.permits % by == 0 && fresh.period % by == 0);
        let (divisor, by) = (divisor.expect("one divides them"), self.permits);
        let next = (self.next * (fresh.permits / divisor) + by - 1).div_euclid(by) * divisor;
        Self { next, charges: self.charges, ..fresh }
    }
}
