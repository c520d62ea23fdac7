//! Times decisions of tollgate and its peers, interleaved in one run, and prints markdown; or
//! writes the whole report.

mod full;

use std::error::Error;
use std::path::PathBuf;

use benches::machine;
use benches::side_by_side::report;
use benches::side_by_side::scenario::{Scenario, list};
use clap::Parser;
use full::Run;

/// Times decisions of tollgate and its peers, interleaved in one run.
#[derive(Parser)]
struct Options {
    /// Only to see that it works: a few seconds, figures that mean little.
    #[arg(long)]
    quick: bool,
    /// Timed rounds of each scenario [default: 21, or 3 with --quick].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: Option<u32>,
    /// Only the scenario of this name, or those whose names contain this.
    #[arg(long, value_name = "NAME", default_value = "")]
    scenario: String,
    /// Write everything, each round's time included, to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measure everything, bytes too, write the tables into BENCHMARKS.md and README.md, and draw
    /// the plots.
    #[arg(long, conflicts_with_all = ["quick", "scenario"])]
    report: bool,
}

/// What is no scenario but can be chosen like one.
const FLOOD: &str = "flood of new keys at the cap";
const BY_LIMIT: &str = "against the limit";
const BY_KEYS: &str = "against keys";

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let rounds = usize::try_from(options.rounds.unwrap_or(if options.quick { 3 } else { 21 }))?;
    let names = || list::ALL.iter().map(|scenario| scenario.name).chain([FLOOD, BY_LIMIT, BY_KEYS]);
    // A whole name is that one, though others may contain it.
    let wanted = &options.scenario;
    let exact = names().any(|name| name == wanted);
    let chosen = |name: &str| if exact { name == wanted } else { name.contains(wanted.as_str()) };
    if !names().any(chosen) {
        return Err(format!("no such scenario; there are: {}", names().collect::<Vec<_>>().join("; ")).into());
    }

    let sized = |scenario: &Scenario| if options.quick { scenario.smaller() } else { *scenario };
    let mut run = Run::new(rounds, options.quick);
    run.scenarios = list::ALL.iter().filter(|scenario| chosen(scenario.name)).map(sized).collect();
    let series = [
        (BY_LIMIT, list::admitted_by_limit(), &mut run.admitted_by_limit),
        (BY_LIMIT, list::denied_by_limit(), &mut run.denied_by_limit),
        (BY_KEYS, list::denied_by_keys(), &mut run.denied_by_keys),
    ];
    for (name, all, wanted) in series {
        if chosen(name) {
            *wanted = all.iter().map(sized).collect();
        }
    }
    run.flood = chosen(FLOOD);

    warn_of_load();
    let results = run.measure()?;
    if options.report {
        results.write_report()?;
    } else {
        print!("{}", results.markdown());
    }
    if let Some(path) = options.json {
        std::fs::write(path, serde_json::to_vec_pretty(&report::json(&results.rows))?)?;
    }
    Ok(())
}

/// Whoever else runs takes cores away, and then the figures for several threads say little.
fn warn_of_load() {
    let cores = machine::cores();
    if let Some(load) = machine::load()
        && load > 0.5
    {
        eprintln!("warning: this machine is not idle: its load was {load} over the last minute, on {cores} core(s)");
    }
}
