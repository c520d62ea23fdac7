//! An offline checker for recorded runs: many threads, and afterwards the question whether what
//! they were told was right.
//!
//! The stamp of a permit can't be seen from outside, but it is a clock reading taken during the
//! call, so it lies between the readings before and after the call (of another thread's stamp that
//! was taken over the same holds: it was written before it was seen). A run is at fault where *no*
//! choice of stamps within these bounds obeys the rules. So the checker never accuses a limiter
//! that is right, however the threads were scheduled, and nothing depends on timing.

pub mod in_flight;
pub mod meters;
pub mod record;
pub mod settled;

use std::collections::BTreeMap;

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    pub key: u32,
    pub cost: u32,
    /// The clock just before the call.
    pub before: u64,
    /// The clock just after it.
    pub after: u64,
    pub told: Told,
}

/// What a call was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    Admitted,
    /// Denied by the key's quota; which of them, if it has several.
    Denied {
        retry_after: u64,
        quota: usize,
    },
    /// Denied, among others, by a quota of the key; how long it would have to wait for that one
    /// alone was not said.
    InTheWay,
    /// Denied for want of a place for the key, about which its permits say nothing.
    NoPlace,
}

/// When a permit counts as expired, to judge a denial by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// A window after its own stamp.
    EachOnItsOwn,
    /// Not before those that were claimed before it. Where a thread stalls between claiming and
    /// stamping, and another stamps on its behalf, the older claim has the later stamp; a log that
    /// gives permits back in the order of claims then holds back the newer ones that were granted
    /// meanwhile. Nothing else is excused.
    InOrderOfClaims,
}

/// So many permits in any window of this length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub permits: u32,
    pub window: u64,
}

/// A recorded run.
#[derive(Debug, Clone)]
pub struct Run {
    /// Each of which must be kept.
    pub limits: Vec<Limit>,
    pub events: Vec<Event>,
    /// By how much readings on different processors, or on one out of order, may disagree.
    pub reading_error: u64,
    pub expiry: Expiry,
}

/// What is wrong with a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// So many permits of a key were certainly granted in the interval of so many windows from
    /// `from`.
    OverAdmitted { key: u32, from: u64, windows: u64, permits: u64, allowed: u64 },
    /// However the stamps lay, so few permits were live under the quota that was named, and the
    /// request would have fitted.
    Unexplained { denial: Event, live_at_most: u64 },
    /// The request would have fitted a nanosecond sooner than advised: so few permits can be live
    /// then.
    AdvisedTooLate { denial: Event, live_at_most: u64 },
    /// The request would not fit at the time advised: so many permits are certainly live then.
    AdvisedTooEarly { denial: Event, live_at_least: u64 },
}

/// What a run without fault held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    pub permits: u64,
    pub denials: u64,
}

/// Permits granted by one call, and the bounds of their stamps.
#[derive(Debug, Clone, Copy)]
struct Grant {
    earliest: i128,
    latest: i128,
    /// The latest stamp of any grant that may have been claimed before this one's was stamped.
    latest_in_order: i128,
    permits: u64,
}

impl Run {
    /// Looks for a fault, key by key.
    pub fn check(&self) -> Result<Summary, Fault> {
        let mut keys: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
        for &event in &self.events {
            assert!(event.before <= event.after, "recorded wrongly, or the clock went back: {event:?}");
            let least = self.limits.iter().map(|limit| limit.permits).min().expect("at least one limit");
            assert!(0 < event.cost && event.cost <= least, "not a request that can be denied by quota: {event:?}");
            keys.entry(event.key).or_default().push(event);
        }
        let mut summary = Summary::default();
        for (key, events) in keys {
            let grants = self.grants(&events);
            for &limit in &self.limits {
                Self::check_admissions(limit, key, &grants)?;
            }
            for (quota, &limit) in self.limits.iter().enumerate() {
                self.check_denials(limit, quota, &grants, &events)?;
            }
            summary.permits += grants.iter().map(|grant| grant.permits).sum::<u64>();
            summary.denials += events.iter().map(|event| u64::from(event.told != Told::Admitted)).sum::<u64>();
        }
        Ok(summary)
    }

    /// The denials [`Told::InTheWay`] that this quota does not explain: however the stamps lay,
    /// they would have fitted.
    pub fn not_in_the_way(&self) -> Vec<Event> {
        let mut keys: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
        for &event in &self.events {
            keys.entry(event.key).or_default().push(event);
        }
        let mut not_in_the_way = Vec::new();
        for events in keys.values() {
            let grants = self.grants(events);
            let latest_so_far = latest_so_far(&grants, |grant| grant.latest_in_order);
            let denials = events.iter().filter(|event| event.told == Told::InTheWay);
            not_in_the_way.extend(denials.filter(|&&denial| {
                let (begun, ended) = self.bounds(denial);
                let could_be_seen = grants.partition_point(|grant| grant.earliest <= ended);
                self.limits.iter().all(|limit| {
                    let ends_later = |latest: i128| latest + i128::from(limit.window) > begun;
                    let seen = grants[..could_be_seen].iter().zip(&latest_so_far).rev();
                    let live = seen.take_while(|&(_, &latest)| ends_later(latest)).map(|(grant, _)| grant);
                    let live = live.filter(|grant| ends_later(grant.latest_in_order)).map(|grant| grant.permits);
                    live.sum::<u64>() <= u64::from(limit.permits - denial.cost)
                })
            }));
        }
        not_in_the_way
    }

    /// The grants, by their earliest stamps.
    fn grants(&self, events: &[Event]) -> Vec<Grant> {
        let admitted = events.iter().filter(|event| event.told == Told::Admitted);
        let mut grants: Vec<Grant> = admitted
            .map(|event| {
                let (earliest, latest) = self.bounds(*event);
                Grant { earliest, latest, latest_in_order: latest, permits: event.cost.into() }
            })
            .collect();
        grants.sort_by_key(|grant| (grant.earliest, grant.latest));
        if self.expiry == Expiry::InOrderOfClaims {
            let latest_so_far = latest_so_far(&grants, |grant| grant.latest);
            for position in 0..grants.len() {
                let stamped = grants[position].latest;
                let begun_by_then = grants.partition_point(|grant| grant.earliest <= stamped);
                grants[position].latest_in_order = latest_so_far[begun_by_then - 1];
            }
        }
        grants
    }

    /// The first and the last instant at which the call can have been decided.
    fn bounds(&self, event: Event) -> (i128, i128) {
        let error = i128::from(self.reading_error);
        (i128::from(event.before) - error, i128::from(event.after) + error)
    }

    /// In no half-open interval of k windows may there be more than k times the limit.
    ///
    /// One window alone would be enough if stamps were known. With bounds only, long intervals
    /// catch what hides at the edges of short ones: an excess adds up, the doubt at the two ends
    /// does not. An interval may start at the earliest stamp of a grant: to start later never loses
    /// one that lies in it for certain.
    fn check_admissions(limit: Limit, key: u32, grants: &[Grant]) -> Result<(), Fault> {
        let (Some(first), Some(last)) = (grants.first(), grants.iter().map(|grant| grant.latest).max()) else {
            return Ok(());
        };
        let windows_in_all = (last - first.earliest) / i128::from(limit.window) + 1;
        let mut by_latest: Vec<i128> = grants.iter().map(|grant| grant.latest).collect();
        by_latest.sort_unstable();
        let mut windows: u64 = 1;
        while i128::from(windows) <= windows_in_all {
            let allowed = windows * u64::from(limit.permits);
            // From the last grant to the first: all that start later are in the sums already.
            let mut sums = PrefixSums::new(by_latest.len());
            for grant in grants.iter().rev() {
                sums.add(by_latest.partition_point(|&latest| latest < grant.latest), grant.permits);
                let end = grant.earliest + i128::from(windows) * i128::from(limit.window);
                let permits = sums.before(by_latest.partition_point(|&latest| latest < end));
                if permits > allowed {
                    let from = u64::try_from(grant.earliest.max(0)).expect("a reading");
                    return Err(Fault::OverAdmitted { key, from, windows, permits, allowed });
                }
            }
            // 1, 2, 3, 4, 6, 9, ...
            windows += (windows / 2).max(1);
        }
        Ok(())
    }

    /// The quota that a denial names must explain it. At the time that it advises none may be in
    /// the way.
    fn check_denials(&self, limit: Limit, number: usize, grants: &[Grant], events: &[Event]) -> Result<(), Fault> {
        let window = i128::from(limit.window);
        let latest_so_far = latest_so_far(grants, |grant| grant.latest_in_order);
        for &denial in events {
            let Told::Denied { retry_after, quota } = denial.told else { continue };
            let (begun, ended) = self.bounds(denial);
            let fits_beside = u64::from(limit.permits - denial.cost);
            let retry_after = i128::from(retry_after);
            let (mut live, mut live_before_advice, mut surely_live_at_advice) = (0, 0, 0);
            let could_be_seen = grants.partition_point(|grant| grant.earliest <= ended);
            for (grant, &latest_so_far) in grants[..could_be_seen].iter().zip(&latest_so_far).rev() {
                if latest_so_far + window <= begun {
                    break;
                }
                if grant.latest_in_order + window > begun {
                    live += grant.permits;
                }
                if grant.latest_in_order + window >= begun + retry_after {
                    live_before_advice += grant.permits;
                }
                if grant.latest < begun && grant.earliest + window > ended + retry_after {
                    surely_live_at_advice += grant.permits;
                }
            }
            if quota == number && live <= fits_beside {
                return Err(Fault::Unexplained { denial, live_at_most: live });
            }
            if quota == number && live_before_advice <= fits_beside {
                return Err(Fault::AdvisedTooLate { denial, live_at_most: live_before_advice });
            }
            if retry_after == 0 || surely_live_at_advice > fits_beside {
                return Err(Fault::AdvisedTooEarly { denial, live_at_least: surely_live_at_advice });
            }
        }
        Ok(())
    }
}

/// For each grant the latest `time` of it and of all before it.
fn latest_so_far(grants: &[Grant], time: impl Fn(&Grant) -> i128) -> Vec<i128> {
    let running = |latest: &mut i128, grant| {
        *latest = time(grant).max(*latest);
        Some(*latest)
    };
    grants.iter().scan(i128::MIN, running).collect()
}

/// Sums over a prefix, with additions in between (a Fenwick tree).
struct PrefixSums(Vec<u64>);

impl PrefixSums {
    fn new(len: usize) -> Self {
        Self(vec![0; len + 1])
    }

    fn add(&mut self, position: usize, amount: u64) {
        let mut node = position + 1;
        while node < self.0.len() {
            self.0[node] += amount;
            node += node & node.wrapping_neg();
        }
    }

    /// The sum of all amounts at positions less than `end`.
    fn before(&self, end: usize) -> u64 {
        let (mut node, mut sum) = (end, 0);
        while node > 0 {
            sum += self.0[node];
            node &= node - 1;
        }
        sum
    }
}
