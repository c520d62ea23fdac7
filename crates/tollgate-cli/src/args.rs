//! The command line.

mod penalty;
#[cfg(feature = "serve")]
mod serve;
mod shared;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tollgate::schema::Field;
use tollgate::{Algorithm, parse_duration};

use crate::fields::{FieldArgs, SpecialArgs, parse_algorithm, parse_count};
use crate::number::parse_within;
use crate::suggest::share::{Of, Share};
use penalty::PenaltyArgs;
#[cfg(feature = "serve")]
pub(crate) use serve::ServeArgs;
use shared::{ClientArgs, CostArgs, KeyArgs, OutputArgs, TopArgs, parse_report_format};
pub(crate) use shared::{InputArgs, ReportFormat};

/// An exact sliding-window rate limiter: see what a limit would have done before you set it.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, about, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Replay access logs through limits and show what they would have admitted and denied.
    Replay(Box<ReplayArgs>),
    /// Find the limit to set: what keys asked for at most, and what each limit would have denied.
    Suggest(Box<SuggestArgs>),
    /// Put one log through several algorithms or policies, and show them side by side.
    Compare(Box<CompareArgs>),
    /// Check policy files, and say in words what they allow.
    Check(CheckArgs),
    /// Answer requests of other programs by a policy file, over HTTP and gRPC.
    #[cfg(feature = "serve")]
    Serve(Box<ServeArgs>),
    /// Answer requests of other programs by a policy file: `cargo install tollgate-cli --features serve`.
    #[cfg(not(feature = "serve"))]
    #[command(disable_help_flag = true)]
    Serve {
        /// Whatever it is told.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        rest: Vec<std::ffi::OsString>,
    },
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
  tollgate replay --limit 5 --per 1m --where method=POST --from 2026-03-02T10:00:00Z access.log
  tollgate replay --limit 20 --per 10s --html report.html access.log
  tollgate replay --limit 20 --per 10s --key user --format json app.jsonl.zst
  tollgate replay --limit 90000 --per 1m --key user --cost-column estimated --actual-cost-column tokens app.jsonl
  tollgate replay --limit 5 --per 1m --penalty-denials 3 --penalty-within 10m --penalty-for 1h access.log
  tollgate replay --limit 5 --per 1m --year 2026 --pattern '^(?<time>\\S+ +\\d+ \\S+) .* from (?<client>\\S+)' auth.log

Formats are told apart by the first lines: common and combined access logs, CSV and TSV with a \
header line, JSON lines, the W3C extended format (IIS, CloudFront), and the logs of Zeek, HAProxy \
and AWS load balancers (ALB); each of them also compressed by gzip or zstd. Other lines of text are read by --pattern. One record is one line. \
Times may be access-log dates, RFC 3339 (both in UTC where no offset is given), syslog dates (with --year), \
or numbers since 1970: read as seconds below 1e11, milliseconds below 1e14, microseconds below \
1e17, and nanoseconds from there, unless --time-unit or --time-format says.

Events are put in time order first (those of the same time keep the order they were read in) and \
each is decided on the log's own clock. Windows that stand still (sliding-counter) and steps \
(quantised-log) begin where they would if that clock had been started in 1970.

A client is an address, and a text that is none stands for itself. IPv6 counts by /64, and \
`::ffff:192.0.2.7` as 192.0.2.7. Behind proxies, [client] in the policy or --trusted-proxy names \
their networks: then the header field that they write counts, as in the service. It is in a column of \
its name (x_forwarded_for, http_x_forwarded_for, request.headers.X-Forwarded-For, ...), in the third \
quoted text of a combined log, or before the peer in the column of the client. The report tells how \
clients were taken.

With --actual-cost-column each request is decided by its estimate, the cost of --cost-column (or 1). \
An admitted one is settled to its actual cost right after that, at the time of the request: less is \
given back, and more is debt that the next requests wait for. How long a request took is not looked at. \
A line that lacks either cost can't be used. The report has the permits of both, and those that were \
not there, of the requests that limits admitted. A policy with a `[store]` or a leaky queue is refused \
then.

Rules, matches, tiers and lists of a policy decide as in the service. A match looks at the whole \
address of the client, at the path without its query, at the method and the host. It looks for \
header.NAME in the columns that a header field of proxies may be in, and for any other field in the \
column of its name. Without such a column no match on it holds, and the program says so. The report \
counts what each rule decided and what no limit is for, and names the tier beside a key.

A policy with a `[store]` is decided on that Redis or Valkey server, at the times of the log, if the \
program was built with the feature `redis`. Its keys there have a prefix of their own and are removed \
in the end. Times are whole microseconds there. Tiers with quotas are refused there. --in-process decides in process.

Exit codes: 0 all was read (lines that could not be used are counted and the first few shown), \
1 a file or the store could not be read or the log has no request, 2 the command line, the limit or the \
policy makes no sense.";

/// What a policy file says, or can't say.
fn by_options() -> Vec<&'static str> {
    let others = ["algorithm", "key", "penalty_denials", "trusted_proxy", "ipv6_prefix"];
    Field::ALL.iter().map(|field| field.name()).chain(others).collect()
}

#[derive(Debug, Args)]
#[command(after_help = REPLAY_HELP)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// A policy file, as the library loads it: dimensions decided as one, each with quotas and a
    /// key of its own, and rules before them. A request that lacks the key of a dimension is asked in
    /// the others
    #[arg(long, value_name = "FILE.toml", conflicts_with_all = by_options())]
    pub(crate) policy: Option<PathBuf>,

    /// Decide in process, although the policy has a `[store]`
    #[arg(long, requires = "policy")]
    pub(crate) in_process: bool,

    /// How permits are counted; sliding-window-log by default, for which --limit and --per may be given
    /// several times, in pairs
    #[arg(long, value_parser = parse_algorithm(), value_name = "NAME")]
    pub(crate) algorithm: Option<Algorithm>,

    #[command(flatten)]
    pub(crate) fields: FieldArgs<false>,

    #[command(flatten)]
    pub(crate) penalty: PenaltyArgs,

    #[command(flatten)]
    pub(crate) keys: KeyArgs,

    #[command(flatten)]
    pub(crate) clients: ClientArgs,

    #[command(flatten)]
    pub(crate) cost: CostArgs,

    /// Write every decision as CSV, in the order decided: time,key,allowed,retry_after_ns; and, if
    /// there is more to it than one sliding window log, delay_ns,dimension,quota,in_the_way. `-` is
    /// standard output; the report then goes to standard error
    #[arg(long, value_name = "FILE")]
    pub(crate) decisions: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) worst: TopArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const SUGGEST_HELP: &str = "\
Examples:
  tollgate suggest access.log
  tollgate suggest --window 10s --deny 0.01% --policy-out policy.toml access.log
  tollgate suggest --html limits.html access.log
  tollgate suggest --key user --of keys --deny 1% --plot limits.svg app.jsonl

The limits are those of sliding window logs, as `replay` and the library decide them: requests that \
are denied do not count. All limits are tried at once, exactly: each request takes the lowest free \
slot of its key and keeps it for one window, and a limit of N denies the requests with a higher \
slot than N. Each request costs one permit.

Windows that are longer than the log are left out: the log does not say what they would hold.

p99 is the nearest rank: the least number that 99% of keys never passed in any window.

The policy has a limit for each window. Together they may deny more than each alone: if that is \
more than the share, half the share is tried for each, and half of that, until all together deny \
no more than the share. A limit that another one makes idle is left out. `replay --policy` on the \
same log denies exactly what is said here.

The logs are read once. Memory is 12 bytes a request for the log, 8 to measure it, the text of each \
key, and 8 bytes a key for each window; it does not depend on the limits or their number.

Exit codes are those of `replay`.";

#[derive(Debug, Args)]
#[command(after_help = SUGGEST_HELP)]
pub(crate) struct SuggestArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    #[command(flatten)]
    pub(crate) keys: KeyArgs,

    #[command(flatten)]
    pub(crate) clients: ClientArgs,

    /// Lengths of windows: 500ms, 10s, 1m, 1h, 1d, 1h30m
    #[arg(long, value_name = "DURATION,...", value_delimiter = ',', value_parser = parse_duration)]
    #[arg(default_value = "1s,10s,1m,1h", allow_hyphen_values = true)]
    pub(crate) window: Vec<Duration>,

    /// The most that a limit may deny; the first is for the policy
    #[arg(long, value_name = "SHARE,...", value_delimiter = ',', default_value = "0.1%,1%")]
    pub(crate) deny: Vec<Share>,

    /// What --deny is a share of
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = Of::Requests)]
    pub(crate) of: Of,

    /// Write a policy that `replay --policy` and the library load; `-` is standard output
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) policy_out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) worst: TopArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const COMPARE_HELP: &str = "\
Examples:
  tollgate compare --limit 20 --per 10s access.log
  tollgate compare --limit 20 --per 10s --algorithm sliding-window-log,fixed-window access.log
  tollgate compare --policy today.toml --policy tomorrow.toml --plot denied.svg access.log

Each of them decides the whole log alone. \"most in any\" is the largest number of permits that one \
key was granted in any window of that length (a request in a queue passes when its delay is over), or \
has used, with --actual-cost-column, which settles charges as `replay` does; \
\"half\" is the wait that half of the denied requests were not told to exceed.

A bucket holds --limit permits and gets them all back in --per. An algorithm that takes another \
option, as leaky-queue takes --max-delay, is compared if that is given.

Exit codes are those of `replay`.";

#[derive(Debug, Args)]
#[command(after_help = COMPARE_HELP)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Permits a key has, by each algorithm
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    pub(crate) limit: Option<u32>,

    /// The window, or the time in which a bucket is full again
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    pub(crate) per: Option<Duration>,

    /// Only these algorithms
    #[arg(long, value_parser = parse_algorithm(), value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) algorithm: Vec<Algorithm>,

    #[command(flatten)]
    pub(crate) special: SpecialArgs,

    #[command(flatten)]
    pub(crate) keys: KeyArgs,

    #[command(flatten)]
    pub(crate) clients: ClientArgs,

    /// A policy file; may be given several times
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) policy: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) cost: CostArgs,

    /// Windows to look for bursts in; by default --per, or 1s and 1m without it
    #[arg(long, value_name = "DURATION,...", value_delimiter = ',', value_parser = parse_duration)]
    pub(crate) window: Vec<Duration>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const CHECK_HELP: &str = "\
Each file is said to be good, with a sentence for each rule, dimension, quota and tier, or the first \
thing that is wrong with it is shown as FILE:LINE:COLUMN, with the line and what to do.

With a good file it warns of what never does anything: a rule, a dimension or a tier for whose \
requests an earlier one is, a quota that another of the same key implies, and what a store does not keep. \
It compares the texts of matches and networks, not patterns.

Exit codes: 0 all are good, 1 a file could not be read, 2 a file is no policy.";

#[derive(Debug, Args)]
#[command(after_help = CHECK_HELP)]
pub(crate) struct CheckArgs {
    /// Policy files; `-` is standard input
    #[arg(value_name = "FILE.toml", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// How the report is written: text or json
    #[arg(long, value_name = "FORMAT", value_parser = parse_report_format, default_value = "text")]
    pub(crate) format: ReportFormat,
}

/// How the lines of a sample are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SampleFormat {
    /// Combined access log
    Clf,
    /// A JSON object on every line
    #[value(alias = "json")]
    Jsonl,
}

#[derive(Debug, Args)]
pub(crate) struct SampleArgs {
    /// What the log is made from
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    #[arg(value_parser = |text: &str| parse_within::<u64>(text, 0..=u64::MAX))]
    pub(crate) seed: u64,

    /// How many lines to make
    #[arg(long, default_value_t = 2400, allow_negative_numbers = true)]
    #[arg(value_parser = |text: &str| parse_within::<u32>(text, 0..=u64::from(u32::MAX)))]
    pub(crate) lines: u32,

    /// How the lines are written
    #[arg(long, alias = "format", value_enum, value_name = "FORMAT", default_value_t = SampleFormat::Clf)]
    pub(crate) log_format: SampleFormat,
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
