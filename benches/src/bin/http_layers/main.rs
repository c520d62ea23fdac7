//! Times requests through rate-limiting layers, counts what they take, and prints markdown; or
//! writes it into BENCHMARKS.md.

use std::error::Error;

use benches::documents::Document;
use benches::http_layers::contender::Name;
use benches::http_layers::report::{self, OfEach, Row};
use benches::http_layers::scenario::Scenario;
use benches::http_layers::{rounds, valgrind};
use benches::programs;
use clap::Parser;

/// Measures what rate-limiting layers add to a request.
#[derive(Parser)]
struct Options {
    /// Timed rounds of each scenario.
    #[arg(long, default_value_t = 301, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Only the scenarios whose names contain this.
    #[arg(long, value_name = "NAME", default_value = "")]
    scenario: String,
    /// Write the tables into BENCHMARKS.md.
    #[arg(long, conflicts_with = "scenario")]
    report: bool,
    /// Only the requests of a contender in a scenario; how the program calls itself under valgrind.
    #[arg(long, hide = true, value_delimiter = ',', num_args = 1)]
    repeat: Vec<usize>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    if let [scenario, contender] = options.repeat[..] {
        valgrind::repeat(scenario, contender);
        return Ok(());
    }
    let rounds = usize::try_from(options.rounds)?;
    let allocations: Vec<OfEach> = serde_json::from_str(&programs::printed_by("allocations", &[])?)?;
    let mut rows = Vec::new();
    let chosen = |(scenario, _): &(Scenario, OfEach)| scenario.label().contains(&options.scenario);
    for (scenario, allocations) in Scenario::all().into_iter().zip(allocations).filter(chosen) {
        eprintln!("{}", scenario.label());
        let times = rounds::measure(scenario, rounds);
        let mut instructions: OfEach = [None; Name::ALL.len()];
        if scenario.keys == 1 {
            for (name, count) in Name::ALL.into_iter().zip(&mut instructions) {
                *count = valgrind::instructions(name, scenario)?;
            }
        }
        rows.push(Row { scenario, times, allocations, instructions });
    }
    let markdown = report::markdown(&rows, rounds);
    if options.report {
        let mut benchmarks = Document::open("BENCHMARKS.md")?;
        benchmarks.put("http layers", &markdown)?;
        benchmarks.save()?;
    } else {
        print!("{markdown}");
    }
    Ok(())
}
