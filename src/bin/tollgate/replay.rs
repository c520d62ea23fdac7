//! The decisions: every event through a real limiter, on the log's own clock.

use tollgate::{Decision, DenialReason, Limiter, MAX_KEY_CAP, MockClock, Quota};

use crate::errors::RunError;
use crate::log::{Event, Log};

/// What the limiter would have answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Admitted,
    Denied {
        retry_after_ns: u64,
    },
    /// The cost is more than the limit: denied however long one waits.
    NeverPasses,
}

impl Verdict {
    pub(crate) fn is_admitted(self) -> bool {
        self == Self::Admitted
    }
}

/// How many requests were answered in which way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) admitted: u64,
    pub(crate) denied: u64,
    pub(crate) never_pass: u64,
}

impl Tally {
    fn count(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Admitted => self.admitted += 1,
            Verdict::Denied { .. } => self.denied += 1,
            Verdict::NeverPasses => self.never_pass += 1,
        }
    }

    /// Turned away for either reason.
    pub(crate) fn turned_away(&self) -> u64 {
        self.denied + self.never_pass
    }

    pub(crate) fn requests(&self) -> u64 {
        self.admitted + self.turned_away()
    }
}

/// What a limit would have done to a log.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) totals: Tally,
    /// By the keys' numbers.
    pub(crate) by_key: Vec<Tally>,
}

/// The log's own clock: it counts from the first event (logs may start before 1970) and cuts every pause down to one window.
///
/// A pause of a window leaves no live permit, and neither does a longer one, so no decision changes; but a log with one
/// absurd date in it does not use up the years that a limiter's clock can count.
struct Timeline {
    longest_pause: u64,
    last: i64,
    reading: u64,
}

impl Timeline {
    /// What a limiter counts to: 109 years.
    const END: u64 = 3 * (1 << 60) - (1 << 41);

    fn new(quota: Quota, first: i64) -> Self {
        let longest_pause = u64::try_from(quota.window().as_nanos()).unwrap_or(u64::MAX);
        Self { longest_pause, last: first, reading: 0 }
    }

    /// What the clock reads at an event that is no earlier than the last. `None` past the end.
    fn reading_at(&mut self, time: i64) -> Option<u64> {
        self.reading = self.reading.checked_add(time.abs_diff(self.last).min(self.longest_pause))?;
        self.last = time;
        (self.reading < Self::END).then_some(self.reading)
    }
}

/// Decides every event in order, and shows each verdict to `witness`.
///
/// # Errors
///
/// The quota is one that the library refuses, the log has more keys at once than a limiter can hold or covers more years than
/// its clock can count, or the witness fails.
pub(crate) fn decide(
    log: &Log,
    quota: Quota,
    mut witness: impl FnMut(&Event, Verdict) -> Result<(), RunError>,
) -> Result<Outcome, RunError> {
    let clock = MockClock::new();
    let limiter = Limiter::<str>::builder(quota)
        .clock(clock.clone())
        // Every key of the log has a place, so that only the quota decides.
        .key_cap(MAX_KEY_CAP)
        .build()
        .map_err(RunError::Limit)?;
    let mut outcome = Outcome { totals: Tally::default(), by_key: vec![Tally::default(); log.keys.len()] };
    let mut timeline = Timeline::new(quota, log.events.first().map_or(0, |event| event.time));
    for event in &log.events {
        clock.set(timeline.reading_at(event.time).ok_or(RunError::LogTooLong)?);
        let verdict = match limiter.try_acquire_n(log.keys.text(event.key()), event.cost) {
            Ok(Decision::Admitted(_)) => Verdict::Admitted,
            Ok(Decision::Denied(denial)) if denial.reason() == DenialReason::KeyCap => {
                return Err(RunError::TooManyKeys);
            }
            Ok(Decision::Denied(denial)) => {
                let nanos = denial.retry_after().as_nanos();
                Verdict::Denied { retry_after_ns: u64::try_from(nanos).unwrap_or(u64::MAX) }
            }
            Err(_) => Verdict::NeverPasses,
        };
        outcome.totals.count(verdict);
        outcome.by_key[event.key()].count(verdict);
        witness(event, verdict)?;
    }
    Ok(outcome)
}
