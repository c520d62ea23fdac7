//! Runs in which charges are settled, by processes of which some are killed: what each request was
//! told, and what is charged in the end, must be what was used, but for the calls that were under
//! way when their process died.
//!
//! It is for quotas of which nothing expires during the run. So what is charged at a moment is a
//! sum, and each call that was not answered makes it uncertain by what it would have changed.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// A call of the limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// The clock just before it.
    pub before: u64,
    /// The clock just after it; `None` if no answer came.
    pub after: Option<u64>,
}

/// A request, and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    pub key: u32,
    pub cost: u32,
    pub asked: Call,
    /// Whether it was admitted, if there was an answer.
    pub is_admitted: Option<bool>,
    /// The call that settled it, and what it cost in fact.
    pub settled: Option<(Call, u32)>,
}

/// What is wrong with a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// So many permits were certainly charged when the request was admitted.
    OverAdmitted { charge: Charge, at_least: u64 },
    /// At most so many permits were charged when the request was denied, and it would have fitted.
    Unexplained { charge: Charge, at_most: u64 },
}

/// What may be charged for a request, at least and at most.
type Bounds = (u64, u64);

impl Call {
    fn is_over_at(self, time: u64) -> bool {
        self.after.is_some_and(|after| after < time)
    }
}

impl Charge {
    /// What may be charged for it at a moment of this time. Readings may be off by `error`.
    fn at(&self, (from, until): (u64, u64), error: u64) -> Bounds {
        let (from, until) = (from.saturating_sub(error), until.saturating_add(error));
        if self.is_admitted == Some(false) || self.asked.before > until {
            return (0, 0);
        }
        let cost = u64::from(self.cost);
        let (mut least, mut most) = (cost, cost);
        if let Some((call, actual)) = self.settled {
            let actual = u64::from(actual);
            if call.is_over_at(from) {
                (least, most) = (actual, actual);
            } else if call.before <= until {
                (least, most) = (least.min(actual), most.max(actual));
            }
        }
        if self.asked.is_over_at(from) { (least, most) } else { (0, most) }
    }
}

/// Checks a run under this limit on each key. Gives for each key what may be charged in the end.
pub fn check(limit: u32, charges: &[Charge], error: u64) -> Result<BTreeMap<u32, RangeInclusive<u64>>, Fault> {
    let mut keys: BTreeMap<u32, Vec<Charge>> = BTreeMap::new();
    for &charge in charges {
        keys.entry(charge.key).or_default().push(charge);
    }
    let mut in_the_end = BTreeMap::new();
    for (key, charges) in keys {
        let sum = |others: &dyn Fn(&Charge) -> bool, time| {
            let each = charges.iter().filter(|charge| others(charge)).map(|charge| charge.at(time, error));
            each.fold((0, 0), |(least, most), (at_least, at_most)| (least + at_least, most + at_most))
        };
        for &charge in &charges {
            let (Some(is_admitted), Some(after)) = (charge.is_admitted, charge.asked.after) else { continue };
            let (at_least, at_most) = sum(&|other| *other != charge, (charge.asked.before, after));
            let fits_beside = u64::from(limit - charge.cost);
            if is_admitted && at_least > fits_beside {
                return Err(Fault::OverAdmitted { charge, at_least });
            }
            if !is_admitted && at_most <= fits_beside {
                return Err(Fault::Unexplained { charge, at_most });
            }
        }
        let (least, most) = sum(&|_| true, (u64::MAX, u64::MAX));
        in_the_end.insert(key, least..=most);
    }
    Ok(in_the_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(before: u64, after: u64) -> Call {
        Call { before, after: Some(after) }
    }

    fn charge(cost: u32, asked: Call, is_admitted: bool) -> Charge {
        Charge { key: 7, cost, asked, is_admitted: Some(is_admitted), settled: None }
    }

    #[test]
    fn what_was_used_is_charged_give_or_take_the_calls_without_an_answer() {
        let settled = Charge { settled: Some((call(5, 6), 9)), ..charge(3, call(1, 2), true) };
        let killed = Charge { settled: Some((Call { before: 5, after: None }, 1)), ..charge(3, call(1, 2), true) };
        let asked = Charge { is_admitted: None, ..charge(2, Call { before: 5, after: None }, true) };
        let ends = check(20, &[settled, killed, asked, charge(4, call(7, 8), true)], 0).unwrap();
        assert_eq!(ends[&7], 9 + 1 + 4..=9 + 3 + 2 + 4);
    }

    #[test]
    fn a_debt_denies_and_a_refund_admits() {
        let settled = Charge { settled: Some((call(5, 6), 9)), ..charge(3, call(1, 2), true) };
        for (other, is_right) in [
            (charge(2, call(7, 8), true), false),
            (charge(2, call(7, 8), false), true),
            (charge(2, call(6, 8), true), true),
            (charge(2, call(3, 4), true), true),
            (charge(2, call(3, 4), false), false),
        ] {
            assert_eq!(check(10, &[settled, other], 0).is_ok(), is_right, "{other:?}");
        }
    }
}
