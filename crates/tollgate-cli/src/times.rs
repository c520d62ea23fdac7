//! Times as one log writes them: with the options that say how, and with years where it leaves them
//! out.

use jiff::civil::DateTime;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::Offset;
use jiff::{Error, Timestamp};

use crate::time::{Nanos, TimeProblem, TimeUnit, in_range, parse_any};

/// How times are written, as far as options say.
#[derive(Debug, Clone, Default)]
pub(crate) struct TimeOptions {
    /// What plain numbers count.
    pub(crate) unit: Option<TimeUnit>,
    /// The directives of `strptime`.
    pub(crate) format: Option<String>,
    /// Of the first line, where times have no year.
    pub(crate) year: Option<i16>,
}

/// What syslog writes: `May  7 10:05:03`.
const WITHOUT_YEAR: &str = "%b %d %H:%M:%S%.f";

/// Reads the times of one log.
#[derive(Debug, Default)]
pub(crate) struct Times {
    options: TimeOptions,
    /// The year of the last time without one, and that time.
    last: Option<(i16, Nanos)>,
}

impl Times {
    pub(crate) fn new(options: &TimeOptions) -> Self {
        Self { options: options.clone(), last: None }
    }

    pub(crate) fn read(&mut self, text: &str) -> Result<Nanos, TimeProblem> {
        let text = text.trim();
        let Some(format) = &self.options.format else {
            return match parse_any(text, self.options.unit) {
                Err(TimeProblem::NotATime) => match BrokenDownTime::parse(WITHOUT_YEAR, text) {
                    Ok(parts) => self.with_year(parts),
                    Err(_) => Err(TimeProblem::NotATime),
                },
                other => other,
            };
        };
        let parts = BrokenDownTime::parse(format, text).map_err(|_| TimeProblem::NotOfFormat)?;
        if parts.year().is_some() || parts.to_timestamp().is_ok() {
            return moment(&parts).map_err(|_| TimeProblem::NotOfFormat).and_then(in_range);
        }
        self.with_year(parts)
    }

    /// The year that puts the time nearest to the last one: logs go on from December to January,
    /// and a few lines go back.
    fn with_year(&mut self, mut parts: BrokenDownTime) -> Result<Nanos, TimeProblem> {
        let first = self.options.year.ok_or(TimeProblem::NoYear)?;
        let around = self.last.map_or(first..=first, |(year, _)| year.saturating_sub(1)..=year.saturating_add(1));
        let mut nearest: Option<(i16, Nanos)> = None;
        for year in around {
            let time = parts.set_year(Some(year)).and_then(|()| moment(&parts));
            // There may be no 29 February in that year.
            let Some(time) = time.ok().and_then(|time| in_range(time).ok()) else { continue };
            let distance = |time: Nanos| self.last.map_or(0, |(_, last)| time.abs_diff(last));
            if nearest.is_none_or(|(_, other)| distance(time) < distance(other)) {
                nearest = Some((year, time));
            }
        }
        let (year, time) = nearest.ok_or(TimeProblem::OutOfRange)?;
        self.last = Some((year, time));
        Ok(time)
    }
}

/// The moment, in UTC where no offset is given.
fn moment(parts: &BrokenDownTime) -> Result<Timestamp, Error> {
    parts.to_timestamp().or_else(|_| {
        let local: DateTime = parts.to_datetime()?;
        Offset::UTC.to_timestamp(local)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_without_a_year_take_the_one_that_is_nearest() {
        let mut times = Times::new(&TimeOptions { year: Some(2023), ..TimeOptions::default() });
        for (text, expected) in [
            ("Dec 31 23:59:59", "2023-12-31T23:59:59Z"),
            ("Jan  1 00:00:00", "2024-01-01T00:00:00Z"),
            ("Dec 31 23:59:59.5", "2023-12-31T23:59:59.5Z"),
            ("Jan  2 00:00:00", "2024-01-02T00:00:00Z"),
            ("Feb 29 12:00:00", "2024-02-29T12:00:00Z"),
        ] {
            assert_eq!(times.read(text), parse_any(expected, None), "{text}");
        }
        assert_eq!(Times::default().read("May  7 10:05:03"), Err(TimeProblem::NoYear));
        assert_eq!(Times::default().read("May  7"), Err(TimeProblem::NotATime));
    }

    #[test]
    fn a_stated_format_is_the_only_one() {
        let with = |format: &str, year| TimeOptions { format: Some(format.to_owned()), year, unit: None };
        let mut times = Times::new(&with("%a %b %d %H:%M:%S%.f %Y", None));
        assert_eq!(times.read("Sun May 17 10:05:03.25 2015"), parse_any("2015-05-17T10:05:03.25Z", None));
        assert_eq!(times.read("2015-05-17T10:05:03Z"), Err(TimeProblem::NotOfFormat));
        let mut times = Times::new(&with("%d.%m. %H:%M %z", Some(2015)));
        assert_eq!(times.read("17.05. 12:05 +0200"), parse_any("2015-05-17T10:05:00Z", None));
        assert_eq!(Times::new(&with("%d.%m. %H:%M", None)).read("17.05. 12:05"), Err(TimeProblem::NoYear));
    }
}
