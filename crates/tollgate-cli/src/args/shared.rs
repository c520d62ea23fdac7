//! Options that several commands have.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use regex::bytes::Regex;
use tollgate_address::{ClientAddress, TrustedProxies};

use crate::clients::Clients;
use crate::errors::RunError;
use crate::filter::{Filter, parse_moment};
use crate::formats::{Format, parse_pattern};
use crate::key::{Field, parse_field};
use crate::number::parse_within;
use crate::terminal::When;
use crate::time::{Nanos, TimeUnit};

/// What is read, and how.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// Logs to read, together; `-` or none for standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// How the lines are to be read, if not as the first of them look
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) log_format: Option<Format>,

    /// Takes lines of text apart: a regular expression whose groups name the columns, such as
    /// `^(?<time>\S+ +\d+ \S+) .* from (?<client>\S+)`. Lines that do not match cannot be used
    #[arg(long, value_name = "REGEX", value_parser = parse_pattern, conflicts_with = "log_format")]
    pub(crate) pattern: Option<Regex>,

    /// The column that holds the time, if not one of the usual names
    #[arg(long, value_name = "NAME")]
    pub(crate) time_column: Option<String>,

    /// What times that are plain numbers count since 1970, if not what their size suggests
    #[arg(long, value_enum, value_name = "UNIT")]
    pub(crate) time_unit: Option<TimeUnit>,

    /// How times are written, if in no usual way: with the directives of strptime, such as
    /// `%d.%m.%Y %H:%M:%S`. Without an offset (%z) they are in UTC
    #[arg(long, value_name = "FORMAT")]
    pub(crate) time_format: Option<String>,

    /// The year of the first line, where times have none, as syslog writes them. Of the others it
    /// is the year that puts them nearest to the line before
    #[arg(long, value_name = "YYYY", value_parser = |text: &str| parse_within::<i16>(text, 0..=9999))]
    #[arg(allow_negative_numbers = true)]
    pub(crate) year: Option<i16>,

    /// Only requests at this time or later: RFC 3339, an access log's date, a day such as
    /// 2026-03-02 (from midnight, UTC), or a number since 1970
    #[arg(long, value_name = "TIME", value_parser = parse_moment, allow_hyphen_values = true)]
    pub(crate) from: Option<Nanos>,

    /// Only requests before this time
    #[arg(long, value_name = "TIME", value_parser = parse_moment, allow_hyphen_values = true)]
    pub(crate) until: Option<Nanos>,

    /// Only requests whose field is this (or, with `!=`, is not): `method=POST`, `path!=/health`,
    /// `path=/api/*`. `*` is any text, `-` is no value. All of several have to hold
    #[arg(long = "where", value_name = "FIELD=VALUE")]
    pub(crate) filters: Vec<Filter>,
}

/// What the report looks like.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Draw the result over time, or by the limit
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,

    /// Write the report as one page for others, with tables and plots: it loads nothing, and shows
    /// values where it is pointed at. `--top 0` keeps keys out of it
    #[arg(long, value_name = "FILE.html")]
    pub(crate) html: Option<PathBuf>,

    /// How the report is written: text or json
    #[arg(long, value_name = "FORMAT", value_parser = parse_report_format, default_value = "text")]
    pub(crate) format: ReportFormat,

    /// Columns to draw the report in, if not the width of the terminal (72 without a terminal).
    /// Sentences wrap; rows of tables take up to 69 columns
    #[arg(long, value_name = "COLUMNS", value_parser = |text: &str| parse_within::<u16>(text, 40..=400))]
    #[arg(allow_negative_numbers = true)]
    pub(crate) width: Option<u16>,

    /// Whether to colour the report
    #[arg(long, value_enum, default_value_t = When::Auto)]
    pub(crate) color: When,
}

/// What requests are told apart by.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// What the limit is per: client, user, path, method, host, header.NAME for a header field, a
    /// column's name, or several with commas between. `column:NAME` is the column NAME even where NAME is one of those words. Policies
    /// have keys of their own
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',', default_value = "client")]
    #[arg(value_parser = parse_field)]
    pub(crate) key: Vec<Field>,
}

/// Who clients are, without a policy.
#[derive(Debug, Args)]
pub(crate) struct ClientArgs {
    /// The networks of proxies: the client of a request from them is the one that they wrote in
    /// X-Forwarded-For, which the log has in a column of that name or as the third quoted text of a
    /// combined format. `unix` is any Unix socket. A policy has [client] in its place
    #[arg(long, value_name = "NETWORK,...", value_delimiter = ',')]
    pub(crate) trusted_proxy: Vec<String>,

    /// The bits of an IPv6 address that are one key, 32 to 128; 64 by default
    #[arg(long, value_name = "BITS", allow_negative_numbers = true)]
    #[arg(value_parser = |text: &str| parse_within::<u8>(text, 32..=128))]
    pub(crate) ipv6_prefix: Option<u8>,
}

impl ClientArgs {
    /// The rules of the options; `None` without any.
    ///
    /// # Errors
    ///
    /// A network is none, overlaps with another, or is too wide.
    pub(crate) fn clients(&self) -> Result<Option<Clients>, RunError> {
        if self.trusted_proxy.is_empty() && self.ipv6_prefix.is_none() {
            return Ok(None);
        }
        let usual = ClientAddress::default();
        let proxies = match &self.trusted_proxy[..] {
            [] => Ok(usual.clone()),
            networks => TrustedProxies::new(networks).map(ClientAddress::behind),
        };
        let clients = proxies.and_then(|clients| clients.ipv6_prefix(self.ipv6_prefix.unwrap_or(usual.prefix())));
        clients.map(|clients| Some(Clients::new(clients))).map_err(|error| RunError::Options(error.to_string()))
    }
}

/// What requests cost.
#[derive(Debug, Args)]
pub(crate) struct CostArgs {
    /// A column that holds each request's cost in permits; each costs 1 otherwise
    #[arg(long, value_name = "NAME")]
    pub(crate) cost_column: Option<String>,

    /// A column that holds what each request has cost in fact. Requests are decided by the cost of
    /// --cost-column, which is an estimate then, and admitted ones are settled to this at once
    #[arg(long, value_name = "NAME")]
    pub(crate) actual_cost_column: Option<String>,
}

/// As many as there can be.
const MOST_ROWS: u64 = usize::MAX as u64;

/// Which keys the report shows.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// How many of the worst keys to show
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true)]
    #[arg(value_parser = |text: &str| parse_within::<usize>(text, 0..=MOST_ROWS))]
    pub(crate) top: usize,
}

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people
    Text,
    /// One JSON object
    Json,
}

/// Sends a format of logs to the option that it belongs to.
pub(super) fn parse_report_format(text: &str) -> Result<ReportFormat, String> {
    ReportFormat::from_str(text, false).map_err(|_| match Format::from_str(text, false) {
        Ok(_) => format!("--format is for the report (text, json): write --log-format {text}"),
        Err(_) => "write text or json".to_owned(),
    })
}
