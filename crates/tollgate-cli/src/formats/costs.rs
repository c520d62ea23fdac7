//! What a request costs, as its record tells it.

use super::record::{Stamp, Wanted, named};
use crate::errors::LineError;
use crate::time::Nanos;

/// A cost that a record may have, and the option that names where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CostKind {
    /// What a request asks for.
    Estimated,
    /// What it has cost, once it is answered.
    Actual,
}

impl CostKind {
    pub(super) const fn option(self) -> &'static str {
        match self {
            Self::Estimated => "--cost-column",
            Self::Actual => "--actual-cost-column",
        }
    }

    pub(super) const fn what(self) -> &'static str {
        match self {
            Self::Estimated => "cost",
            Self::Actual => "actual cost",
        }
    }
}

/// One of the costs: its name, and where it is.
#[derive(Debug, Clone)]
struct Place<P> {
    name: String,
    at: P,
}

/// Where records have the costs of requests.
#[derive(Debug, Clone)]
pub(super) struct Costs<P> {
    estimated: Option<Place<P>>,
    actual: Option<Place<P>>,
}

impl<P> Costs<P> {
    /// `find` tells where the cost of that name is.
    pub(super) fn find<E>(wanted: &Wanted, find: impl Fn(&str, CostKind) -> Result<P, E>) -> Result<Self, E> {
        let place = |name: &Option<String>, kind| {
            let place = |name: &String| Ok(Place { at: find(name, kind)?, name: name.clone() });
            name.as_ref().map(place).transpose()
        };
        Ok(Self {
            estimated: place(&wanted.cost_column, CostKind::Estimated)?,
            actual: place(&wanted.actual_cost_column, CostKind::Actual)?,
        })
    }

    /// The stamp of a record. `value` gives the text at a place, if the record has it.
    #[inline]
    pub(super) fn stamp<T: AsRef<[u8]>>(
        &self,
        time: Nanos,
        value: impl Fn(&P) -> Option<T>,
    ) -> Result<Stamp, LineError> {
        let cost = match &self.estimated {
            Some(place) => place.cost(CostKind::Estimated, &value)?,
            None => 1,
        };
        let actual = match &self.actual {
            Some(place) => place.cost(CostKind::Actual, &value)?,
            None => cost,
        };
        Ok(Stamp { time, cost, actual })
    }
}

impl<P> Place<P> {
    fn cost<T: AsRef<[u8]>>(&self, kind: CostKind, value: impl Fn(&P) -> Option<T>) -> Result<u32, LineError> {
        match value(&self.at) {
            Some(text) => cost_of(text.as_ref(), kind),
            None => Err(LineError::NoField { wanted: named(kind.what(), Some(&self.name)), option: kind.option() }),
        }
    }
}

/// A cost past what a limiter can count is as much out of reach as the largest that it can.
fn cost_of(text: &[u8], kind: CostKind) -> Result<u32, LineError> {
    let text = String::from_utf8_lossy(text);
    let digits = text.trim();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(LineError::Cost { text: text.into_owned(), option: kind.option() });
    }
    Ok(digits.parse().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use core::convert::Infallible;

    use super::*;

    #[test]
    fn costs_are_whole_numbers() {
        let kind = CostKind::Actual;
        assert_eq!(cost_of(b" 7 ", kind), Ok(7));
        assert_eq!(cost_of(b"99999999999999999999999", kind), Ok(u32::MAX));
        for text in ["", "-1", "1.5", "x"] {
            let error = LineError::Cost { text: text.to_owned(), option: "--actual-cost-column" };
            assert_eq!(cost_of(text.as_bytes(), kind), Err(error));
        }
    }

    #[test]
    fn a_request_costs_one_permit_and_no_other_in_the_end_unless_columns_say_so() {
        for (estimated, actual, expected) in
            [(None, None, (1, 1)), (Some("a"), None, (3, 3)), (None, Some("b"), (1, 5)), (Some("a"), Some("b"), (3, 5))]
        {
            let [cost_column, actual_cost_column] = [estimated, actual].map(|name| name.map(str::to_owned));
            let wanted = Wanted { cost_column, actual_cost_column, ..Wanted::nothing() };
            let Ok(costs) = Costs::find(&wanted, |name, _| Ok::<_, Infallible>(name.to_owned()));
            let stamp = costs.stamp(7, |name| Some(if name == "a" { "3" } else { "5" })).unwrap();
            assert_eq!((stamp.cost, stamp.actual), expected);
        }
    }
}
