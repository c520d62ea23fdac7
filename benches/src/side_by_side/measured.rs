//! How a scenario is run, and what came out.

use crate::side_by_side::contender::Name;
use crate::statistics::median;

/// How a scenario is run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Threads that ask at once.
    pub threads: usize,
    /// Timed rounds.
    pub rounds: usize,
}

/// What came out for one scenario and number of threads.
#[derive(Debug)]
pub struct Measured {
    /// Threads that asked at once.
    pub threads: usize,
    /// For each contender of the scenario.
    pub contenders: Vec<Timings>,
}

/// What came out for one contender.
#[derive(Debug)]
pub struct Timings {
    /// Whose they are.
    pub name: Name,
    /// Nanoseconds per decision and thread, of each timed round.
    pub ns: Vec<f64>,
    /// Requests admitted, of those timed.
    pub admitted: f64,
}

impl Measured {
    /// The timings of one contender, if it takes part.
    #[must_use]
    pub fn of(&self, name: Name) -> Option<&Timings> {
        self.contenders.iter().find(|timings| timings.name == name)
    }

    /// One contender's time as a share of another's: the median over rounds of the ratio in each
    /// round.
    ///
    /// The two runs of one round are neighbours in time, so a slow spell of the machine cancels
    /// out.
    #[must_use]
    pub fn ratio(&self, of: Name, to: Name) -> Option<f64> {
        let pairs = self.of(of)?.ns.iter().zip(&self.of(to)?.ns);
        Some(median(&pairs.map(|(ours, theirs)| ours / theirs).collect::<Vec<_>>()))
    }
}
