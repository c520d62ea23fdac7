//! Times requests through rate-limiting layers, counts what they take, and prints markdown; or
//! writes it into BENCHMARKS.md.

use std::error::Error;
use std::process::Command;

use clap::Parser;
use http_layers::contender::Name;
use http_layers::report::{self, OfEach, Row};
use http_layers::scenario::Scenario;
use http_layers::{rounds, valgrind};
use side_by_side::documents::{Document, root};

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
    let allocations = count_allocations()?;
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

/// What the program `allocations` has to say.
fn count_allocations() -> Result<Vec<OfEach>, Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root()).args(["run", "--release", "--quiet", "-p", "http_layers", "--bin", "allocations"]);
    let output = command.stderr(std::process::Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{command:?} failed").into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
