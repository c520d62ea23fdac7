//! Times decisions of tollgate and its peers, interleaved in one run, and prints markdown.

use std::error::Error;
use std::path::PathBuf;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use side_by_side::contender::Name;
use side_by_side::report;
use side_by_side::rounds::Plan;
use side_by_side::scenario::{self, Scenario};

/// Times decisions of tollgate and its peers, interleaved in one run.
#[derive(Parser)]
struct Options {
    /// Only to see that it works: a few seconds, figures that mean little.
    #[arg(long)]
    quick: bool,
    /// Timed rounds of each scenario [default: 21, or 3 with --quick].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: Option<u32>,
    /// Only scenarios whose name contains this.
    #[arg(long, value_name = "SUBSTRING", default_value = "")]
    scenario: String,
    /// Write everything, each round's time included, to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let rounds = usize::try_from(options.rounds.unwrap_or(if options.quick { 3 } else { 21 }))?;
    let chosen = scenario::ALL.iter().filter(|scenario| scenario.name.contains(&options.scenario));
    let scenarios: Vec<Scenario> =
        chosen.map(|&scenario| if options.quick { scenario.smaller() } else { scenario }).collect();
    if scenarios.is_empty() {
        let names: Vec<_> = scenario::ALL.iter().map(|scenario| scenario.name).collect();
        return Err(format!("no such scenario; there are: {}", names.join("; ")).into());
    }
    warn_of_few_cores(&scenarios);

    // Drawn only where standard error is a terminal, and only when a contender's turn is over.
    let turns = scenarios.iter().map(|scenario| scenario.targets.len()).sum::<usize>() * (rounds + 1) * Name::ALL.len();
    let progress = ProgressBar::new(turns as u64);
    progress.set_style(ProgressStyle::with_template("{wide_bar} {percent} %, {eta} left: {msg}")?);
    let mut rows = Vec::new();
    for scenario in scenarios {
        for target in scenario.targets {
            let threads = target.threads;
            progress.set_message(format!("{}, threads: {threads}", scenario.name));
            rows.push((scenario, (scenario.measure)(&scenario, Plan { threads, rounds }, &progress)));
        }
    }
    progress.finish_and_clear();

    print!("{}", report::markdown(&rows, rounds));
    if let Some(path) = options.json {
        std::fs::write(path, serde_json::to_vec_pretty(&report::json(&rows))?)?;
    }
    Ok(())
}

/// With fewer cores than threads the figures for several threads say little.
fn warn_of_few_cores(scenarios: &[Scenario]) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = scenarios.iter().flat_map(|scenario| scenario.targets).map(|target| target.threads).max();
    if threads.is_some_and(|threads| threads > cores) {
        eprintln!("warning: more threads than the {cores} core(s) that are there");
    }
}
