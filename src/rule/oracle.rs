//! What each algorithm must answer, worked out the naive way: exact fractions, state kept as a textbook keeps it.
//!
//! A bucket is a level and the time of its last change; a queue is the time at which its next place leaves; windows are lists of
//! everything that was ever granted. There are no anchors, no counts since, and no formula for a wait: only "is it admitted
//! at t?". It takes a quota apart again for itself, without reducing any fraction.

use crate::quota::{Kind, Quota};

#[derive(Debug, Clone)]
pub(super) struct Naive {
    limit: i128,
    state: State,
}

#[derive(Debug, Clone)]
enum State {
    /// What it holds, in units of 1/period of a permit, as of the last grant.
    Bucket {
        permits: i128,
        period: i128,
        held: i128,
        last: i128,
    },
    /// When the next place leaves, in units of 1/permits of a nanosecond.
    Queue {
        permits: i128,
        period: i128,
        max_delay: i128,
        next: i128,
    },
    /// Every grant: when, and how much.
    Windows {
        window: i128,
        boundary: Option<i128>,
        grants: Vec<(i128, i128)>,
    },
    Counter {
        window: i128,
        boundary: i128,
        grants: Vec<(i128, i128)>,
    },
}

fn nanos(duration: core::time::Duration) -> i128 {
    i128::try_from(duration.as_nanos()).expect("a test's durations fit")
}

/// The sum of what was granted from one time until just before another.
fn sum(grants: &[(i128, i128)], from: i128, until: i128) -> i128 {
    grants.iter().filter(|(time, _)| (from..until).contains(time)).map(|(_, cost)| cost).sum()
}

impl Naive {
    pub(super) fn new(quota: Quota, origin: u64) -> Self {
        let limit = i128::from(quota.limit());
        let boundary = quota.phase().map(|phase| i128::from(origin) + nanos(phase));
        let bucket = |permits: u32, per, start: u32| State::Bucket {
            permits: permits.into(),
            period: nanos(per),
            held: i128::from(start) * nanos(per),
            last: origin.into(),
        };
        let state = match quota.kind() {
            Kind::Log => unreachable!("the log has an oracle of its own"),
            Kind::TokenBucket { refill, per } => bucket(refill, per, quota.start().unwrap_or(quota.limit())),
            Kind::LeakyBucket { leak, per } => bucket(leak, per, quota.limit()),
            Kind::LeakyQueue { leak, per, max_delay } => {
                State::Queue { permits: leak.into(), period: nanos(per), max_delay: nanos(max_delay), next: 0 }
            }
            Kind::FixedWindow => State::Windows { window: nanos(quota.window()), boundary, grants: vec![] },
            Kind::SlidingCounter { window } => {
                State::Counter { window: nanos(window), boundary: boundary.unwrap_or(origin.into()), grants: vec![] }
            }
        };
        Self { limit, state }
    }

    /// The key is seen for the first time, which is when its bucket begins to be refilled.
    pub(super) fn first_seen(&mut self, now: u64) {
        if let State::Bucket { last, .. } = &mut self.state {
            *last = now.into();
        }
    }

    pub(super) fn admits(&self, now: u64, cost: u32) -> bool {
        let (now, cost) = (i128::from(now), i128::from(cost));
        if cost > self.limit {
            return false;
        }
        match &self.state {
            State::Bucket { period, .. } => self.held_at(now) >= cost * period,
            State::Queue { permits, max_delay, next, .. } => next - now * permits <= max_delay * permits,
            State::Windows { .. } => self.granted_in_window_of(now) + cost <= self.limit,
            State::Counter { window, boundary, grants } => {
                let start = now - (now - boundary).rem_euclid(*window);
                let current = sum(grants, start, start + window);
                let previous = sum(grants, start - window, start);
                // As fractions over the window.
                previous * (start + window - now) + (current + cost) * window <= self.limit * window
            }
        }
    }

    fn held_at(&self, now: i128) -> i128 {
        let State::Bucket { permits, period, held, last } = &self.state else { unreachable!("asked of buckets") };
        (held + (now - last) * permits).min(self.limit * period)
    }

    /// Walks through all grants, opening windows as they come.
    fn granted_in_window_of(&self, now: i128) -> i128 {
        let State::Windows { window, boundary, grants } = &self.state else { unreachable!("asked of windows") };
        if let Some(boundary) = boundary {
            let start = now - (now - boundary).rem_euclid(*window);
            return sum(grants, start, start + window);
        }
        let mut running: Option<(i128, i128)> = None;
        for &(time, cost) in grants {
            running = match running {
                Some((start, count)) if time < start + window => Some((start, count + cost)),
                _ => Some((time, cost)),
            };
        }
        running.map_or(0, |(start, count)| if now < start + window { count } else { 0 })
    }

    pub(super) fn grant(&mut self, time: u64, amount: u32) {
        let (now, cost) = (i128::from(time), i128::from(amount));
        let held_now = matches!(self.state, State::Bucket { .. }).then(|| self.held_at(now));
        match &mut self.state {
            State::Bucket { period, held, last, .. } => {
                *held = held_now.expect("a bucket") - cost * *period;
                *last = now;
            }
            State::Queue { permits, period, next, .. } => *next = (*next).max(now * *permits) + cost * *period,
            State::Windows { grants, .. } | State::Counter { grants, .. } => grants.push((now, cost)),
        }
    }

    /// The largest cost that is admitted, found by halving.
    pub(super) fn most(&self, now: u64) -> u32 {
        let (mut admitted, mut denied) = (0, u32::try_from(self.limit).expect("a limit") + 1);
        while denied - admitted > 1 {
            let cost = admitted + (denied - admitted) / 2;
            *(if self.admits(now, cost) { &mut admitted } else { &mut denied }) = cost;
        }
        admitted
    }

    /// How long until the first place of a request leaves, rounded up.
    pub(super) fn delay(&self, now: u64) -> i128 {
        match &self.state {
            State::Queue { permits, next, .. } => {
                let ahead = next - i128::from(now) * permits;
                (ahead.max(0) + permits - 1) / permits
            }
            _ => 0,
        }
    }

    /// Nothing that was granted matters any more.
    pub(super) fn is_free(&self, now: u64) -> bool {
        match &self.state {
            State::Bucket { .. } | State::Windows { .. } | State::Counter { .. } => {
                i128::from(self.most(now)) == self.limit
            }
            State::Queue { permits, next, .. } => *next <= i128::from(now) * permits,
        }
    }
}
