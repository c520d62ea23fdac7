//! What is suggested: limits, and what each would have done.

use tollgate::Quota;

use super::policy::Chosen;
use super::share::{Of, Share};
use super::slots::{HitKey, Spread};
use crate::log::Log;
use crate::terminal::Style;

/// Where the distribution over keys is looked at, in keys of a thousand.
pub(super) const QUANTILES: [(&str, usize); 5] =
    [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999), ("max", 1000)];

/// A limit, and what it alone would have done.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) quota: Quota,
    pub(super) denied: u64,
    /// The keys that it hits, those with the most denials first.
    pub(super) hit: Vec<HitKey>,
}

/// The limits for one share, one for each window.
#[derive(Debug)]
pub(super) struct Ladder {
    pub(super) share: Share,
    pub(super) candidates: Vec<Candidate>,
}

/// Everything that the report is made of.
#[derive(Debug)]
pub(super) struct Suggestion<'a> {
    pub(super) log: &'a Log,
    pub(super) key: String,
    pub(super) of: Of,
    pub(super) spreads: Vec<Spread>,
    /// Windows that are longer than the log, in nanoseconds.
    pub(super) longer: Vec<u64>,
    pub(super) ladders: Vec<Ladder>,
    pub(super) chosen: Chosen,
    pub(super) top: usize,
    pub(super) style: Style,
}
