//! What each algorithm beside the log must answer, worked out the naive way: exact fractions, state
//! kept as a textbook keeps it.
//!
//! A bucket is a level and the time of its last change; a queue is the time at which its next place
//! leaves; windows are lists of everything that was ever granted. There are no anchors, no counts
//! since, and no formula for a wait: only "is it admitted at t?". No fraction is reduced, and no
//! type of the library's is known here.
//!
//! # A clock that was set back
//! Nothing is credited twice. A bucket has less by what flows in from the time that is shown to its
//! last change, and may lack more than it can hold. A queue says how long it takes from the time
//! that is shown. Of windows a time counts as no earlier than what the state is known from: the start of
//! the newest window that stands still in which anything was granted. Of a quantised log it is the
//! first moment of the newest step in which anything was granted.

/// An algorithm and its numbers; times are in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meter {
    TokenBucket {
        capacity: u32,
        refill: u32,
        per: u64,
        start: u32,
    },
    LeakyBucket {
        capacity: u32,
        leak: u32,
        per: u64,
    },
    LeakyQueue {
        leak: u32,
        per: u64,
        max_delay: u64,
    },
    FixedWindow {
        limit: u32,
        window: u64,
        /// After the origin of the clock; without it a window begins with a request.
        phase: Option<u128>,
    },
    SlidingCounter {
        limit: u32,
        window: u64,
        phase: u128,
    },
    QuantisedLog {
        limit: u32,
        window: u64,
        resolution: u64,
    },
}

impl Meter {
    /// The most that can be had at once.
    pub fn limit(self) -> u32 {
        match self {
            Self::TokenBucket { capacity, .. } | Self::LeakyBucket { capacity, .. } => capacity,
            Self::FixedWindow { limit, .. } | Self::SlidingCounter { limit, .. } | Self::QuantisedLog { limit, .. } => {
                limit
            }
            Self::LeakyQueue { leak, per, max_delay } => {
                let waiting = u128::from(max_delay) * u128::from(leak) / u128::from(per);
                u32::try_from(waiting + 1).expect("a queue that is allowed")
            }
        }
    }

    /// Whether a key that was never seen finds less than one that is left alone.
    pub fn starts_low(self) -> bool {
        matches!(self, Self::TokenBucket { capacity, start, .. } if start < capacity)
    }
}

/// One key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Naive {
    meter: Meter,
    limit: i128,
    state: State,
    /// Where times begin to count, of windows and quantised logs.
    since: i128,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// What it holds, in units of 1/period of a permit, as of the last grant: less than nothing if
    /// the clock went back.
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
    /// Every grant: its stamp, which is the first boundary that is no earlier, and how much.
    Stamps {
        window: i128,
        resolution: i128,
        boundary: i128,
        grants: Vec<(i128, i128)>,
    },
}

fn wide(number: u128) -> i128 {
    i128::try_from(number).expect("a test's numbers fit")
}

/// The sum of what was granted from one time until just before another.
fn sum(grants: &[(i128, i128)], from: i128, until: i128) -> i128 {
    grants.iter().filter(|(time, _)| (from..until).contains(time)).map(|(_, cost)| cost).sum()
}

impl Naive {
    /// A key that is first seen at `time`, under a clock with this origin.
    pub fn new(meter: Meter, origin: u64, time: u64) -> Self {
        let boundary = |phase: u128| wide(phase + u128::from(origin));
        let bucket = |permits: u32, per: u64, start: u32| State::Bucket {
            permits: permits.into(),
            period: per.into(),
            held: i128::from(start) * i128::from(per),
            last: time.into(),
        };
        let state = match meter {
            Meter::TokenBucket { refill, per, start, .. } => bucket(refill, per, start),
            Meter::LeakyBucket { capacity, leak, per } => bucket(leak, per, capacity),
            Meter::LeakyQueue { leak, per, max_delay } => {
                State::Queue { permits: leak.into(), period: per.into(), max_delay: max_delay.into(), next: 0 }
            }
            Meter::FixedWindow { window, phase, .. } => {
                State::Windows { window: window.into(), boundary: phase.map(boundary), grants: vec![] }
            }
            Meter::SlidingCounter { window, phase, .. } => {
                State::Counter { window: window.into(), boundary: boundary(phase), grants: vec![] }
            }
            Meter::QuantisedLog { window, resolution, .. } => State::Stamps {
                window: window.into(),
                resolution: resolution.into(),
                boundary: boundary(0),
                grants: vec![],
            },
        };
        Self { meter, limit: meter.limit().into(), state, since: 0 }
    }

    pub fn admits(&self, time: u64, cost: u32) -> bool {
        self.admits_at(time.into(), cost)
    }

    /// Whether so many permits are admitted at a time that may be past all readings.
    pub fn admits_at(&self, time: u128, cost: u32) -> bool {
        let (shown, cost) = (wide(time), i128::from(cost));
        let now = shown.max(self.since);
        if cost == 0 || cost > self.limit {
            return cost == 0;
        }
        match &self.state {
            State::Bucket { period, .. } => self.held_at(now) >= cost * period,
            State::Queue { permits, max_delay, next, .. } => next - shown * permits <= max_delay * permits,
            State::Windows { .. } => self.granted_in_window_of(now) + cost <= self.limit,
            State::Counter { window, boundary, grants } => {
                let start = now - (now - boundary).rem_euclid(*window);
                let current = sum(grants, start, start + window);
                let previous = sum(grants, start - window, start);
                // As fractions over the window.
                previous * (start + window - now) + (current + cost) * window <= self.limit * window
            }
            State::Stamps { window, grants, .. } => {
                let live = grants.iter().filter(|(stamp, _)| now < stamp + window);
                live.map(|(_, cost)| cost).sum::<i128>() + cost <= self.limit
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

    /// Charges what was admitted.
    pub fn grant(&mut self, time: u64, amount: u32) {
        let (now, cost) = (i128::from(time).max(self.since), i128::from(amount));
        let held_now = matches!(self.state, State::Bucket { .. }).then(|| self.held_at(now));
        match &mut self.state {
            State::Bucket { period, held, last, .. } => {
                *held = held_now.expect("a bucket") - cost * *period;
                *last = now;
            }
            State::Queue { permits, period, next, .. } => *next = (*next).max(now * *permits) + cost * *period,
            State::Windows { boundary: None, grants, .. } => grants.push((now, cost)),
            State::Windows { window, boundary: Some(boundary), grants }
            | State::Counter { window, boundary, grants } => {
                grants.push((now, cost));
                self.since = now - (now - *boundary).rem_euclid(*window);
            }
            State::Stamps { resolution, boundary, grants, .. } => {
                let stamp = now + (*boundary - now).rem_euclid(*resolution);
                grants.push((stamp, cost));
                self.since = self.since.max(stamp - *resolution + 1);
            }
        }
    }

    /// The largest cost that is admitted, found by halving.
    pub fn most(&self, now: u64) -> u32 {
        let (mut admitted, mut denied) = (0, u32::try_from(self.limit).expect("a limit") + 1);
        while denied - admitted > 1 {
            let cost = admitted + (denied - admitted) / 2;
            *(if self.admits(now, cost) { &mut admitted } else { &mut denied }) = cost;
        }
        admitted
    }

    /// How long until the first place of a request leaves, rounded up.
    pub fn delay(&self, now: u64) -> i128 {
        match &self.state {
            State::Queue { permits, next, .. } => {
                let ahead = next - i128::from(now) * permits;
                (ahead.max(0) + permits - 1) / permits
            }
            _ => 0,
        }
    }

    /// Nothing that was granted matters any more.
    pub fn is_free(&self, time: u128) -> bool {
        match &self.state {
            State::Queue { permits, next, .. } => *next <= wide(time) * permits,
            _ => self.admits_at(time, self.meter.limit()),
        }
    }

    /// Whether the key is no different from one that was never seen.
    pub fn is_as_new(&self, time: u64) -> bool {
        !self.meter.starts_low() && self.is_free(time.into())
    }
}
