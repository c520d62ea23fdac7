//! What parsers of all formats share: what is wanted of a line, and what it gives.

use clap::ValueEnum;
use regex::bytes::Regex;

use crate::errors::LineError;
use crate::key::{Field, KeyText};
use crate::text::excerpt;
use crate::time::Nanos;
use crate::times::{TimeOptions, Times};

/// How the lines of a log are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Common or combined access log, as Apache and nginx write it
    #[value(alias = "combined", alias = "common")]
    Clf,
    /// Comma-separated values with a header line
    Csv,
    /// Tab-separated values with a header line
    Tsv,
    /// A JSON object on every line
    #[value(alias = "ndjson", alias = "json")]
    Jsonl,
    /// The W3C extended format, as IIS and CloudFront write it, with its #Fields lines
    W3c,
    /// Zeek's logs, with their #fields lines
    Zeek,
    /// HAProxy's, of `option httplog` and `option tcplog`
    Haproxy,
    /// Those of an Application Load Balancer of AWS
    Alb,
}

/// What is wanted of each line.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// How the lines are written, if that is said.
    pub(crate) format: Option<Format>,
    /// Takes the lines apart, in place of a format.
    pub(crate) pattern: Option<Regex>,
    /// The parts of every key, one key after the other.
    pub(crate) key: Vec<Field>,
    /// What says the key.
    pub(crate) key_option: &'static str,
    /// What matches look at, after the key. A log may lack it.
    pub(crate) matched: Vec<Field>,
    /// What filters look at, after that.
    pub(crate) filters: Vec<Field>,
    pub(crate) time_column: Option<String>,
    pub(crate) times: TimeOptions,
    pub(crate) cost_column: Option<String>,
    pub(crate) actual_cost_column: Option<String>,
}

/// What asks for what matches look at.
pub(crate) const MATCH: &str = "`match` in the policy";

/// When a request came, what it asks for, and what it has cost in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) time: Nanos,
    pub(crate) cost: u32,
    /// The same as `cost`, unless a column has it.
    pub(crate) actual: u32,
}

/// Reads the lines of one source.
pub(crate) trait LineParser {
    /// The line's stamp; what makes up its key is pushed to `key`, which the caller has cleared.
    /// `None` for a line that is not a record and isn't meant to be one, such as a header.
    fn parse(&mut self, line: &[u8], key: &mut KeyText) -> Result<Option<Stamp>, LineError>;

    /// The names of the line's fields, where each line has its own.
    fn fields(&self, _line: &[u8]) -> Vec<String> {
        Vec::new()
    }
}

impl Wanted {
    pub(super) fn nothing() -> Self {
        let (key, matched, filters) = (Vec::new(), Vec::new(), Vec::new());
        let times = TimeOptions::default();
        let (format, pattern) = (None, None);
        let (key_option, time_column) = ("--key", None);
        let (cost_column, actual_cost_column) = (None, None);
        Self { format, pattern, key, key_option, matched, filters, time_column, times, cost_column, actual_cost_column }
    }

    /// Every value of a record that is asked for, in the order to be pushed, and what asks for it.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&Field, &'static str)> {
        let key = self.key.iter().map(|field| (field, self.key_option));
        let matched = self.matched.iter().map(|field| (field, MATCH));
        key.chain(matched).chain(self.filters.iter().map(|field| (field, "--where")))
    }
}

pub(super) fn time_of(text: &[u8], times: &mut Times) -> Result<Nanos, LineError> {
    let text = String::from_utf8_lossy(text);
    times.read(&text).map_err(|problem| LineError::Time { text: text.into_owned(), problem })
}

/// How an explicit choice of column is called in messages.
pub(super) fn named(what: &str, name: Option<&str>) -> String {
    name.map_or_else(|| what.to_owned(), |name| format!("{what} called {}", excerpt(name.as_bytes())))
}
