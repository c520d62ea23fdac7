//! The results as markdown.

use crate::http_layers::contender::Name;
use crate::http_layers::rounds::{BATCH, Times};
use crate::http_layers::scenario::Scenario;
use crate::machine::cores;
use crate::table::{self, NOT_APPLICABLE, Table};

/// The most that the layer may add, as a share of what tower_governor's adds, where headers are on.
const AIM: f64 = 0.5;

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
fn times(rows: &[Row]) -> Table {
    let layers = Name::LAYERS.map(Name::label);
    let before = ["ns that a layer adds", "no layer takes"];
    let mut table = Table::new(&[&before, &layers[..], &["tollgate-tower / tower_governor"]].concat());
    for row in rows {
        let mut cells = vec![row.scenario.label(), cell(row.times.median(Name::None))];
        cells.extend(Name::LAYERS.map(|name| cell(row.times.added(name))));
        cells.push(table::ratio(row.ratio(), row.scenario.headers.then_some(AIM)));
        table.row(&cells);
    }
    table
}

/// Allocations and instructions.
fn counts(rows: &[Row]) -> Table {
    let layers = Name::LAYERS.map(Name::label);
    let before = ["allocations (instructions) that a layer adds", "no layer takes"];
    let mut table = Table::new(&[&before, &layers[..]].concat());
    // They are the same for many keys, but for those that fall together.
    for row in rows.iter().filter(|row| row.scenario.keys == 1) {
        let both = |place: usize, less: bool| {
            let [allocations, instructions] = [row.allocations, row.instructions].map(|of_each| {
                let without = if less { of_each[0]? } else { 0.0 };
                Some(of_each[place]? - without)
            });
            allocations.map_or(NOT_APPLICABLE.into(), |count| format!("{count:.0} ({})", cell(instructions)))
        };
        let mut cells = vec![row.scenario.label(), both(0, false)];
        cells.extend((1..Name::ALL.len()).map(|place| both(place, true)));
        table.row(&cells);
    }
    table
}

fn cell(value: Option<f64>) -> String {
    value.map_or(NOT_APPLICABLE.into(), |value| format!("{value:.0}"))
}

/// How the figures came about.
fn legend(rows: &[Row], rounds: usize) -> String {
    let aims = rows.iter().filter(|row| row.scenario.headers).filter_map(Row::ratio);
    let (met, all) = aims.fold((0, 0), |(met, all), ratio| (met + u32::from(ratio <= AIM), all + 1));
    format!(
        "Medians over {rounds} interleaved rounds of {BATCH} requests by one thread on {} cores. What a layer adds is the \
         time of the request with it less that without, in the same round. Of {all} aims {met} are met. axum-governor \
         always writes its header fields.\n",
        cores()
    )
}
