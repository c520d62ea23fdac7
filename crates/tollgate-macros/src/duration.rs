//! Durations in the format of policy files and the program, such as `10s` and `1h30m`.

use core::fmt;
use core::time::Duration;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// The names of each unit, with the unit in nanoseconds.
const UNITS: [(&[&str], u128); 8] = [
    (&["ns", "nanosecond", "nanoseconds"], 1),
    (&["us", "µs", "μs", "microsecond", "microseconds"], 1_000),
    (&["ms", "millisecond", "milliseconds"], 1_000_000),
    (&["s", "sec", "secs", "second", "seconds"], NANOS_PER_SECOND),
    (&["m", "min", "mins", "minute", "minutes"], 60 * NANOS_PER_SECOND),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600 * NANOS_PER_SECOND),
    (&["d", "day", "days"], 86_400 * NANOS_PER_SECOND),
    (&["w", "week", "weeks"], 7 * 86_400 * NANOS_PER_SECOND),
];

/// Shows a duration exactly, as [`parse`] reads it: `1h30m`.
pub(crate) struct Plain(pub(crate) Duration);

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.0.as_nanos();
        for (name, unit) in [("d", 6), ("h", 5), ("m", 4), ("s", 3), ("ms", 2), ("us", 1), ("ns", 0)] {
            let unit = UNITS[unit].1;
            if left >= unit {
                write!(f, "{}{name}", left / unit)?;
                left %= unit;
            }
        }
        Ok(())
    }
}

const ADVICE: &str = "write it like \"500ms\", \"10s\", \"1m\", \"1h\", \"1d\" or \"1h30m\"";

/// Reads a duration: numbers with units, added up.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err(format!("the duration is empty: {ADVICE}"));
    }
    if text.starts_with(['-', '\u{2212}']) {
        return Err(format!("a duration can't be negative: {ADVICE}"));
    }
    let (mut rest, mut nanos) = (text, 0_u128);
    while !rest.is_empty() {
        let (number, after) = rest.split_at(end_of(rest, |char| char.is_ascii_digit() || char == '.'));
        let after = after.trim_start();
        let (unit, after) = after.split_at(end_of(after, char::is_alphabetic));
        if !number.is_empty() && unit.is_empty() && after.is_empty() {
            return Err(no_unit(number));
        }
        let part = nanos_of(number, unit_of(unit)?)?;
        nanos = nanos.checked_add(part).ok_or_else(too_long)?;
        rest = after.trim_start();
    }
    let seconds = u64::try_from(nanos / NANOS_PER_SECOND).map_err(|_| too_long())?;
    // The remainder of a division by 10^9 is below 2^32.
    let below_a_second = u32::try_from(nanos % NANOS_PER_SECOND).unwrap_or(0);
    Ok(Duration::new(seconds, below_a_second))
}

/// What to write in place of a number without a unit.
pub(crate) fn no_unit(number: &str) -> String {
    format!("a unit is missing: write \"{number}s\" for seconds")
}

/// The offset at which the characters that belong end.
fn end_of(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|char| !belongs(char)).unwrap_or(text.len())
}

fn unit_of(name: &str) -> Result<u128, String> {
    if ["mo", "mos", "month", "months", "y", "yr", "yrs", "year", "years"].contains(&name) {
        return Err(format!("months and years have no fixed length: {ADVICE}"));
    }
    let unit = UNITS.iter().find(|(names, _)| names.contains(&name));
    unit.map(|&(_, nanos)| nanos).ok_or_else(not_a_duration)
}

/// This number of units in nanoseconds, exactly.
fn nanos_of(number: &str, unit: u128) -> Result<u128, String> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || number.ends_with('.') {
        return Err(not_a_duration());
    }
    let whole: u128 = whole.parse().map_err(|_| too_long())?;
    let mut nanos = whole.checked_mul(unit).ok_or_else(too_long)?;
    if !fraction.is_empty() {
        // More than 15 digits are finer than a nanosecond even for weeks, unless the last are
        // zeros.
        let digits = fraction.trim_end_matches('0');
        let scale = u32::try_from(digits.len()).ok().filter(|&scale| scale <= 15).ok_or_else(too_fine)?;
        let part = digits.parse::<u128>().unwrap_or(0) * unit;
        let divisor = 10_u128.pow(scale);
        if part % divisor != 0 {
            return Err(too_fine());
        }
        nanos = nanos.checked_add(part / divisor).ok_or_else(too_long)?;
    }
    Ok(nanos)
}

fn not_a_duration() -> String {
    format!("not a duration: {ADVICE}")
}

fn too_fine() -> String {
    format!("a fraction of a nanosecond can't be counted: {ADVICE}")
}

fn too_long() -> String {
    format!("the duration is too long: {ADVICE}")
}

#[cfg(test)]
mod tests {
    use tollgate::parse_duration;

    #[test]
    fn the_attribute_reads_a_duration_as_policy_files_do() {
        let numbers = [
            "0",
            "1",
            "1.5",
            "1.25",
            "0.000000001",
            "1.0000000001",
            "0.000000000000625",
            "0.0000000000000625",
            ".5",
            "1.",
            "1.5.5",
            "٣",
        ];
        let nines = "9".repeat(30);
        let units = ["", "ns", "us", "µs", "ms", "s", " sec", "m", "min", "h", "hours", "d", "w", "mo", "years", "x"];
        let mut texts: Vec<String> =
            ["", " ", "soon", "s", "-5s", "1h30m", "1 h 30 min", "1s;", "1s2", "1 2s", "1s -1s"]
                .map(String::from)
                .into();
        for number in numbers.into_iter().chain([&*nines]) {
            texts.extend(units.iter().map(|unit| format!("{number}{unit}")));
            texts.extend(units.iter().map(|unit| format!(" {number} {unit} 2ms")));
        }
        let (mut read, mut refused) = (0, 0);
        for text in texts {
            let expected = parse_duration(&text);
            *(if expected.is_ok() { &mut read } else { &mut refused }) += 1;
            assert_eq!(super::parse(&text).ok(), expected.ok(), "{text:?}");
        }
        assert!(read > 50 && refused > 50, "{read} durations and {refused} texts that are none");
    }

    #[test]
    fn a_duration_is_shown_as_it_is_read() {
        for text in ["1ns", "1h30m", "2d1us", "13343d23h58m24s606ms846us975ns", "59s999ms"] {
            assert_eq!(super::Plain(super::parse(text).unwrap()).to_string(), text);
        }
    }

    #[test]
    fn a_message_has_the_remedy() {
        let message = |text| super::parse(text).unwrap_err();
        assert_eq!(message("10"), parse_duration("10").unwrap_err().to_string());
        assert!(message("1mo").starts_with("months and years have no fixed length"));
        for text in ["", "soon", "-5s", "1mo", "0.5ns", &format!("{}w", "9".repeat(40))] {
            assert!(message(text).contains("\"10s\""), "{text}: {}", message(text));
        }
    }
}
