//! The results as markdown.

use std::fmt::Write as _;

use crate::contender::Name;
use crate::rounds::{BATCH, Times};
use crate::scenario::Scenario;

/// The most that the layer may add, as a share of what tower_governor's adds, where headers are on.
const AIM: f64 = 0.5;

/// What is written where a contender does not take part.
const NOT_APPLICABLE: &str = "n/a";

/// Of each contender, or `None` where it does not take part.
pub type OfEach = [Option<f64>; Name::ALL.len()];

/// What came out for a scenario.
pub struct Row {
    /// The scenario.
    pub scenario: Scenario,
    /// Nanoseconds.
    pub times: Times,
    /// Allocations of a request.
    pub allocations: OfEach,
    /// Instructions of a request.
    pub instructions: OfEach,
}

impl Row {
    /// What tollgate adds as a share of what tower_governor adds.
    fn ratio(&self) -> Option<f64> {
        Some(self.times.added(Name::Tollgate)? / self.times.added(Name::TowerGovernor)?)
    }
}

/// Both tables.
#[must_use]
pub fn markdown(rows: &[Row], rounds: usize) -> String {
    format!("{}\n{}\n{}", times(rows), counts(rows), legend(rows, rounds))
}

/// Nanoseconds.
fn times(rows: &[Row]) -> String {
    let mut text = String::from("| ns that a layer adds | no layer takes |");
    let mut rules = String::from("| --- | ---: |");
    for name in Name::LAYERS {
        let _ = write!(text, " {} |", name.label());
        rules.push_str(" ---: |");
    }
    let _ = writeln!(text, " tollgate-tower / tower_governor |\n{rules} ---: |");
    for row in rows {
        let _ = write!(text, "| {} | {} |", row.scenario.label(), cell(row.times.median(Name::None)));
        for name in Name::LAYERS {
            let _ = write!(text, " {} |", cell(row.times.added(name)));
        }
        let verdict = match row.ratio() {
            None => NOT_APPLICABLE.into(),
            Some(ratio) if !row.scenario.headers => format!("{ratio:.2}"),
            Some(ratio) if ratio <= AIM => format!("{ratio:.2} (<= {AIM:.2}: met)"),
            Some(ratio) => format!("{ratio:.2} (<= {AIM:.2}: **not met**)"),
        };
        let _ = writeln!(text, " {verdict} |");
    }
    text
}

/// Allocations and instructions.
fn counts(rows: &[Row]) -> String {
    let mut text = String::from("| allocations (instructions) that a layer adds | no layer takes |");
    let mut rules = String::from("| --- | ---: |");
    for name in Name::LAYERS {
        let _ = write!(text, " {} |", name.label());
        rules.push_str(" ---: |");
    }
    let _ = writeln!(text, "\n{rules}");
    // They are the same for many keys, but for those that fall together.
    for row in rows.iter().filter(|row| row.scenario.keys == 1) {
        let both = |place: usize, less: bool| {
            let [allocations, instructions] = [row.allocations, row.instructions].map(|of_each| {
                let without = if less { of_each[0]? } else { 0.0 };
                Some(of_each[place]? - without)
            });
            allocations.map_or(NOT_APPLICABLE.into(), |count| format!("{count:.0} ({})", cell(instructions)))
        };
        let _ = write!(text, "| {} | {} |", row.scenario.label(), both(0, false));
        for place in 1..Name::ALL.len() {
            let _ = write!(text, " {} |", both(place, true));
        }
        let _ = writeln!(text);
    }
    text
}

fn cell(value: Option<f64>) -> String {
    value.map_or(NOT_APPLICABLE.into(), |value| format!("{value:.0}"))
}

/// How the figures came about.
fn legend(rows: &[Row], rounds: usize) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let aims = rows.iter().filter(|row| row.scenario.headers).filter_map(Row::ratio);
    let (met, all) = aims.fold((0, 0), |(met, all), ratio| (met + u32::from(ratio <= AIM), all + 1));
    format!(
        "Medians over {rounds} interleaved rounds of {BATCH} requests by one thread on {cores} cores. What a layer adds is the \
         time of the request with it less that without, in the same round. Of {all} aims {met} are met. axum-governor \
         always writes its header fields.\n"
    )
}
