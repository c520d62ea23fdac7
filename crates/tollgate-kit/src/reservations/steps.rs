//! The quantised log.

use super::{Answer, Naive, Number};

/// A log whose stamps are rounded up: the number of each charge, the stamp and the permits.
pub struct Steps {
    pub limit: u32,
    pub window: u64,
    pub resolution: u64,
    pub grants: Vec<(Number, u64, u32)>,
    pub charges: usize,
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

    /// More than the limit in a step denies no more than the limit does.
    fn owe(&mut self, now: u64, cost: u32) {
        self.grants.push((0, now.next_multiple_of(self.resolution), cost.min(self.limit)));
    }

    fn refund(&mut self, now: u64, number: Number, kept: u32) -> u32 {
        let window = self.window;
        let place = self.grants.iter().position(|&(charge, stamp, _)| charge == number && now < stamp + window);
        place.map_or(0, |place| {
            let (_, stamp, permits) = self.grants[place];
            self.grants[place] = (0, stamp, kept);
            permits - kept
        })
    }

    fn remaining(&self, now: u64) -> u32 {
        (1..=self.limit).take_while(|&cost| self.fits(now, cost)).last().unwrap_or(0)
    }

    fn changed(self, _now: u64, fresh: Self) -> Self {
        Self { limit: fresh.limit, ..self }
    }
}
