//! What each of those that are compared did.

use super::bursts::Burst;
use super::contenders::Contender;
use crate::key::{Field, describe_all};
use crate::log::Log;
use crate::outcome::{DimensionOutcome, Outcome};
use crate::terminal::Style;
use crate::timeline::Timeline;

/// What one contender did.
#[derive(Debug)]
pub(super) struct Finish {
    pub(super) outcome: Outcome,
    /// The waits of the requests that were denied and could pass later, ascending.
    pub(super) waits: Vec<u64>,
    /// The largest burst in each of the windows.
    pub(super) bursts: Vec<Burst>,
    pub(super) timeline: Timeline,
}

/// Everything that the report is made of.
#[derive(Debug)]
pub(super) struct Comparison<'a> {
    pub(super) log: &'a Log,
    pub(super) keys: &'a [Vec<Field>],
    pub(super) windows: Vec<u64>,
    pub(super) all: Vec<(Contender, Finish)>,
    pub(super) style: Style,
}

impl Comparison<'_> {
    pub(super) fn title(&self) -> String {
        format!("side by side, for each {}", describe_all(self.keys))
    }
}

impl Finish {
    pub(super) fn keys(&self) -> usize {
        self.outcome.dimensions.iter().map(|dimension| dimension.keys().count()).sum()
    }

    pub(super) fn keys_denied(&self) -> usize {
        let denied = |dimension: &DimensionOutcome| dimension.by_key.iter().filter(|key| key.turned_away > 0).count();
        self.outcome.dimensions.iter().map(denied).sum()
    }

    /// The wait that half of those denied were not told to exceed: the nearest rank.
    pub(super) fn median_wait(&self) -> u64 {
        self.waits.get(self.waits.len().div_ceil(2).saturating_sub(1)).copied().unwrap_or(0)
    }

    pub(super) fn longest_wait(&self) -> u64 {
        self.waits.last().copied().unwrap_or(0)
    }
}
