//! Shares such as 0.1 %, kept as they were written: no limit is chosen by a rounded number.

use core::fmt;
use core::str::FromStr;

/// What a share is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Of {
    /// Of all requests, those that are denied
    Requests,
    /// Of all keys, those of which at least one request is denied
    Keys,
}

impl fmt::Display for Of {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requests => "requests",
            Self::Keys => "keys",
        })
    }
}

/// So many of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    part: u128,
    whole: u128,
}

impl Share {
    /// Whether `part` of `whole` is at most this.
    pub(crate) fn allows(self, part: u64, whole: u64) -> bool {
        // Below 2^64 times 2^64 on the one side, and a share is no more than 10^9 of 10^11 on the
        // other, halved at most 64 times.
        match (u128::from(part).checked_mul(self.whole), u128::from(whole).checked_mul(self.part)) {
            (Some(part), Some(allowed)) => part <= allowed,
            _ => part == 0,
        }
    }

    pub(crate) fn halved(self) -> Self {
        Self { whole: self.whole.saturating_mul(2), ..self }
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let help = "write a share such as 0.1% or 1%, from 0% to below 100%";
        let Some(number) = text.trim().strip_suffix('%') else {
            return Err(format!("a percent sign is missing: {help}"));
        };
        let number = number.trim();
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(fraction) || whole.len() > 3 || fraction.len() > 9 {
            return Err(help.to_owned());
        }
        let part = format!("{whole}{fraction}").parse().map_err(|_| help.to_owned())?;
        let whole = 10_u128.pow(u32::try_from(fraction.len()).unwrap_or(0) + 2);
        if part >= whole { Err(help.to_owned()) } else { Ok(Self { part, whole }) }
    }
}

impl fmt::Display for Share {
    /// As it was written, if it was not halved.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredth = self.whole / 100;
        let (percent, rest) = (self.part / hundredth, self.part % hundredth);
        if rest == 0 {
            return write!(f, "{percent}%");
        }
        let digits = usize::try_from(hundredth.ilog10()).unwrap_or(0);
        let fraction = format!("{rest:0digits$}");
        write!(f, "{percent}.{}%", fraction.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact() {
        let share = |text: &str| text.parse::<Share>().unwrap();
        assert!(share("0.1%").allows(1, 1000) && !share("0.1%").allows(1, 999));
        assert!(share("0%").allows(0, 10) && !share("0%").allows(1, u64::MAX));
        assert!(share("33.333333333%").allows(33_333_333_333, 100_000_000_000));
        assert!(!share("33.333333333%").allows(1, 3));
        for text in ["0.1%", "1%", "12.005%", "0%"] {
            assert_eq!(share(text).to_string(), text);
        }
        assert_eq!(share("1.50 %").to_string(), "1.5%");
        assert_eq!((share("1%").halved().allows(1, 200), share("1%").halved().allows(1, 199)), (true, false));
        for text in ["1", "-1%", "%", "100%", "x%", "1.%5", "0.1234567891%", "1000%"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }
}
