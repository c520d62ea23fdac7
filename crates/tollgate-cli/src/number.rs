//! Whole numbers of the command line.

use core::ops::RangeInclusive;

use crate::words::human;

/// Reads a whole number in a range.
///
/// # Errors
///
/// It is no whole number, or out of the range: what to write.
pub(crate) fn parse_within<T: TryFrom<u64>>(text: &str, range: RangeInclusive<u64>) -> Result<T, String> {
    let number = text.trim();
    check_digits(number)?;
    let in_range = number.parse::<u64>().ok().filter(|number| range.contains(number));
    in_range
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| format!("at least {} and at most {}", human(*range.start()), human(*range.end())))
}

/// # Errors
///
/// The text is no whole number, however large.
pub(crate) fn check_digits(text: &str) -> Result<(), String> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("not a whole number: write it with digits alone, such as 100".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_or_told_their_range() {
        assert_eq!(parse_within::<u16>(" 40 ", 40..=400), Ok(40));
        assert_eq!(parse_within::<u64>("18446744073709551615", 0..=u64::MAX), Ok(u64::MAX));
        for text in ["39", "401", "-40", "99999999999999999999"] {
            assert_eq!(parse_within::<u16>(text, 40..=400), Err("at least 40 and at most 400".to_owned()), "{text}");
        }
        for text in ["", "-", "x", "4.0", "0x4"] {
            assert!(parse_within::<u16>(text, 40..=400).unwrap_err().starts_with("not a whole number"), "{text}");
        }
    }
}
