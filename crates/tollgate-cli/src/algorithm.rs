//! The algorithms as options name them, and what each takes.

use clap::ValueEnum;
use tollgate::Quota;

use crate::number::check_digits;
use crate::words::human;

/// The algorithms, by the names that policy files call them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AlgorithmName {
    /// At most --limit in any --per; the pair may be given several times
    SlidingWindowLog,
    /// Holds --capacity permits, and --refill come back every --per
    TokenBucket,
    /// Holds --capacity permits, and --leak run out every --per
    LeakyBucket,
    /// --leak leave every --per, and no request waits longer than --max-delay
    LeakyQueue,
    /// --limit from a first request until --per later
    FixedWindow,
    /// --limit per --per, by the counts of two windows: for limits of 10 and more
    SlidingCounter,
    /// At most --limit in any --per, remembered in steps of --resolution
    QuantisedLog,
}

impl AlgorithmName {
    /// The options that it takes, all of them needed.
    pub(crate) fn options(self) -> &'static [&'static str] {
        match self {
            Self::SlidingWindowLog | Self::FixedWindow | Self::SlidingCounter => &["--limit", "--per"],
            Self::TokenBucket => &["--capacity", "--refill", "--per"],
            Self::LeakyBucket => &["--capacity", "--leak", "--per"],
            Self::LeakyQueue => &["--leak", "--per", "--max-delay"],
            Self::QuantisedLog => &["--limit", "--per", "--resolution"],
        }
    }

    /// The algorithms that take an option, as a sentence names them.
    pub(crate) fn that_take(option: &str) -> String {
        let all = Self::value_variants().iter().filter(|algorithm| algorithm.options().contains(&option));
        all.map(|algorithm| algorithm.name()).collect::<Vec<_>>().join(" and ")
    }

    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Reads a number of permits. How many an algorithm takes at most is said here too: a number that
/// is past all of them is told the true range and not that of some integer.
pub(crate) fn parse_count(text: &str) -> Result<u32, String> {
    let text = text.trim();
    text.parse::<u32>().map_err(|_| {
        if let Err(why) = check_digits(text) {
            return why;
        }
        let (log, counter, others) = (Quota::MAX_LIMIT, Quota::MAX_COUNTER_LIMIT, Quota::MAX_CAPACITY);
        format!(
            "at least 1 and at most {} (sliding-window-log), {} (sliding-counter) or {} (the other algorithms)",
            human(log.into()),
            human(counter.into()),
            human(others.into())
        )
    })
}
