#![doc = include_str!("../README.md")]

use core::fmt;
use core::time::Duration;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// The names of each unit, and the unit in nanoseconds, longest first. Weeks are only read. The
/// others are printed by their first name.
const UNITS: [(&[&str], u128); 8] = [
    (&["w", "week", "weeks"], 7 * 86_400 * NANOS_PER_SECOND),
    (&["d", "day", "days"], 86_400 * NANOS_PER_SECOND),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600 * NANOS_PER_SECOND),
    (&["m", "min", "mins", "minute", "minutes"], 60 * NANOS_PER_SECOND),
    (&["s", "sec", "secs", "second", "seconds"], NANOS_PER_SECOND),
    (&["ms", "millisecond", "milliseconds"], 1_000_000),
    (&["us", "µs", "μs", "microsecond", "microseconds"], 1_000),
    (&["ns", "nanosecond", "nanoseconds"], 1),
];

/// A duration as [`parse_duration`] reads it, exactly: `1h30m`, `1s500ms`.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{format_duration, parse_duration};
///
/// let text = format_duration(Duration::from_millis(90_500));
/// assert_eq!(text, "1m30s500ms");
/// assert_eq!(parse_duration(&text), Ok(Duration::from_millis(90_500)));
/// ```
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let mut left = duration.as_nanos();
    if left == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (names, unit) in &UNITS[1..] {
        if left >= *unit {
            text += &format!("{}{}", left / unit, names[0]);
            left %= unit;
        }
    }
    text
}

/// Why a text is not a duration.
///
/// ```
/// use tollgate::{DurationError, parse_duration};
///
/// assert_eq!(parse_duration("-5s"), Err(DurationError::Negative));
/// let error = parse_duration("10").unwrap_err();
/// assert_eq!(error.to_string(), "a unit is missing: write \"10s\" for seconds");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DurationError {
    /// A number has no unit.
    NoUnit {
        /// The number.
        number: String,
    },
    /// The text has a minus sign: a duration can't be negative.
    Negative,
    /// The unit is a month or a year, which has no fixed length.
    NoFixedLength,
    /// The duration has a fraction of a nanosecond.
    TooFine,
    /// The duration is longer than a [`Duration`] can be.
    TooLong,
    /// The text has another format.
    NotADuration,
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = match self {
            Self::NoUnit { number } => return write!(f, "a unit is missing: write \"{number}s\" for seconds"),
            Self::Negative => "a duration can't be negative",
            Self::NoFixedLength => "months and years have no fixed length",
            Self::TooFine => "a fraction of a nanosecond can't be counted",
            Self::TooLong => "the duration is too long",
            Self::NotADuration => "not a duration",
        };
        write!(f, "{problem}: write it like 500ms, 10s, 1m, 1h, 1d or 1h30m")
    }
}

impl core::error::Error for DurationError {}

/// Reads a duration such as `500ms`, `10s`, `1.5h`, `1h30m` or `2 weeks`.
///
/// The text has one or more numbers with units, from nanoseconds to weeks. Their sum is the
/// duration. A day has 24 hours. Policy files, the attribute `rate_limit` and options of the
/// program use this format. A number without a unit is an error everywhere.
///
/// ```
/// use std::time::Duration;
/// use tollgate::parse_duration;
///
/// assert_eq!(parse_duration("1h30m"), Ok(Duration::from_secs(5400)));
/// let error = parse_duration("60").unwrap_err();
/// assert_eq!(error.to_string(), "a unit is missing: write \"60s\" for seconds");
/// ```
///
/// # Errors
///
/// [`DurationError`] when the text is not a duration.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let text = text.trim();
    if text.starts_with(['-', '\u{2212}']) {
        return Err(DurationError::Negative);
    }
    let (mut rest, mut nanos) = (text, 0_u128);
    while !rest.is_empty() {
        let (number, after) = rest.split_at(end_of(rest, |char| char.is_ascii_digit() || char == '.'));
        let after = after.trim_start();
        let (unit, after) = after.split_at(end_of(after, char::is_alphabetic));
        if number.is_empty() {
            return Err(DurationError::NotADuration);
        }
        if unit.is_empty() && after.is_empty() {
            return Err(DurationError::NoUnit { number: number.to_owned() });
        }
        let part = nanos_of(number, unit_of(unit)?)?;
        nanos = nanos.checked_add(part).ok_or(DurationError::TooLong)?;
        rest = after.trim_start();
    }
    if text.is_empty() {
        return Err(DurationError::NotADuration);
    }
    let seconds = u64::try_from(nanos / NANOS_PER_SECOND).map_err(|_| DurationError::TooLong)?;
    // The remainder of a division by 10^9 is below 2^32.
    let below_a_second = u32::try_from(nanos % NANOS_PER_SECOND).unwrap_or(0);
    Ok(Duration::new(seconds, below_a_second))
}

/// The offset at which the characters that belong end.
fn end_of(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|char| !belongs(char)).unwrap_or(text.len())
}

fn unit_of(name: &str) -> Result<u128, DurationError> {
    if ["mo", "mos", "month", "months", "y", "yr", "yrs", "year", "years"].contains(&name) {
        return Err(DurationError::NoFixedLength);
    }
    let unit = UNITS.iter().find(|(names, _)| names.contains(&name));
    unit.map(|&(_, nanos)| nanos).ok_or(DurationError::NotADuration)
}

/// This number of units in nanoseconds, exactly.
fn nanos_of(number: &str, unit: u128) -> Result<u128, DurationError> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || number.ends_with('.') {
        return Err(DurationError::NotADuration);
    }
    let whole: u128 = whole.parse().map_err(|_| DurationError::TooLong)?;
    let nanos = whole.checked_mul(unit).ok_or(DurationError::TooLong)?;
    // More than 15 digits are finer than a nanosecond even for weeks, unless the last are
    // zeros.
    let digits = fraction.trim_end_matches('0');
    let scale = u32::try_from(digits.len()).ok().filter(|&scale| scale <= 15).ok_or(DurationError::TooFine)?;
    let part = digits.parse::<u128>().unwrap_or(0) * unit;
    let divisor = 10_u128.pow(scale);
    if part % divisor != 0 {
        return Err(DurationError::TooFine);
    }
    nanos.checked_add(part / divisor).ok_or(DurationError::TooLong)
}

#[cfg(test)]
mod tests;
