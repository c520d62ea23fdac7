//! Runs under a token bucket or a fixed window, checked as those of a log are: at fault is what no
//! choice of stamps within the bounds would allow.
//!
//! What is counted here is what a bucket *lacks*: nothing when it is full, the capacity when it is
//! empty. All in exact integers, as multiples of 1/period of a permit.

use std::collections::BTreeMap;

use super::{Event, Told};
use crate::oracle::meter::Meter;

/// A full bucket of `capacity`, refilled by `refill` every `per` nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    capacity: u32,
    refill: u32,
    per: u64,
}

/// `limit` permits from the first request, or from a multiple of the window, until the window's
/// end.
#[derive(Debug, Clone, Copy)]
struct Window {
    limit: u32,
    window: u64,
    aligned: bool,
}

/// At most `limit` permits in any `window`, by stamps that are rounded up to multiples of
/// `resolution`.
#[derive(Debug, Clone, Copy)]
struct Steps {
    limit: u32,
    window: u64,
    resolution: u64,
}

impl Meter {
    /// Gives how many permits were granted in a run that is right. A bucket is full at first; an
    /// aligned window begins at a multiple of its length.
    pub fn check(self, events: &[Event], error: u64) -> Result<i128, Fault> {
        match self {
            Self::TokenBucket { capacity, refill, per, start } if start == capacity => {
                Bucket { capacity, refill, per }.check(events, error)
            }
            Self::FixedWindow { limit, window, phase: phase @ (None | Some(0)) } => {
                Window { limit, window, aligned: phase.is_some() }.check(events, error)
            }
            Self::QuantisedLog { limit, window, resolution } => {
                Steps { limit, window, resolution }.check(events, error)
            }
            other => panic!("no checker of {other:?}"),
        }
    }
}

/// What is wrong with a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// So many permits of a key were certainly granted between these times.
    OverAdmitted {
        key: u32,
        from: i128,
        until: i128,
        permits: i128,
    },
    /// However the stamps lay, as much was there as was asked for.
    Unexplained(Event),
    /// It would have passed a nanosecond sooner, or by no choice of stamps at the time advised.
    AdvisedTooLate(Event),
    AdvisedTooEarly(Event),
}

#[derive(Debug, Clone, Copy)]
struct Grant {
    earliest: i128,
    latest: i128,
    permits: i128,
}

/// A call that was denied: when, at the earliest and the latest, and how long it was told to wait.
struct Denied {
    begun: i128,
    ended: i128,
    wait: i128,
    cost: i128,
}

fn keys(events: &[Event]) -> BTreeMap<u32, Vec<Event>> {
    let mut keys: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
    for &event in events {
        keys.entry(event.key).or_default().push(event);
    }
    keys
}

fn grants(events: &[Event], error: u64) -> Vec<Grant> {
    let admitted = events.iter().filter(|event| event.told == Told::Admitted);
    let grant = |event: &Event| Grant {
        earliest: i128::from(event.before) - i128::from(error),
        latest: i128::from(event.after) + i128::from(error),
        permits: event.cost.into(),
    };
    admitted.map(grant).collect()
}

fn denials(events: &[Event], error: u64) -> impl Iterator<Item = (Event, Denied)> {
    events.iter().filter_map(move |&event| {
        let Told::Denied { retry_after, .. } = event.told else { return None };
        let (begun, ended) =
            (i128::from(event.before) - i128::from(error), i128::from(event.after) + i128::from(error));
        Some((event, Denied { begun, ended, wait: retry_after.into(), cost: event.cost.into() }))
    })
}

/// In no interval may there be more than it allows. An interval may start at the earliest and end
/// at the latest stamp of a grant.
fn check_intervals(key: u32, grants: &[Grant], allows: impl Fn(i128, i128) -> bool) -> Result<(), Fault> {
    let mut by_latest = grants.to_vec();
    by_latest.sort_by_key(|grant| grant.latest);
    for from in grants.iter().map(|grant| grant.earliest) {
        let mut permits = 0;
        let first = by_latest.partition_point(|grant| grant.latest < from);
        for grant in by_latest[first..].iter().filter(|grant| grant.earliest >= from) {
            permits += grant.permits;
            if !allows(permits, grant.latest - from) {
                return Err(Fault::OverAdmitted { key, from, until: grant.latest, permits });
            }
        }
    }
    Ok(())
}

impl Bucket {
    fn check(self, events: &[Event], error: u64) -> Result<i128, Fault> {
        let (capacity, refill, per) = (i128::from(self.capacity), i128::from(self.refill), i128::from(self.per));
        let mut granted = 0;
        for (key, events) in keys(events) {
            let grants = grants(&events, error);
            check_intervals(key, &grants, |permits, length| permits * per <= capacity * per + refill * length)?;
            let (late, early) =
                (self.lacking(&grants, |grant| grant.latest), self.lacking(&grants, |grant| grant.earliest));
            let begun_by = Sums::new(&grants, |grant| grant.earliest);
            let done_by = Sums::new(&grants, |grant| grant.latest);
            // The first so many by their earliest stamps had all been done by then.
            let mut all_done: Vec<i128> = early.iter().map(|&(_, _, latest)| latest).collect();
            for position in 1..all_done.len() {
                all_done[position] = all_done[position].max(all_done[position - 1]);
            }
            for (event, Denied { begun, ended, wait, cost }) in denials(&events, error) {
                let room = (capacity - cost) * per;
                let at = |known: &[(i128, i128, i128)], count: usize, time: i128| {
                    count.checked_sub(1).map_or(0, |last| (known[last].1 - refill * (time - known[last].0)).max(0))
                };
                // At most: stamped as late as can be, and all that may have come during the call
                // besides.
                let done = late.partition_point(|&(latest, ..)| latest <= begun);
                let meanwhile = begun_by.up_to(ended) - done_by.up_to(begun);
                let most = at(&late, done, begun) + meanwhile * per;
                if most <= room {
                    return Err(Fault::Unexplained(event));
                }
                // What was stamped by a clock that is ahead of this one has less time to come back.
                let passes = (wait - 1 - 2 * i128::from(error)).max(0);
                if most - refill * passes <= room {
                    return Err(Fault::AdvisedTooLate(event));
                }
                // At least: of those that had certainly been granted, stamped as early as can be.
                let done = all_done.partition_point(|&latest| latest < begun);
                if wait == 0 || at(&early, done, ended + wait) > room {
                    return Err(Fault::AdvisedTooEarly(event));
                }
            }
            granted += grants.iter().map(|grant| grant.permits).sum::<i128>();
        }
        Ok(granted)
    }

    /// What the bucket lacks right after each grant, if they are stamped so: (stamp, lacking,
    /// latest stamp), in the order of stamps.
    fn lacking(self, grants: &[Grant], stamp: impl Fn(&Grant) -> i128) -> Vec<(i128, i128, i128)> {
        let mut grants = grants.to_vec();
        grants.sort_by_key(&stamp);
        let mut known: Vec<(i128, i128, i128)> = vec![];
        for grant in grants {
            let (time, lacking, _) = known.last().copied().unwrap_or((stamp(&grant), 0, 0));
            let refilled = i128::from(self.refill) * (stamp(&grant) - time);
            let lacking = (lacking - refilled).max(0) + grant.permits * i128::from(self.per);
            known.push((stamp(&grant), lacking, grant.latest));
        }
        known
    }
}

/// Permits by the time of their grants.
struct Sums(Vec<(i128, i128)>);

impl Sums {
    fn new(grants: &[Grant], time: impl Fn(&Grant) -> i128) -> Self {
        let mut sums: Vec<(i128, i128)> = grants.iter().map(|grant| (time(grant), grant.permits)).collect();
        sums.sort_unstable();
        let mut sum = 0;
        for (_, permits) in &mut sums {
            sum += *permits;
            *permits = sum;
        }
        Self(sums)
    }

    fn up_to(&self, end: i128) -> i128 {
        self.0.partition_point(|&(time, _)| time <= end).checked_sub(1).map_or(0, |last| self.0[last].1)
    }
}

impl Window {
    fn check(self, events: &[Event], error: u64) -> Result<i128, Fault> {
        let (limit, window) = (i128::from(self.limit), i128::from(self.window));
        let mut granted = 0;
        for (key, events) in keys(events) {
            let mut grants = grants(&events, error);
            grants.sort_by_key(|grant| grant.earliest);
            if self.aligned {
                let mut certainly: BTreeMap<i128, i128> = BTreeMap::new();
                for grant in grants.iter().filter(|grant| grant.earliest / window == grant.latest / window) {
                    let permits = certainly.entry(grant.earliest / window).or_default();
                    *permits += grant.permits;
                    if *permits > limit {
                        let from = grant.earliest / window * window;
                        return Err(Fault::OverAdmitted { key, from, until: from + window, permits: *permits });
                    }
                }
            } else {
                // The window that had begun before, and those that can begin from then on, a
                // window's length apart.
                check_intervals(key, &grants, |permits, length| permits <= limit * (length / window + 2))?;
            }
            for (event, denied) in denials(&events, error) {
                self.explains(&grants, &denied).map_err(|fault| fault(event))?;
            }
            granted += grants.iter().map(|grant| grant.permits).sum::<i128>();
        }
        Ok(granted)
    }

    /// A window must be full that ends when the denial says.
    fn explains(self, grants: &[Grant], denied: &Denied) -> Result<(), fn(Event) -> Fault> {
        let (limit, window) = (i128::from(self.limit), i128::from(self.window));
        let Denied { begun, ended, wait, cost } = *denied;
        let begun_by_then = &grants[..grants.partition_point(|grant| grant.earliest <= ended)];
        let may_fall = |from: i128, until: i128| {
            let within = begun_by_then.iter().filter(|grant| grant.latest >= from && grant.earliest < until);
            within.map(|grant| grant.permits).sum::<i128>()
        };
        // When the window of the denial began, at the earliest and the latest.
        let (first, last) = (begun + wait - window, ended + wait - window);
        if wait == 0 {
            return Err(Fault::AdvisedTooEarly);
        }
        let full = |from: i128, until: i128| may_fall(from, until) > limit - cost;
        if self.aligned {
            let starts = (first.div_euclid(window)..=last.div_euclid(window)).map(|number| number * window);
            let mut starts = starts.filter(|start| (first..=last).contains(start));
            return if starts.any(|start| full(start, start + window)) { Ok(()) } else { Err(Fault::Unexplained) };
        }
        let mut opens = begun_by_then.iter().filter(|grant| grant.latest >= first && grant.earliest <= last);
        if opens.any(|grant| full(grant.earliest.max(first), grant.latest.min(last) + window)) {
            Ok(())
        } else {
            Err(Fault::Unexplained)
        }
    }
}

impl Steps {
    fn check(self, events: &[Event], error: u64) -> Result<i128, Fault> {
        let (limit, window, resolution) =
            (i128::from(self.limit), i128::from(self.window), i128::from(self.resolution));
        let free_at = |reading: i128| reading + (-reading).rem_euclid(resolution) + window;
        let mut granted = 0;
        for (key, events) in keys(events) {
            let mut grants = grants(&events, error);
            // No more than the log, whose stamps are not rounded.
            check_intervals(key, &grants, |permits, length| permits <= limit || length >= window)?;
            grants.sort_by_key(|grant| grant.earliest);
            for (event, Denied { begun, ended, wait, cost }) in denials(&events, error) {
                let begun_by_then = &grants[..grants.partition_point(|grant| grant.earliest <= ended)];
                let sum = |counts: &dyn Fn(&&Grant) -> bool| {
                    begun_by_then.iter().filter(counts).map(|it| it.permits).sum::<i128>()
                };
                // What may count in the last moment of the wait, by who lags behind or is ahead of
                // whom.
                let passes = (begun + wait - 1 - 2 * i128::from(error)).max(begun);
                if sum(&|grant| free_at(grant.latest) > passes) <= limit - cost {
                    return Err(Fault::AdvisedTooLate(event));
                }
                let certainly = |grant: &&Grant| grant.latest < begun && free_at(grant.earliest) > ended + wait;
                if wait == 0 || sum(&certainly) > limit - cost {
                    return Err(Fault::AdvisedTooEarly(event));
                }
            }
            granted += grants.iter().map(|grant| grant.permits).sum::<i128>();
        }
        Ok(granted)
    }
}
