//! The results as markdown for people and as JSON for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::machine::{cores, load};
use crate::side_by_side::contender::Name;
use crate::side_by_side::flood::{self, Flooded, Latency};
use crate::side_by_side::measured::Measured;
use crate::side_by_side::scenario::Scenario;
use crate::statistics::median;
use crate::table::{self, NOT_APPLICABLE, Table};

/// A scenario and what came out; `None` where there was not enough memory.
pub type Row = (Scenario, usize, Option<Measured>);

/// Nanoseconds of a decision, of everyone.
#[must_use]
pub fn times(rows: &[Row]) -> String {
    let mut table = Table::new(&[&["ns/decision", "threads"], &Name::ALL.map(Name::label)[..], &["admitted"]].concat());
    for (scenario, threads, measured) in rows {
        let mut cells = vec![scenario.name.into(), threads.to_string()];
        cells.extend(Name::ALL.map(|name| {
            let timings = measured.as_ref().and_then(|measured| measured.of(name));
            timings.map_or(NOT_APPLICABLE.into(), |timings| format!("{:.1}", median(&timings.ns)))
        }));
        cells.push(match measured {
            Some(measured) => shares(measured),
            None => format!("skipped: takes {} GB of memory", scenario.gigabytes),
        });
        table.row(&cells);
    }
    table.to_string()
}

/// Our times as shares of each peer's, with what we aim for.
#[must_use]
pub fn ratios(rows: &[Row]) -> String {
    let mut headings = vec!["ratio (target)".into(), "threads".into()];
    headings.extend(Name::PEERS.map(|peer| format!("log / {}", peer.label())));
    headings.push("bucket / governor".into());
    let mut table = Table::new(&headings);
    for (scenario, threads, measured) in rows {
        let cell = |ours, peer| {
            let ratio = measured.as_ref().and_then(|measured| measured.ratio(ours, peer));
            table::ratio(ratio, scenario.target(ours, peer, *threads))
        };
        let mut cells = vec![scenario.name.into(), threads.to_string()];
        cells.extend(Name::PEERS.map(|peer| cell(Name::Tollgate, peer)));
        cells.push(cell(Name::Bucket, Name::Governor));
        table.row(&cells);
    }
    table.to_string()
}

/// The pairs of the README's table.
const HEADLINE: [(Name, Name); 3] =
    [(Name::Tollgate, Name::Governor), (Name::Bucket, Name::Governor), (Name::Tollgate, Name::ShardedDeques)];

/// Our times as shares of some peers' with 1 and 2 threads, a row for each of these scenarios.
#[must_use]
pub fn headline(rows: &[Row], scenarios: &[&str]) -> String {
    let label = |(ours, peer): (Name, Name)| {
        format!("{} / {}", if ours == Name::Bucket { "bucket" } else { "log" }, peer.label())
    };
    let mut table = Table::new(&[vec!["ours / peer".into()], HEADLINE.map(label).into()].concat());
    for &scenario in scenarios {
        let ratios = |(ours, peer)| {
            let ratio = |count: usize| {
                let row = rows.iter().find(|(of, threads, _)| of.name == scenario && *threads == count);
                let ratio = row.and_then(|(_, _, measured)| measured.as_ref()?.ratio(ours, peer));
                table::ratio(ratio, None)
            };
            [1, 2].map(ratio).join(", ")
        };
        table.row(&[vec![scenario.into()], HEADLINE.map(ratios).into()].concat());
    }
    table.to_string()
}

/// Less than that more may be chance.
const A_LOSS: f64 = 1.05;

/// Where we take longer than a peer, and how many aims are met.
#[must_use]
pub fn losses(rows: &[Row]) -> String {
    let pairs = Name::PEERS.map(|peer| (Name::Tollgate, peer)).into_iter().chain([(Name::Bucket, Name::Governor)]);
    let mut text = String::new();
    let (mut aims, mut met) = (0, 0);
    for (ours, peer) in pairs {
        let mut losses: Vec<(&str, Vec<String>)> = Vec::new();
        for (scenario, threads, measured) in rows {
            let Some(ratio) = measured.as_ref().and_then(|measured| measured.ratio(ours, peer)) else { continue };
            if ratio > A_LOSS {
                let loss = format!("{ratio:.2} ({threads})");
                match losses.last_mut() {
                    Some((name, losses)) if *name == scenario.name => losses.push(loss),
                    _ => losses.push((scenario.name, vec![loss])),
                }
            }
            if let Some(target) = scenario.target(ours, peer, *threads) {
                aims += 1;
                met += u32::from(ratio <= target);
            }
        }
        let ours = if ours == Name::Bucket { "The bucket" } else { "The log" };
        let _ =
            writeln!(text, "- {ours} beside {}{}", peer.label(), if losses.is_empty() { ": nowhere." } else { ":" });
        for (name, losses) in losses {
            let _ = writeln!(text, "  - {name}: {}", losses.join(", "));
        }
    }
    let _ = writeln!(
        text,
        "\nRatios above {A_LOSS}, threads in brackets. Of {aims} aims {met} are met; each is in the table above."
    );
    text
}

/// How the figures came about, or are about to: told before the run, whose own load is no news.
#[must_use]
pub fn legend(rounds: usize) -> String {
    let load = load().map_or(String::new(), |load| format!(", whose load was {load} when the run began"));
    format!(
        "Medians over {rounds} interleaved rounds on {} cores{load}; a ratio is the median of the rounds' ratios, and under \
         1 where tollgate is faster. Time is wall time by decisions per thread. Every contender is the exact log but governor \
         (GCRA) and tollgate's bucket.\n",
        cores()
    )
}

/// What the well-behaved notice of a flood.
#[must_use]
pub fn floods(flooded: &[Flooded]) -> String {
    let mut table = Table::new(&[
        "ns of a known key's decision",
        "keys",
        "p50, without / with",
        "p99, without / with",
        "p99.9, without / with",
        "known keys admitted",
        "a new key",
        "new keys admitted",
    ]);
    for of in flooded {
        let both = |what: fn(&Latency) -> f64| format!("{:.0} / {:.0}", what(&of.quiet), what(&of.flooded));
        let cap = if flood::has_a_cap(of.name) { "capped" } else { "no cap: grows" };
        table.row(&[
            of.name.label().into(),
            cap.into(),
            both(|latency| latency.p50),
            both(|latency| latency.p99),
            both(|latency| latency.p999),
            format!("{:.1} %", 100.0 * of.admitted),
            format!("{:.0}", of.new_key_ns),
            format!("{:.1} %", 100.0 * of.new_admitted),
        ]);
    }
    table.to_string()
}

/// Times against something, a row for each value of it.
#[must_use]
pub fn series(across: &str, points: &[(usize, Measured)]) -> String {
    let mut table = Table::new(&[&[across], &Name::ALL.map(Name::label)[..]].concat());
    for (value, measured) in points {
        let time = |name| measured.of(name).map_or(NOT_APPLICABLE.into(), |it| format!("{:.1}", median(&it.ns)));
        let mut cells = vec![value.to_string()];
        cells.extend(Name::ALL.map(time));
        table.row(&cells);
    }
    table.to_string()
}

/// Bytes, from what the program `memory` says.
#[must_use]
pub fn memory(entries: &[Value]) -> String {
    let mut table = Table::new(&[&["bytes requested (resident)"], &Name::ALL.map(Name::label)[..]].concat());
    let text = |entry: &Value, key: &str| String::from(entry[key].as_str().unwrap_or_default());
    let figures = entries.len() / Name::ALL.len();
    for (place, first) in entries.iter().take(figures).enumerate() {
        let mut cells = vec![text(first, "figure")];
        cells.extend(entries.iter().skip(place).step_by(figures).map(|entry| text(entry, "cell")));
        table.row(&cells);
    }
    table.to_string()
}

/// The committed figures of the guard on instruction counts.
#[must_use]
pub fn instructions(figures: &str) -> String {
    let mut table = Table::new(&["one decision", "instructions", "of them locked", "stores to shared memory"]);
    let mut compiler = "";
    for line in figures.lines() {
        match line.strip_prefix("# counted with ") {
            Some(with) => compiler = with,
            None if line.starts_with('#') => {}
            None => table.row(&line.split('\t').collect::<Vec<_>>()),
        }
    }
    format!("{table}\nCounted with {compiler}.\n")
}

/// The share admitted: one figure where all agree, and otherwise everyone's who differs from the
/// first.
fn shares(measured: &Measured) -> String {
    let share = |at: usize| format!("{:.1} %", 100.0 * measured.contenders[at].admitted);
    let first = share(0);
    let others = (1..measured.contenders.len()).filter(|&at| share(at) != first);
    let others: Vec<String> =
        others.map(|at| format!("{} {}", measured.contenders[at].name.label(), share(at))).collect();
    if others.is_empty() { first } else { format!("{first} ({})", others.join(", ")) }
}

/// Everything, each round's time included.
#[must_use]
pub fn json(rows: &[Row]) -> Value {
    rows.iter()
        .filter_map(|(scenario, threads, measured)| {
            let measured = measured.as_ref()?;
            let contenders = measured.contenders.iter().map(|timings| {
                let ratio_to = |ours: Name| {
                    let takes_part = timings.name != ours;
                    takes_part.then(|| measured.ratio(ours, timings.name)).flatten()
                };
                json!({
                    "name": timings.name.label(),
                    "ns_per_decision": median(&timings.ns),
                    "ns_per_decision_by_round": timings.ns,
                    "share_admitted": timings.admitted,
                    "ratio_of_log": ratio_to(Name::Tollgate),
                    "ratio_of_bucket": ratio_to(Name::Bucket),
                    "target_of_log": scenario.target(Name::Tollgate, timings.name, *threads),
                    "target_of_bucket": scenario.target(Name::Bucket, timings.name, *threads),
                })
            });
            Some(json!({
                "scenario": scenario.name,
                "threads": threads,
                "contenders": contenders.collect::<Vec<_>>(),
            }))
        })
        .collect()
}
