//! The results as markdown for people and as JSON for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::contender::Name;
use crate::rounds::{Measured, median};
use crate::scenario::Scenario;

/// A scenario and what came out.
pub type Row = (Scenario, Measured);

/// Two tables: the times, and what they are in proportion to each peer's.
#[must_use]
pub fn markdown(rows: &[Row], rounds: usize) -> String {
    let mut text = String::new();
    let peers = || Name::ALL.into_iter().skip(1);

    let mut heading = vec![String::from("ns/decision"), String::from("threads")];
    heading.extend(Name::ALL.map(|name| name.label().into()));
    heading.push("admitted".into());
    table_heading(&mut text, &heading);
    for (scenario, measured) in rows {
        let mut cells = vec![scenario.name.into(), measured.threads.to_string()];
        cells.extend(Name::ALL.map(|name| format!("{:.1}", median(&measured.of(name).ns))));
        cells.push(shares(measured));
        table_row(&mut text, &cells);
    }
    text.push('\n');

    let mut heading = vec![String::from("tollgate / peer (target)"), String::from("threads")];
    heading.extend(peers().map(|name| name.label().into()));
    table_heading(&mut text, &heading);
    for (scenario, measured) in rows {
        let mut cells = vec![scenario.name.into(), measured.threads.to_string()];
        cells.extend(peers().map(|peer| {
            let ratio = measured.ratio_to(peer);
            match scenario.target(peer, measured.threads) {
                Some(target) if ratio <= target => format!("{ratio:.2} (<= {target:.2}: met)"),
                Some(target) => format!("{ratio:.2} (<= {target:.2}: **not met**)"),
                None => format!("{ratio:.2}"),
            }
        }));
        table_row(&mut text, &cells);
    }
    let _ = write!(
        text,
        "\nMedians over {rounds} interleaved rounds; a ratio is the median of the rounds' ratios. Time is wall time by \
         decisions per thread. Every contender is the exact log but governor, which is GCRA.\n"
    );
    text
}

/// The share admitted: one figure where all agree, and otherwise everyone's who differs from tollgate.
fn shares(measured: &Measured) -> String {
    let share = |name| format!("{:.1} %", 100.0 * measured.of(name).admitted);
    let ours = share(Name::Tollgate);
    let others = Name::ALL.into_iter().filter(|&name| share(name) != ours);
    let others: Vec<String> = others.map(|name| format!("{} {}", name.label(), share(name))).collect();
    if others.is_empty() { ours } else { format!("{ours} ({})", others.join(", ")) }
}

fn table_heading(text: &mut String, cells: &[String]) {
    table_row(text, cells);
    let rules: Vec<String> =
        cells.iter().enumerate().map(|(i, _)| if i == 0 { "---" } else { "---:" }.into()).collect();
    table_row(text, &rules);
}

fn table_row(text: &mut String, cells: &[String]) {
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

/// Everything, each round's time included.
#[must_use]
pub fn json(rows: &[Row]) -> Value {
    rows.iter()
        .map(|(scenario, measured)| {
            let contenders = measured.contenders.iter().map(|timings| {
                let ratio = (timings.name != Name::Tollgate).then(|| measured.ratio_to(timings.name));
                json!({
                    "name": timings.name.label(),
                    "ns_per_decision": median(&timings.ns),
                    "ns_per_decision_by_round": timings.ns,
                    "share_admitted": timings.admitted,
                    "ratio": ratio,
                    "target": scenario.target(timings.name, measured.threads),
                })
            });
            json!({
                "scenario": scenario.name,
                "threads": measured.threads,
                "contenders": contenders.collect::<Vec<_>>(),
            })
        })
        .collect()
}
