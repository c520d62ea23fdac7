//! What is measured, and what we aim for: the list to extend.

use std::time::Duration;

use indicatif::ProgressBar;

use crate::contender::{Name, Setup};
use crate::keys::Popularity;
use crate::rounds::{self, Measured, Plan};

const MINUTE: Duration = Duration::from_secs(60);

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
    /// Which clock tollgate reads; the others read their own default.
    pub clock: TollgateClock,
    /// What a limiter that works admits.
    pub admits: Admits,
    /// Decisions of a round, all threads together.
    pub decisions: usize,
    /// How many threads, each with the most that tollgate may cost in proportion to governor.
    pub targets: &'static [Target],
    /// Measures it, with the type of its keys filled in.
    pub measure: fn(&Scenario, Plan, &ProgressBar) -> Measured,
}

/// What we aim for beside governor with so many threads.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Threads that ask at once.
    pub threads: usize,
    /// The most that tollgate's time may be, as a share of governor's.
    pub governor: f64,
}

/// Which clock tollgate reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TollgateClock {
    /// The default.
    Monotonic,
    /// The one that a thread keeps up to date.
    Coarse,
}

/// What a limiter that works admits in a scenario. A contender that does anything else is set up wrongly, and its time means
/// nothing.
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
        Setup { limit: self.limit, window: self.window, keys: self.popularity.keys() }
    }

    /// A twentieth of the decisions on a tenth of the keys, to see that it works.
    #[must_use]
    pub const fn smaller(self) -> Self {
        Self { decisions: self.decisions / 20, popularity: self.popularity.smaller(), ..self }
    }

    /// The most that tollgate's time may be as a share of a peer's, where we aim for something.
    #[must_use]
    pub fn target(&self, peer: Name, threads: usize) -> Option<f64> {
        match peer {
            Name::Governor => {
                self.targets.iter().find(|target| target.threads == threads).map(|target| target.governor)
            }
            Name::RateNet => Some(0.35),
            Name::OneLock => Some(if threads == 1 { 0.25 } else { 0.10 }),
            Name::Tollgate | Name::ShardedDeques => None,
        }
    }
}

/// Every scenario.
pub const ALL: &[Scenario] = &[
    Scenario {
        name: "one key, denied",
        popularity: Popularity::OneKey,
        limit: 100,
        // So long that governor, too, has nothing to replenish before the run is over.
        window: Duration::from_secs(24 * 60 * 60),
        clock: TollgateClock::Monotonic,
        admits: Admits::Nothing,
        decisions: 2_000_000,
        targets: &[Target { threads: 1, governor: 0.60 }, Target { threads: 2, governor: 0.20 }],
        measure: rounds::measure::<u64>,
    },
    Scenario {
        name: "one key, admitted",
        popularity: Popularity::OneKey,
        limit: 100,
        // 100 permits in 500 ns are 5 ns each: a clock cannot be read that often, so everybody admits everything. A log
        // then holds what it granted in the last 500 ns, some 5 to 50 stamps, and forgets one for each that it grants.
        window: Duration::from_nanos(500),
        clock: TollgateClock::Monotonic,
        admits: Admits::Everything,
        decisions: 2_000_000,
        targets: &[Target { threads: 1, governor: 0.65 }, Target { threads: 2, governor: 0.60 }],
        measure: rounds::measure::<u64>,
    },
    Scenario {
        name: "Zipf(1.0), 100 k keys",
        popularity: Popularity::Zipf { keys: 100_000, exponent: 1.0 },
        limit: 100,
        window: MINUTE.saturating_mul(10),
        clock: TollgateClock::Monotonic,
        admits: Admits::LimitOfEachKey,
        decisions: 1_200_000,
        targets: &[Target { threads: 1, governor: 0.80 }, Target { threads: 2, governor: 0.50 }],
        measure: rounds::measure::<u64>,
    },
    Scenario {
        name: "uniform, 1 M keys",
        popularity: Popularity::Uniform { keys: 1_000_000 },
        limit: 16,
        window: MINUTE.saturating_mul(10),
        clock: TollgateClock::Monotonic,
        admits: Admits::LimitOfEachKey,
        decisions: 600_000,
        targets: &[Target { threads: 1, governor: 1.00 }, Target { threads: 2, governor: 0.60 }],
        measure: rounds::measure::<u64>,
    },
    Scenario {
        name: "one key, denied, coarse clock",
        popularity: Popularity::OneKey,
        limit: 100,
        window: Duration::from_secs(24 * 60 * 60),
        clock: TollgateClock::Coarse,
        admits: Admits::Nothing,
        decisions: 2_000_000,
        targets: &[Target { threads: 1, governor: 0.30 }],
        measure: rounds::measure::<u64>,
    },
];
