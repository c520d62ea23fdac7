//! Runs in which requests are in flight on a store, by processes of which some are killed: no more
//! than the limit are in flight that neither left nor have been in flight for the longest time, and
//! a request that is denied for that found as many.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::settled::Call;

/// A request, and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stay {
    pub key: u32,
    pub entered: Call,
    /// Whether it was admitted, if there was an answer.
    pub is_admitted: Option<bool>,
    /// The call by which it left.
    pub left: Option<Call>,
}

/// A concurrency limit, with the time after which a request counts no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub requests: u32,
    pub hold: u64,
}

/// What is wrong with a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// So many others were certainly in flight when the request was admitted.
    OverAdmitted { stay: Stay, at_least: u32 },
    /// At most so many were in flight when the request was denied.
    Unexplained { stay: Stay, at_most: u32 },
}

impl Stay {
    /// Whether it counts all the time, from one moment to another.
    fn counts_throughout(&self, (from, until): (u64, u64), hold: u64) -> bool {
        self.is_admitted == Some(true)
            && self.entered.after.is_some_and(|after| after < from)
            && self.left.is_none_or(|left| left.before > until)
            && self.entered.before + hold > until
    }

    /// Whether it may count at a moment within this time. Without an answer, it may have entered late.
    fn may_count(&self, (from, until): (u64, u64), hold: u64) -> bool {
        self.entered.before <= until
            && self.left.and_then(|left| left.after).is_none_or(|after| after >= from)
            && self.entered.after.is_none_or(|after| after + hold >= from)
    }
}

/// Checks a run. Gives for each key how many may be in flight at a moment within this time, in which
/// no process calls any more.
pub fn check(
    limit: Limit,
    stays: &[Stay],
    error: u64,
    (from, until): (u64, u64),
) -> Result<BTreeMap<u32, RangeInclusive<u32>>, Fault> {
    let mut keys: BTreeMap<u32, Vec<Stay>> = BTreeMap::new();
    for &stay in stays {
        keys.entry(stay.key).or_default().push(stay);
    }
    let mut in_the_end = BTreeMap::new();
    for (key, stays) in keys {
        // Readings may be off, so what is certain is so over a longer time.
        let longer = |from: u64, until: u64| (from.saturating_sub(error), until.saturating_add(error));
        // A denied request takes no place, and there may be very many.
        let others: Vec<Stay> = stays.iter().copied().filter(|stay| stay.is_admitted != Some(false)).collect();
        let count = |holds: &dyn Fn(&Stay) -> bool| {
            u32::try_from(others.iter().filter(|stay| holds(stay)).count()).expect("few requests")
        };
        let within = |time: (u64, u64), except: Option<&Stay>| {
            let at_least = count(&|other| Some(other) != except && other.counts_throughout(time, limit.hold));
            let at_most = count(&|other| Some(other) != except && other.may_count(time, limit.hold));
            (at_least, at_most)
        };
        for stay in &stays {
            let (Some(is_admitted), Some(after)) = (stay.is_admitted, stay.entered.after) else { continue };
            let (at_least, at_most) = within(longer(stay.entered.before, after), Some(stay));
            if is_admitted && at_least >= limit.requests {
                return Err(Fault::OverAdmitted { stay: *stay, at_least });
            }
            if !is_admitted && at_most < limit.requests {
                return Err(Fault::Unexplained { stay: *stay, at_most });
            }
        }
        let (least, most) = within(longer(from, until), None);
        in_the_end.insert(key, least..=most);
    }
    Ok(in_the_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Limit = Limit { requests: 1, hold: 100 };

    fn call(before: u64, after: u64) -> Call {
        Call { before, after: Some(after) }
    }

    fn stay(entered: Call, is_admitted: Option<bool>, left: Option<Call>) -> Stay {
        Stay { key: 7, entered, is_admitted, left }
    }

    #[test]
    fn a_request_counts_until_it_leaves_or_its_time_is_over() {
        let first = stay(call(10, 12), Some(true), Some(call(20, 22)));
        let dead = stay(call(10, 12), Some(true), None);
        for (one, entered, is_admitted, is_right) in [
            (first, call(15, 16), true, false),
            (first, call(15, 16), false, true),
            // While it enters and leaves, both are right.
            (first, call(11, 14), true, true),
            (first, call(11, 14), false, true),
            (first, call(19, 21), true, true),
            (first, call(21, 25), false, true),
            (first, call(23, 25), true, true),
            (first, call(23, 25), false, false),
            (first, call(5, 9), false, false),
            (dead, call(105, 109), true, false),
            (dead, call(105, 110), true, true),
            (dead, call(112, 113), false, true),
            (dead, call(113, 115), false, false),
        ] {
            let other = stay(entered, Some(is_admitted), Some(call(entered.before + 50, entered.before + 50)));
            assert_eq!(check(LIMIT, &[one, other], 0, (500, 500)).is_ok(), is_right, "{other:?}");
        }
    }

    #[test]
    fn those_that_died_are_in_flight_in_the_end_until_their_time_is_over() {
        let unknown = stay(Call { before: 30, after: None }, None, None);
        let leaving = stay(call(10, 12), Some(true), Some(Call { before: 15, after: None }));
        let denied = stay(call(13, 14), Some(false), None);
        let stays = [leaving, denied, unknown];
        for (now, expected) in [(50, 0..=2), (112, 0..=2), (113, 0..=1)] {
            assert_eq!(check(LIMIT, &stays, 0, (now, now)).unwrap()[&7], expected, "{now}");
        }
        let dead = stay(call(10, 12), Some(true), None);
        for (now, expected) in [(50, 1..=1), (109, 1..=1), (110, 0..=1), (113, 0..=0)] {
            assert_eq!(check(LIMIT, &[dead], 0, (now, now)).unwrap()[&7], expected, "{now}");
        }
    }
}
