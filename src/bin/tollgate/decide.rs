//! The decisions: every event through a real limiter, on the log's own clock.

use tollgate::{Decision, DenialReason, MockClock, Quota};

use crate::errors::RunError;
use crate::log::{Event, Log};
use crate::log_clock::LogClock;
use crate::outcome::{Outcome, Verdict};
use crate::plan::Plan;

/// Decides every event that has a key of the plan, in order, and shows each verdict to `witness`.
///
/// # Errors
///
/// The quotas are some that the library refuses, the log has more keys at once than a limiter can hold or covers more years than
/// its clock can count, or the witness fails.
pub(crate) fn decide(
    log: &Log,
    plan: &Plan,
    mut witness: impl FnMut(&Event, Verdict) -> Result<(), RunError>,
) -> Result<Outcome, RunError> {
    let clock = MockClock::new();
    let limiter = plan.builder().clock(clock.clone()).build().map_err(RunError::Limit)?;
    let least = |quotas: &[Quota]| quotas.iter().map(Quota::limit).min().unwrap_or(0);
    let most: Vec<u32> = plan.dimensions.iter().map(|dimension| least(&dimension.quotas)).collect();
    let mut outcome = Outcome::of_nothing(log, plan);
    let first = log.events.first().map_or(0, |event| event.time);
    let mut log_clock = LogClock::new(plan.quotas(), first).ok_or(RunError::LogTooLong)?;
    let mut numbers: Vec<Option<usize>> = Vec::with_capacity(plan.dimensions.len());
    let mut keys: Vec<Option<&str>> = Vec::with_capacity(plan.dimensions.len());
    for event in &log.events {
        numbers.clear();
        numbers.extend(plan.dimensions.iter().map(|dimension| log.key(event, dimension.column)));
        if numbers.iter().all(Option::is_none) {
            continue;
        }
        clock.set(log_clock.reading_at(event.time).ok_or(RunError::LogTooLong)?);
        keys.clear();
        let columns = plan.dimensions.iter().map(|dimension| &log.keys[dimension.column]);
        keys.extend(columns.zip(&numbers).map(|(keys, number)| number.map(|number| keys.text(number))));
        let verdict = match limiter.try_acquire_n(keys.as_slice(), event.cost) {
            Ok(Decision::Admitted(admission)) => {
                Verdict::Admitted { delay_ns: u64::try_from(admission.delay().as_nanos()).unwrap_or(u64::MAX) }
            }
            Ok(Decision::Denied(denial)) if denial.reason() == DenialReason::KeyCap && !plan.has_key_cap() => {
                return Err(RunError::TooManyKeys);
            }
            Ok(Decision::Denied(denial)) => Verdict::Denied(denial),
            // There is a key for every dimension, or none: it is the cost.
            Err(_) => Verdict::NeverPasses,
        };
        outcome.count(&numbers, event.cost, verdict, &most);
        witness(event, verdict)?;
    }
    Ok(outcome)
}
