//! The replies of the script.

use core::time::Duration;

use redis::Value;

/// The decision on some requests of the same cost, at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    /// How many of the requests are admitted.
    pub(crate) granted: u64,
    /// The time after which they may go on.
    pub(crate) delay: Duration,
    /// The denial of the others.
    pub(crate) denied: Denied,
    /// A key that a limiter of another window holds, and that window.
    pub(crate) shared: Option<(usize, Duration)>,
    /// For each key the server's time of the charge, in microseconds.
    pub(crate) at: Vec<u64>,
    /// What each quota of each key leaves, in the order of the script.
    pub(crate) left: Vec<Left>,
}

/// Why a request does not fit. The places count from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Denied {
    pub(crate) wait: Duration,
    /// The key, among those of the request.
    pub(crate) place: usize,
    /// Its quota, in the order of the script.
    pub(crate) quota: usize,
    /// A bit for each key that denies.
    pub(crate) violated: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) remaining: u32,
    pub(crate) next_after: Duration,
    pub(crate) reset_after: Duration,
}

impl Reply {
    /// Reads a reply about so many keys; `None` if it is no such reply.
    pub(crate) fn read(value: &Value, keys: usize) -> Option<Self> {
        let Value::Array(items) = value else { return None };
        let numbers: Vec<u64> = items.iter().map(natural).collect::<Option<_>>()?;
        let [granted, delay, wait, place, quota, violated, shared, other, rest @ ..] = &*numbers else { return None };
        let (at, left) = rest.split_at_checked(keys)?;
        let left = left.chunks(3).map(|left| match *left {
            [remaining, next, reset] => Some(Left {
                remaining: u32::try_from(remaining).ok()?,
                next_after: Duration::from_micros(next),
                reset_after: Duration::from_micros(reset),
            }),
            _ => None,
        });
        let place_of = |number: u64| usize::try_from(number.saturating_sub(1)).ok();
        Some(Self {
            granted: *granted,
            delay: Duration::from_micros(*delay),
            denied: Denied {
                wait: Duration::from_micros(*wait),
                place: place_of(*place)?,
                quota: place_of(*quota)?,
                violated: *violated,
            },
            shared: (*shared > 0).then_some((place_of(*shared)?, Duration::from_micros(*other))),
            at: at.to_vec(),
            left: left.collect::<Option<_>>()?,
        })
    }

    /// The permits that a settled receipt is charged then: no more than either the cost that it was
    /// charged or the actual one.
    pub(crate) fn read_settled(value: &Value) -> Option<u32> {
        match value {
            Value::Array(items) => u32::try_from(natural(items.first()?)?).ok(),
            _ => None,
        }
    }
}

fn natural(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_reply_is_refused() {
        let numbers = |numbers: &[i64]| Value::Array(numbers.iter().map(|&number| Value::Int(number)).collect());
        let right = [1, 0, 0, 0, 0, 0, 0, 0, 77, 9, 60, 60];
        assert!(Reply::read(&numbers(&right), 1).is_some());
        assert_eq!(Reply::read(&numbers(&right[..11]), 1), None);
        assert_eq!(Reply::read(&numbers(&right), 5), None);
        assert_eq!(Reply::read(&numbers(&[-1, 0, 0, 0, 0, 0, 0, 0, 77]), 1), None);
        assert_eq!(Reply::read(&numbers(&[0; 7]), 0), None);
        assert_eq!(Reply::read(&Value::Okay, 1), None);
        assert_eq!(Reply::read_settled(&Value::Nil), None);
    }
}
