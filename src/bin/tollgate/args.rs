//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tollgate::policy::parse_duration;

use crate::formats::Format;
use crate::key::Field;
use crate::plan::AlgorithmName;
use crate::time::TimeUnit;

/// An exact sliding-window rate limiter: see what a limit would have done before you set it.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, about)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Replay access logs through limits and show what they would have admitted and denied.
    Replay(Box<ReplayArgs>),
    /// Print a made-up access log to try `replay` on; the same seed always gives the same log.
    Sample(SampleArgs),
}

const REPLAY_HELP: &str = "\
Examples:
  tollgate replay --limit 100 --per 1m access.log
  tollgate replay --limit 10 --per 1s --limit 100 --per 1m access.log
  tollgate replay --algorithm token-bucket --capacity 20 --refill 5 --per 1s access.log
  tollgate replay --policy policy.toml --decisions decisions.csv access.log
  tollgate replay --limit 5 --per 1s --key client,path access.log.*.gz --plot denied.svg
  zstdcat app.jsonl.zst | tollgate replay --limit 20 --per 10s --key user --decisions decisions.csv

Formats are told apart by the first lines: common and combined access logs, CSV and TSV with a header line, JSON
lines; each of them also gzipped. One record is one line. Times may be access-log dates, RFC 3339 (UTC where no offset
is given), or numbers since 1970: read as seconds below 1e11, milliseconds below 1e14, microseconds below 1e17, and
nanoseconds from there, unless --time-unit says.

Events are put in time order first (those of the same time keep the order they were read in) and each is decided on the
log's own clock. Windows that stand still (sliding-counter) and steps (quantised-log) begin where they would if that clock
had been started in 1970.

Exit codes: 0 all was read (lines that could not be used are counted and the first few shown), 1 a file could not be
read or there was nothing to decide, 2 the command line, the limit or the policy makes no
sense.";

/// What a policy file says.
const BY_OPTIONS: [&str; 9] =
    ["algorithm", "limit", "per", "capacity", "refill", "leak", "max_delay", "resolution", "key"];

#[derive(Debug, Args)]
#[command(after_help = REPLAY_HELP)]
pub(crate) struct ReplayArgs {
    /// Logs to read, together; `-` or none for standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// A policy file, as the library loads it: dimensions decided as one, each with quotas and a key of its own. A request that
    /// lacks the key of a dimension is asked in the others
    #[arg(long, value_name = "FILE.toml", conflicts_with_all = BY_OPTIONS)]
    pub(crate) policy: Option<PathBuf>,

    /// How permits are counted
    #[arg(long, value_enum, value_name = "NAME", default_value_t = AlgorithmName::SlidingWindowLog)]
    pub(crate) algorithm: AlgorithmName,

    /// Permits a key has in any window; may be given several times, each with its --per
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) limit: Vec<u32>,

    /// Length of the window, or what --refill and --leak are per: 500ms, 10s, 1m, 1h, 1d, 1h30m
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    pub(crate) per: Vec<Duration>,

    /// Permits that a key's bucket holds
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) capacity: Option<u32>,

    /// Permits that come back to a token bucket every --per
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) refill: Option<u32>,

    /// Permits that run out of a leaky bucket, or leave a queue, every --per
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) leak: Option<u32>,

    /// The longest that a request may be kept in a queue
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    pub(crate) max_delay: Option<Duration>,

    /// How long the steps are that a quantised log remembers permits in
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    pub(crate) resolution: Option<Duration>,

    /// What the limit is per: client, user, path, method, a column's name, or several with commas between.
    /// `column:NAME` is the column NAME even where NAME is one of those words
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',', default_value = "client")]
    pub(crate) key: Vec<Field>,

    /// How the lines are to be read, if not as the first of them look
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,

    /// The column that holds the time, if not one of the usual names
    #[arg(long, value_name = "NAME")]
    pub(crate) time_column: Option<String>,

    /// What times that are plain numbers count since 1970, if not what their size suggests
    #[arg(long, value_enum, value_name = "UNIT")]
    pub(crate) time_unit: Option<TimeUnit>,

    /// A column that holds each request's cost in permits; each costs 1 otherwise
    #[arg(long, value_name = "NAME")]
    pub(crate) cost_column: Option<String>,

    /// How many of the worst keys to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,

    /// Draw admitted and denied requests over time
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,

    /// Write every decision as CSV, in the order decided: time,key,allowed,retry_after_ns; and, if there is more to it than one
    /// sliding window log, delay_ns,dimension,quota,in_the_way
    #[arg(long, value_name = "FILE")]
    pub(crate) decisions: Option<PathBuf>,

    /// Columns to draw the report in, if not the terminal's width (72 without a terminal)
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(40..=400))]
    pub(crate) width: Option<u16>,

    /// Whether to colour the report
    #[arg(long, value_enum, default_value_t = When::Auto)]
    pub(crate) color: When,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

#[derive(Debug, Args)]
pub(crate) struct SampleArgs {
    /// What the log is made from
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// How many lines to make
    #[arg(long, default_value_t = 2400)]
    pub(crate) lines: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
