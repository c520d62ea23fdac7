//! The sliding window log.

use super::{Answer, Naive, Number};

/// A list of permits: the number of the charge, or zero for a request that was refused and counts,
/// and the stamp.
pub struct Log {
    pub counts_refused: bool,
    /// Limits and windows.
    pub quotas: Vec<(u32, u64)>,
    pub permits: Vec<(Number, u64)>,
    pub charges: usize,
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
        let ahead = if self.counts_refused { 0 } else { self.widest() };
        let (at, within) = (self.fits_at(now, cost), within.unwrap_or(0).min(ahead));
        if at - now > within {
            if !self.counts_refused {
                return Err(at - now - within);
            }
            self.permits.extend((0..cost).map(|_| (0, now)));
            return Err(self.fits_at(now, cost) - now);
        }
        self.charges += 1;
        self.permits.extend((0..cost).map(|_| (self.charges, at)));
        Ok((at - now, self.charges))
    }

    /// More than the limit at one time denies no more than the limit does.
    fn owe(&mut self, now: u64, cost: u32) {
        let stamp = self.permits.iter().map(|&(_, stamp)| stamp).fold(now, u64::max);
        let most = self.quotas.iter().map(|&(limit, _)| limit).max().expect("a quota");
        // Of no charge that is refunded.
        self.charges += 1;
        self.permits.extend((0..cost.min(most)).map(|_| (self.charges, stamp)));
    }

    fn refund(&mut self, now: u64, number: Number, kept: u32) -> u32 {
        let Some(&(_, stamp)) = self.permits.iter().find(|&&(charge, _)| charge == number) else { return 0 };
        if now >= stamp + self.widest() {
            return 0;
        }
        let cost = self.permits.iter().filter(|&&(charge, _)| charge == number).count() - kept as usize;
        // Of refused requests, no more are remembered. Permits with one stamp are as good as each
        // other.
        let most = self.quotas.iter().map(|&(limit, _)| 2 * limit as usize).max().expect("a quota");
        let mut first = if self.counts_refused { self.permits.len().saturating_sub(most) } else { 0 };
        let mut back = 0;
        for wanted in [Some(number), Some(0), None] {
            let mut place = first;
            while place < self.permits.len() && back < cost {
                let (charge, at) = self.permits[place];
                let is_other = wanted.is_some_and(|wanted| charge != wanted) || at != stamp;
                if is_other || !self.counts_refused && charge != number {
                    place += 1;
                } else {
                    self.permits.remove(place);
                    back += 1;
                    first = first.min(self.permits.len());
                }
            }
        }
        u32::try_from(back).expect("few")
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
