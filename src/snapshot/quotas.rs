//! Quotas in a snapshot, as numbers.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::nanos;
use crate::quota::schema::{Field, FieldKind, FieldValue};
use crate::quota::{Algorithm, Calendar, Quota, Zone};

/// A quota as numbers: its kind, limit and window, permits and period, longest delay, start and
/// phase (each plus one). `Field::place` tells which fields they are. Of a window of the calendar the
/// period is its number, plus one.
pub(super) type Numbers = [u64; 8];

/// The numbers that a restored limiter must have. The phase may be another, as the
/// clock may be. But it tells whether a fixed window is aligned; a sliding counter always is. The time
/// zone may be another, too, by which the longest window of the calendar is another.
pub(super) fn compared([kind, limit, window, permits, per, most, start, phase]: Numbers) -> Numbers {
    let is_fixed = kind == number(Algorithm::FixedWindow);
    let (has_phase, window) = (is_fixed && phase > 0, if is_fixed && per > 0 { 0 } else { window });
    // How long requests are held elsewhere.
    let most = if kind == number(Algorithm::Concurrency) { 0 } else { most };
    [kind, limit, window, permits, per, most, start, has_phase.into()]
}

pub(super) fn numbers(quota: &Quota) -> Numbers {
    let algorithm = quota.algorithm();
    let mut numbers = [number(algorithm), quota.limit().into(), nanos(quota.window()), 0, 0, 0, 0, 0];
    for (field, value) in quota.fields() {
        let value = match value {
            FieldValue::Number(number) => number.into(),
            FieldValue::Duration(phase) if field == Field::Phase => phase_of(quota, phase),
            FieldValue::Duration(duration) => nanos(duration),
            FieldValue::Flag(flag) => flag.into(),
            FieldValue::Calendar(calendar) => {
                numbers[CALENDAR] = calendar as u64 + 1;
                continue;
            }
            FieldValue::Zone(_) => continue,
        };
        if let Some((place, plus)) = place(algorithm, field) {
            numbers[place] = value.saturating_add(plus);
        }
    }
    numbers
}

/// The place of the window of the calendar, which a fixed window does not have its period in.
const CALENDAR: usize = 4;

/// The place of a field among the numbers, and what is added to it: an optional field that is not set
/// is zero. A log and a fixed window have their period as the window alone.
fn place(algorithm: Algorithm, field: Field) -> Option<(usize, u64)> {
    let is_window = matches!(algorithm, Algorithm::SlidingWindowLog | Algorithm::FixedWindow);
    let place = if field == Field::Per && is_window { 2 } else { field.place() };
    (place > 0).then(|| (place, algorithm.optional_fields().contains(&field).into()))
}

/// The phase in nanoseconds. If that is too large, the one less than a window that means the same.
fn phase_of(quota: &Quota, phase: Duration) -> u64 {
    let window = if quota.algorithm() == Algorithm::SlidingCounter { quota.window() / 2 } else { quota.window() };
    let phase = phase.as_nanos();
    let rest = || phase.checked_rem(window.as_nanos()).and_then(|rest| u64::try_from(rest).ok());
    u64::try_from(phase).ok().filter(|phase| *phase < u64::MAX).or_else(rest).unwrap_or(0)
}

/// The number that stands for the algorithm. It must never change.
pub(super) const fn number(algorithm: Algorithm) -> u64 {
    algorithm as u64 + 1
}

/// A whole quota of a single key.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct OwnQuota {
    pub(super) numbers: Numbers,
    pub(super) counts_refused: bool,
    /// Its name. That of a window of the calendar is followed by a backslash, which no name has, and its
    /// time zone.
    pub(super) name: Option<String>,
}

impl OwnQuota {
    pub(super) fn of(quota: &Quota) -> Self {
        Self {
            numbers: numbers(quota),
            counts_refused: quota.is_counting_refused(),
            name: match quota.calendar_window() {
                Some((_, zone)) => Some(format!("{}\\{zone}", quota.name().unwrap_or_default())),
                None => quota.name().map(str::to_owned),
            },
        }
    }

    /// The quota, whose name is to be validated. `None` if no valid quota has these numbers.
    pub(super) fn quota(&self) -> Option<Quota> {
        let algorithm = *Algorithm::ALL.iter().find(|algorithm| number(**algorithm) == self.numbers[0])?;
        let mut fields = Vec::new();
        for &field in algorithm.needed_fields().iter().chain(algorithm.optional_fields()) {
            let Some((place, plus)) = place(algorithm, field) else { continue };
            let Some(value) = self.numbers[place].checked_sub(plus) else { continue };
            let value = match field.kind() {
                FieldKind::Number => FieldValue::Number(u32::try_from(value).ok()?),
                FieldKind::Duration => FieldValue::Duration(Duration::from_nanos(value)),
                FieldKind::Flag => FieldValue::Flag(value > 0),
                FieldKind::Zone => continue,
            };
            fields.push((field, value));
        }
        let text = self.name.as_deref();
        let (name, zone) = match text.and_then(|text| text.split_once('\\')) {
            Some((name, zone)) => (Some(name).filter(|name| !name.is_empty()), Some(zone)),
            None => (text, None),
        };
        if let Some(zone) = zone {
            let calendar = Calendar::ALL.iter().find(|calendar| **calendar as u64 + 1 == self.numbers[CALENDAR])?;
            fields.retain(|(field, _)| *field != Field::Per);
            fields.push((Field::Per, FieldValue::Calendar(*calendar)));
            fields.push((Field::Zone, FieldValue::Zone(Zone::named(zone).ok()?)));
        }
        fields.push((Field::CountingRefused, FieldValue::Flag(self.counts_refused)));
        let mut quota = Quota::from_fields(algorithm, &fields).ok()?;
        if let Some(name) = name {
            quota = quota.named(name);
        }
        (numbers(&quota) == self.numbers).then_some(quota)
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests;
