//! What every limit would have done to a log, all limits at once.
//!
//! Each request of a key takes the lowest slot of that key that is free, and keeps it for one
//! window. At a limit of N the limiter admits exactly the requests whose slot is at most N:
//!
//! - Assume it of all requests before this one. The permits that are live at a limit of N are then
//!   those of the slots from 1 to N that are taken. The limiter admits if fewer than N are live,
//!   that is if one of these slots is free, that is if the lowest free slot is at most N.
//!
//! So one pass tells the denials of every limit: they are the requests with a higher slot. A larger
//! limit never denies more. The highest slot of a key is the most that any window of it held, and
//! the least limit that denies none of its requests.
//!
//! All of this is true of requests that cost one permit. With other costs a larger limit may deny
//! more, since it admits a large request that keeps small ones out; `suggest` therefore takes no
//! costs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::share::{Of, Share};
use crate::log::Log;
use crate::time::Nanos;
use crate::words::count_of;

/// The times of each key's requests, in order.
#[derive(Debug)]
pub(super) struct TimesByKey {
    times: Vec<Nanos>,
    /// Where each key's times end.
    ends: Vec<usize>,
}

impl TimesByKey {
    /// Of the first dimension of a log.
    pub(super) fn new(log: &Log) -> Self {
        let numbers = || log.events().filter_map(|event| Some((log.key(&event, 0)? as usize, event.time)));
        let mut counts = vec![0; log.keys[0].len()];
        numbers().for_each(|(key, _)| counts[key] += 1);
        // Where the next time of each key goes; in the end, where its times end.
        let mut next = Vec::with_capacity(counts.len());
        let mut start = 0;
        for count in counts {
            next.push(start);
            start += count;
        }
        let mut times = vec![0; start];
        for (key, time) in numbers() {
            times[next[key]] = time;
            next[key] += 1;
        }
        Self { times, ends: next }
    }

    pub(super) fn of(&self, key: usize) -> &[Nanos] {
        let start = if key == 0 { 0 } else { self.ends[key - 1] };
        &self.times[start..self.ends[key]]
    }

    pub(super) fn keys(&self) -> usize {
        self.ends.len()
    }
}

/// Shows the slot of each request of one key, the first slot being 1.
pub(super) fn each_slot(times: &[Nanos], window: u64, mut slot_of: impl FnMut(u32)) {
    let mut free: BinaryHeap<Reverse<u32>> = BinaryHeap::new();
    // The slots of the requests that are live, oldest first: as many as a window holds.
    let mut live = std::collections::VecDeque::new();
    let mut slots = 0;
    for &time in times {
        while let Some(&(since, slot)) = live.front() {
            if time.abs_diff(since) < window {
                break;
            }
            free.push(Reverse(slot));
            live.pop_front();
        }
        let slot = free.pop().map_or_else(
            || {
                slots += 1;
                slots
            },
            |Reverse(slot)| slot,
        );
        live.push_back((time, slot));
        slot_of(slot);
    }
}

/// What windows of one length held.
#[derive(Debug)]
pub(super) struct Spread {
    pub(super) window: u64,
    /// The most that any window of each key held, by the keys' numbers.
    pub(super) peaks: Vec<u32>,
    /// The same, ascending.
    sorted: Vec<u32>,
    /// Requests by their slots: the first has slot 1.
    taken: Vec<u64>,
}

impl Spread {
    pub(super) fn new(times: &TimesByKey, window: u64) -> Self {
        let (mut peaks, mut taken) = (Vec::with_capacity(times.keys()), Vec::new());
        for key in 0..times.keys() {
            let mut peak = 0;
            each_slot(times.of(key), window, |slot| {
                peak = peak.max(slot);
                let at = slot as usize - 1;
                if at == taken.len() {
                    taken.push(0);
                }
                taken[at] += 1;
            });
            peaks.push(peak);
        }
        let mut sorted = peaks.clone();
        sorted.sort_unstable();
        Self { window, peaks, sorted, taken }
    }

    /// The most that any window of any key held.
    pub(super) fn most(&self) -> u32 {
        self.sorted.last().copied().unwrap_or(0)
    }

    /// The least number that so many of a thousand keys never passed: the nearest rank, without
    /// interpolation.
    pub(super) fn quantile(&self, per_mille: usize) -> u32 {
        let rank = (self.peaks.len() * per_mille).div_ceil(1000).max(1);
        self.sorted[rank - 1]
    }

    /// How many requests that limit denies.
    pub(super) fn denied(&self, limit: u32) -> u64 {
        self.taken.iter().skip(limit as usize).sum()
    }

    /// Of how many keys it denies at least one.
    pub(super) fn keys_hit(&self, limit: u32) -> usize {
        self.sorted.len() - self.sorted.partition_point(|&peak| peak <= limit)
    }

    /// The least limit of which `enough` is true. It has to be true of every larger limit as well,
    /// and of one that denies nothing.
    pub(super) fn least_limit(&self, enough: impl Fn(u64, usize) -> bool) -> u32 {
        let (mut low, mut high) = (1, self.most().max(1));
        while low < high {
            let middle = low + (high - low) / 2;
            if enough(self.denied(middle), self.keys_hit(middle)) { high = middle } else { low = middle + 1 }
        }
        high
    }
}

/// The least limit of a window that denies no more than the share.
pub(super) fn least_limit(spread: &Spread, log: &Log, share: Share, of: Of) -> u32 {
    let (requests, keys) = (count_of(log.requests()), count_of(log.keys[0].len()));
    spread.least_limit(|denied, hit| match of {
        Of::Requests => share.allows(denied, requests),
        Of::Keys => share.allows(count_of(hit), keys),
    })
}

/// A key of which a limit denies some requests.
#[derive(Debug)]
pub(super) struct HitKey {
    pub(super) key: usize,
    pub(super) denied: u64,
    pub(super) requests: u64,
}

impl Spread {
    /// The keys that a limit hits, in the order of their numbers.
    pub(super) fn hit(&self, times: &TimesByKey, limit: u32) -> Vec<HitKey> {
        let over = self.peaks.iter().enumerate().filter(|(_, peak)| **peak > limit);
        over.map(|(key, _)| {
            let (mut denied, mut requests) = (0, 0);
            each_slot(times.of(key), self.window, |slot| {
                denied += u64::from(slot > limit);
                requests += 1;
            });
            HitKey { key, denied, requests }
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many a limit denies, from its definition.
    fn denied(times: &[Nanos], window: u64, limit: usize) -> usize {
        let mut granted: Vec<Nanos> = Vec::new();
        for &time in times {
            if granted.iter().filter(|&&stamp| time.abs_diff(stamp) < window).count() < limit {
                granted.push(time);
            }
        }
        times.len() - granted.len()
    }

    #[test]
    fn slots_tell_what_every_limit_denies() {
        let mut state = 1_u64;
        for window in [1, 7, 30] {
            for _ in 0..40 {
                let mut time = -50;
                let mut times = Vec::new();
                for _ in 0..60 {
                    state = state.wrapping_mul(0xda94_2042_e4dd_58b5);
                    time += i64::try_from((state >> 40) % 6).unwrap();
                    times.push(time);
                }
                let mut slots = Vec::new();
                each_slot(&times, window, |slot| slots.push(slot as usize));
                for limit in 1..=times.len() {
                    let higher = slots.iter().filter(|&&slot| slot > limit).count();
                    assert_eq!(higher, denied(&times, window, limit), "{window} {limit} {times:?}");
                }
            }
        }
    }
}
