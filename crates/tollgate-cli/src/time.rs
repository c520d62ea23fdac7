//! Times in logs: reading them to the nanosecond, and writing them.

use core::fmt;

use clap::ValueEnum;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use jiff::{Timestamp, fmt::strtime::BrokenDownTime};

/// Nanoseconds since 1970; covers 1677-09-21 to 2262-04-11.
pub(crate) type Nanos = i64;

pub(crate) const SECOND: Nanos = 1_000_000_000;

/// Columns that usually hold the time of a record, the likeliest first. Compared without regard to
/// case.
pub(crate) const USUAL_NAMES: &[&str] = &[
    // When the request came, where `time` is when the line was written.
    "StartUTC",
    "EdgeStartTimestamp",
    "requestTimeEpoch",
    "requestTime",
    "time",
    "timestamp",
    "@timestamp",
    "ts",
    "datetime",
    "date_time",
    "time_iso8601",
    "time_local",
    "event_time",
    "eventtime",
    "start_time",
    "msec",
    "epoch",
    "date",
    "t",
];

/// What a plain number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimeUnit {
    /// Seconds
    S,
    /// Milliseconds
    Ms,
    /// Microseconds
    Us,
    /// Nanoseconds
    Ns,
}

impl TimeUnit {
    /// The power of ten that turns the unit into nanoseconds.
    const fn power(self) -> i32 {
        match self {
            Self::S => 9,
            Self::Ms => 6,
            Self::Us => 3,
            Self::Ns => 0,
        }
    }

    /// The unit in which a number of this size is a date between 1973 and 5138.
    const fn likely_for(magnitude: u128) -> Self {
        match magnitude {
            0..100_000_000_000 => Self::S,
            100_000_000_000..100_000_000_000_000 => Self::Ms,
            100_000_000_000_000..100_000_000_000_000_000 => Self::Us,
            _ => Self::Ns,
        }
    }
}

/// Why a text is not a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeProblem {
    NotATime,
    NotOfFormat,
    NoTimeOfDay,
    NoYear,
    OutOfRange,
}

impl fmt::Display for TimeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotATime => "is not a time (known are 17/May/2015:10:05:03 +0000, RFC 3339, and numbers since 1970)",
            Self::NotOfFormat => "is no time as --time-format writes it",
            Self::NoYear => "has no year: give that of the first line with --year",
            Self::NoTimeOfDay => "is a date without a time of day",
            Self::OutOfRange => "is out of range (1677-09-21 to 2262-04-11)",
        })
    }
}

/// Reads an access log's date, such as `17/May/2015:10:05:03 +0000`; in UTC where no offset is given.
pub(crate) fn parse_clf(text: &str) -> Result<Nanos, TimeProblem> {
    let problem = || if has_long_year(text) { TimeProblem::OutOfRange } else { TimeProblem::NotATime };
    if let Ok(local) = DateTime::strptime("%d/%b/%Y:%H:%M:%S%.f", text) {
        return in_range(Offset::UTC.to_timestamp(local).map_err(|_| TimeProblem::OutOfRange)?);
    }
    let parsed = BrokenDownTime::parse("%d/%b/%Y:%H:%M:%S%.f %z", text).map_err(|_| problem())?;
    in_range(parsed.to_timestamp().map_err(|_| TimeProblem::OutOfRange)?)
}

/// Reads access logs' dates faster than [`parse_clf`]: the midnight of the last date is remembered,
/// and a time of the same date and offset is added to it.
#[derive(Debug, Default)]
pub(crate) struct Dates {
    /// Date and offset, such as `17/May/2015` and ` +0000`.
    date: [u8; 11],
    offset: [u8; 6],
    midnight: Option<Nanos>,
}

impl Dates {
    pub(crate) fn parse_clf(&mut self, text: &[u8]) -> Result<Nanos, TimeProblem> {
        let known = self.midnight.zip(self.since_midnight(text));
        if let Some(time) = known.and_then(|(midnight, since)| midnight.checked_add(since)) {
            return Ok(time);
        }
        let time = parse_clf(&String::from_utf8_lossy(text))?;
        if let (Some(date), Some(offset)) = (text.first_chunk(), text.last_chunk()) {
            (self.date, self.offset) = (*date, *offset);
            self.midnight = self.since_midnight(text).and_then(|since| time.checked_sub(since));
        }
        Ok(time)
    }

    /// The time of day of `17/May/2015:10:05:03 +0000`; `None` if it is not of that date and
    /// offset, or not of that form.
    fn since_midnight(&self, text: &[u8]) -> Option<Nanos> {
        let (date, rest) = text.split_first_chunk()?;
        let (time, offset) = rest.split_last_chunk()?;
        let [b':', h1, h2, b':', m1, m2, b':', s1, s2] = *time else { return None };
        if *date != self.date || *offset != self.offset {
            return None;
        }
        let number = |tens: u8, ones: u8, below: u8| {
            let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
            (tens < 10 && ones < 10 && tens * 10 + ones < below).then(|| Nanos::from(tens * 10 + ones))
        };
        // A second 60 is left to the slower way.
        let seconds = number(h1, h2, 24)? * 3600 + number(m1, m2, 60)? * 60 + number(s1, s2, 60)?;
        Some(seconds * SECOND)
    }
}

/// Reads a time in any of the known ways; `unit` is what plain numbers count, if that is known.
pub(crate) fn parse_any(text: &str, unit: Option<TimeUnit>) -> Result<Nanos, TimeProblem> {
    let text = text.trim();
    let text = text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(text);
    if let Some(number) = Decimal::parse(text) {
        return number.to_nanos(unit);
    }
    if text.contains('/') {
        return parse_clf(text);
    }
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return in_range(timestamp);
    }
    match text.parse::<DateTime>() {
        Ok(_) if !text.contains(['T', 't', ' ', ':']) => Err(TimeProblem::NoTimeOfDay),
        Ok(local) => in_range(Offset::UTC.to_timestamp(local).map_err(|_| TimeProblem::OutOfRange)?),
        Err(_) if has_long_year(text) => Err(TimeProblem::OutOfRange),
        Err(_) => Err(TimeProblem::NotATime),
    }
}

/// Whether a text that could not be read would have been a date but for a year of five digits or
/// more.
fn has_long_year(text: &str) -> bool {
    let mut parts = text.split(['/', '-', ':', 'T', ' ']);
    let day_first = text.contains('/');
    let year = if day_first { parts.nth(2) } else { parts.next() };
    year.is_some_and(|year| (5..=9).contains(&year.len()) && year.bytes().all(|byte| byte.is_ascii_digit()))
}

pub(crate) fn in_range(timestamp: Timestamp) -> Result<Nanos, TimeProblem> {
    Nanos::try_from(timestamp.as_nanosecond()).map_err(|_| TimeProblem::OutOfRange)
}

/// A decimal number, exactly: `digits` times ten to the `exponent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal {
    digits: i128,
    exponent: i32,
}

impl Decimal {
    /// Reads `-12`, `3.25` or `1.5e9`; `None` for anything else, and for what is far too long to be
    /// a time.
    fn parse(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let unsigned = whole.trim_start_matches(['+', '-']);
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() - unsigned.len() > 1 || unsigned.is_empty() || !all_digits(unsigned) || !all_digits(fraction) {
            return None;
        }
        let digits = format!("{whole}{fraction}").parse().ok()?;
        let exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        Some(Self { digits, exponent })
    }

    /// Digits beyond the nanosecond are cut off, towards the past.
    fn to_nanos(self, unit: Option<TimeUnit>) -> Result<Nanos, TimeProblem> {
        let whole = self.scaled(0).ok_or(TimeProblem::OutOfRange)?;
        let unit = unit.unwrap_or_else(|| TimeUnit::likely_for(whole.unsigned_abs()));
        let nanos = self.scaled(unit.power()).ok_or(TimeProblem::OutOfRange)?;
        Nanos::try_from(nanos).map_err(|_| TimeProblem::OutOfRange)
    }

    /// The number times ten to the `power`, rounded down; `None` where that is too large.
    fn scaled(self, power: i32) -> Option<i128> {
        let exponent = self.exponent.checked_add(power)?;
        let ten_to = 10_i128.checked_pow(exponent.unsigned_abs());
        match (exponent >= 0, ten_to) {
            _ if self.digits == 0 => Some(0),
            (true, ten_to) => self.digits.checked_mul(ten_to?),
            (false, Some(ten_to)) => Some(self.digits.div_euclid(ten_to)),
            (false, None) => Some(if self.digits < 0 { -1 } else { 0 }),
        }
    }
}

/// The time as RFC 3339 in UTC, with as many digits of the second as it takes.
pub(crate) fn rfc3339(time: Nanos) -> String {
    timestamp(time).to_string()
}

/// The time as an axis shows it: only what tells points apart that lie `step` from each other.
pub(crate) fn axis_label(time: Nanos, step: Nanos) -> String {
    let format = if step >= 360 * 24 * 3600 * SECOND {
        "%Y-%m"
    } else if step >= 24 * 3600 * SECOND {
        "%e %b %Y"
    } else if step >= 60 * SECOND {
        "%e %b %H:%M"
    } else if step >= SECOND {
        "%H:%M:%S"
    } else {
        "%H:%M:%S%.f"
    };
    timestamp(time).strftime(format).to_string().trim().to_owned()
}

/// A length of time in at most two units: `6h 20m`, `1.25s`, `3d 4h`.
pub(crate) fn length(nanos: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
    const NANOS_PER_SECOND: u64 = 1_000_000_000;
    let seconds = nanos / NANOS_PER_SECOND;
    if seconds < 60 {
        // Below a minute the fraction matters, and `Duration` writes it as it is.
        return format!("{:?}", core::time::Duration::from_nanos(nanos));
    }
    let first = UNITS.iter().position(|&(_, unit)| seconds >= unit).unwrap_or(UNITS.len() - 1);
    let mut rest = seconds;
    let mut parts = Vec::new();
    for &(name, unit) in UNITS.iter().skip(first).take(2) {
        if rest >= unit {
            parts.push(format!("{}{name}", rest / unit));
        }
        rest %= unit;
    }
    parts.join(" ")
}

/// Lengths of time in words: `1s, 1m and 1h`.
pub(crate) fn lengths(nanos: &[u64]) -> String {
    let all: Vec<String> = nanos.iter().map(|&nanos| length(nanos)).collect();
    match all.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

fn timestamp(time: Nanos) -> Timestamp {
    // Every i64 of nanoseconds lies well within the library's years -9999 to 9999.
    Timestamp::from_nanosecond(i128::from(time)).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_moment_in_every_known_form() {
        let moment = 1_431_857_103_000_000_000;
        assert_eq!(parse_clf("17/May/2015:10:05:03 +0000"), Ok(moment));
        for text in [
            "17/May/2015:12:05:03 +0200",
            "[17/May/2015:10:05:03 +0000]",
            "2015-05-17T10:05:03Z",
            "2015-05-17 10:05:03",
            "2015-05-17T06:05:03-04:00",
            "1431857103",
            "1431857103000",
            "1431857103000.000",
            "1431857103000000",
            "1431857103000000000",
            "1.431857103e9",
        ] {
            assert_eq!(parse_any(text, None), Ok(moment), "{text}");
        }
    }

    #[test]
    fn remembered_dates_give_the_same_times() {
        let mut dates = Dates::default();
        for _ in 0..2 {
            for text in [
                "17/May/2015:10:05:03 +0000",
                "17/May/2015:23:59:59 +0000",
                "17/May/2015:23:59:59 -0130",
                "18/May/2015:00:00:00 -0130",
                "17/May/2015:00:00:00 +0000",
                "17/May/2015:24:00:00 +0000",
                "17/May/2015:10:60:00 +0000",
                "17/May/2015:10:05:60 +0000",
                "17/May/2015:10:05:0x +0000",
                "17/May/2015:10:05:03.25 +0000",
                "17/May/2015 10:05:03 +0000",
                "31/Feb/2015:10:05:03 +0000",
                "17/May/99999:10:05:03 +0000",
                "11/Apr/2262:23:47:16 +0000",
                "11/Apr/2262:23:47:17 +0000",
                "21/Sep/1677:00:12:44 +0000",
                "21/Sep/1677:00:12:43 +0000",
                "17/May/2015",
                "",
            ] {
                assert_eq!(dates.parse_clf(text.as_bytes()), parse_clf(text), "{text}");
            }
        }
    }

    #[test]
    fn nothing_is_lost_below_a_second() {
        for text in ["1431857103.123456789", "2015-05-17T10:05:03.123456789Z", "1431857103123.4567899"] {
            assert_eq!(parse_any(text, None), Ok(1_431_857_103_123_456_789), "{text}");
        }
        assert_eq!(parse_any("-0.0000000001", None), Ok(-1), "rounding is always towards the past");
    }

    #[test]
    fn a_stated_unit_wins_over_the_guess() {
        assert_eq!(parse_any("1500", Some(TimeUnit::Ms)), Ok(1_500_000_000));
        assert_eq!(parse_any("1500", None), Ok(1_500_000_000_000));
        assert_eq!(parse_any("-86400", None), Ok(-86_400_000_000_000), "1969");
    }

    #[test]
    fn absurd_dates_say_why() {
        for text in ["99999-01-01T00:00:00Z", "17/May/99999:10:05:03 +0000", "0001-01-01T00:00:00Z", "1e40", "9e300"] {
            assert_eq!(parse_any(text, None), Err(TimeProblem::OutOfRange), "{text}");
        }
        for text in ["", "-", "yesterday", "17/Mai/2015:10:05:03 +0000", "1e", "--5", "2015-13-01T00:00:00Z"] {
            assert_eq!(parse_any(text, None), Err(TimeProblem::NotATime), "{text}");
        }
        assert_eq!(parse_any("2015-05-17", None), Err(TimeProblem::NoTimeOfDay));
    }

    #[test]
    fn lengths_are_short() {
        assert_eq!(length(0), "0ns");
        assert_eq!(length(1_250_000_000), "1.25s");
        assert_eq!(length(60_000_000_000), "1m");
        assert_eq!(length(22_800_000_000_000), "6h 20m");
        assert_eq!(length(86_400_000_000_000 * 3 + 59_000_000_000), "3d");
    }
}
