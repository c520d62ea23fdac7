//! What is measured, and what we aim for. The scenarios themselves are in [`list`].

pub mod list;

use std::time::Duration;

use indicatif::ProgressBar;

use crate::side_by_side::contender::{Name, Setup};
use crate::side_by_side::keys::Popularity;
use crate::side_by_side::measured::{Measured, Plan};

/// One traffic pattern under one quota.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// As shown in tables, and what `--scenario` searches.
    pub name: &'static str,
    /// Who asks how often.
    pub popularity: Popularity,
    /// Permits per window of each key.
    pub limit: u32,
    /// The window.
    pub window: Duration,
    /// Permits that a request asks for.
    pub cost: u32,
    /// Which clock tollgate reads; the others read their own default.
    pub clock: TollgateClock,
    /// What a limiter that works admits.
    pub admits: Admits,
    /// Decisions of a round, all threads together.
    pub decisions: usize,
    /// Who can do it at all.
    pub who: &'static [Name],
    /// How many threads ask at once; each number is a run of its own.
    pub threads: &'static [usize],
    /// The most that tollgate's time may be, as a share of a peer's.
    pub targets: &'static [Target],
    /// Memory that it takes to have all contenders there at once, where that is a lot.
    pub gigabytes: u32,
    /// Measures it, with the type of its keys filled in.
    pub measure: fn(&Scenario, Plan, &ProgressBar) -> Measured,
}

/// What we aim for with so many threads.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Threads that ask at once.
    pub threads: usize,
    /// The most that the log's time may be, as a share of governor's.
    pub log: f64,
    /// The same of the bucket.
    pub bucket: f64,
}

/// The most that the log's time may be as a share of any other exact log's, with many keys.
const EXACT: f64 = 0.75;

/// Which clock tollgate reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TollgateClock {
    /// The default.
    Monotonic,
    /// The one that a thread keeps up to date.
    Coarse,
}

/// What a limiter that works admits in a scenario. A contender that does anything else is set up
/// wrongly, and its time means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admits {
    /// Nothing, once warm: the limit is used up and the window is longer than the run.
    Nothing,
    /// Everything, or very nearly: the window is so short that nobody can ask often enough.
    Everything,
    /// The limit of each key and no more, in a window longer than the run.
    LimitOfEachKey,
}

impl Scenario {
    /// What contenders are asked to enforce.
    #[must_use]
    pub const fn setup(&self) -> Setup {
        Setup { limit: self.limit, window: self.window, keys: self.popularity.keys(), cap: false }
    }

    /// How often everyone asks before time is taken: once to have a place, or until there is
    /// nothing left.
    #[must_use]
    pub const fn greetings(&self) -> usize {
        match self.admits {
            Admits::Nothing => (self.limit / self.cost) as usize,
            Admits::Everything | Admits::LimitOfEachKey => 1,
        }
    }

    /// A fifth of the decisions on a tenth of the keys, to see that it works.
    #[must_use]
    pub fn smaller(self) -> Self {
        Self { decisions: self.decisions / 5, popularity: self.popularity.smaller(), gigabytes: 0, ..self }
    }

    /// The most that our time may be as a share of a peer's, where we aim for something.
    #[must_use]
    pub fn target(&self, ours: Name, peer: Name, threads: usize) -> Option<f64> {
        let beside_governor = self.targets.iter().find(|target| target.threads == threads);
        match (ours, peer) {
            (Name::Tollgate, Name::Governor) => beside_governor.map(|target| target.log),
            (Name::Bucket, Name::Governor) => beside_governor.map(|target| target.bucket),
            (Name::Tollgate, _) if self.popularity.keys() > 1 => Some(EXACT),
            _ => None,
        }
    }
}
