//! One run of whatever was chosen, and the report on all of it.

use std::error::Error;
use std::process::Command;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use side_by_side::contender::Name;
use side_by_side::documents::{Document, root};
use side_by_side::flood::{self, Flooded};
use side_by_side::plot::{Drawing, Panel};
use side_by_side::report::{self, Row};
use side_by_side::rounds::{Measured, Plan, median};
use side_by_side::scenario::Scenario;

/// What is to be measured.
pub(crate) struct Run {
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) by_limit: Vec<(u32, Scenario)>,
    pub(crate) by_keys: Vec<Scenario>,
    pub(crate) flood: bool,
    rounds: usize,
    flood_size: flood::Size,
}

/// What came out.
pub(crate) struct Results {
    pub(crate) rows: Vec<Row>,
    by_limit: Vec<(u32, Measured)>,
    by_keys: Vec<(usize, Measured)>,
    flooded: Vec<Flooded>,
    rounds: usize,
}

impl Run {
    pub(crate) fn new(rounds: usize, quick: bool) -> Self {
        let flood_size = match quick {
            true => flood::Size { cap: 5_000, flood: 5_000, rounds: 1 },
            false => flood::Size { cap: 100_000, flood: 200_000, rounds },
        };
        Self { scenarios: vec![], by_limit: vec![], by_keys: vec![], flood: false, rounds, flood_size }
    }

    pub(crate) fn measure(&self) -> Result<Results, Box<dyn Error>> {
        // Drawn only where standard error is a terminal, and only when a contender's turn is over.
        let progress = ProgressBar::new(self.turns() as u64);
        progress.set_style(ProgressStyle::with_template("{wide_bar} {percent} %, {eta} left: {msg}")?);
        let measure = |scenario: &Scenario, threads: usize| {
            progress.set_message(format!("{}, threads: {threads}", scenario.name));
            (scenario.measure)(scenario, Plan { threads, rounds: self.rounds }, &progress)
        };
        let mut rows = Vec::new();
        for scenario in &self.scenarios {
            let fits = memory_available().is_none_or(|available| available >= scenario.gigabytes);
            if !fits {
                let (name, gigabytes) = (scenario.name, scenario.gigabytes);
                progress.suspend(|| eprintln!("SKIPPED: {name}: it takes {gigabytes} GB of memory"));
            }
            for &threads in scenario.threads {
                rows.push((*scenario, threads, fits.then(|| measure(scenario, threads))));
            }
        }
        let by_limit = self.by_limit.iter().map(|(limit, scenario)| (*limit, measure(scenario, 1))).collect();
        let by_keys = self.by_keys.iter().map(|scenario| (scenario.popularity.keys(), measure(scenario, 1))).collect();
        progress.set_message("a flood of new keys");
        let flooded = if self.flood { flood::measure(self.flood_size, &progress) } else { vec![] };
        progress.finish_and_clear();
        Ok(Results { rows, by_limit, by_keys, flooded, rounds: self.rounds })
    }

    fn turns(&self) -> usize {
        let of = |scenario: &Scenario| scenario.threads.len() * scenario.who.len() * (self.rounds + 1);
        let series = self.by_limit.iter().map(|(_, scenario)| scenario).chain(&self.by_keys);
        let flood = if self.flood { self.flood_size.rounds * Name::ALL.len() } else { 0 };
        self.scenarios.iter().chain(series).map(of).sum::<usize>() + flood
    }
}

impl Results {
    pub(crate) fn markdown(&self) -> String {
        let by =
            |across, empty: bool, table: String| if empty { String::new() } else { format!("\n{across}\n\n{table}") };
        let scenarios = format!("{}\n{}", report::times(&self.rows), report::ratios(&self.rows));
        [
            if self.rows.is_empty() { String::new() } else { scenarios },
            by("One key, admitted, against its limit:", self.by_limit.is_empty(), self.limits_table()),
            by("All keys denied, against their number:", self.by_keys.is_empty(), self.keys_table()),
            by("A flood of new keys:", self.flooded.is_empty(), report::floods(&self.flooded)),
            format!("\n{}", report::legend(self.rounds)),
        ]
        .concat()
    }

    fn limits_table(&self) -> String {
        report::series("limit", self.by_limit.iter().map(|(limit, measured)| (limit.to_string(), measured)))
    }

    fn keys_table(&self) -> String {
        report::series("keys", self.by_keys.iter().map(|(keys, measured)| (keys.to_string(), measured)))
    }

    /// The tables into the documents, and the plots beside them.
    pub(crate) fn write_report(&self) -> Result<(), Box<dyn Error>> {
        let memory = count_bytes()?;
        let figures = std::fs::read_to_string(root().join("benches/instructions/figures.tsv"))?;

        let mut benchmarks = Document::open("BENCHMARKS.md")?;
        benchmarks.put("ratios", &report::ratios(&self.rows))?;
        benchmarks.put("times", &format!("{}\n{}", report::times(&self.rows), report::legend(self.rounds)))?;
        benchmarks.put("flood", &report::floods(&self.flooded))?;
        benchmarks.put("against the limit", &self.limits_table())?;
        benchmarks.put("against keys", &self.keys_table())?;
        benchmarks.put("memory", &report::memory(&memory))?;
        benchmarks.put("instructions", &report::instructions(&figures))?;
        benchmarks.save()?;

        // What we aim for, without what lies beyond.
        let aimed: Vec<&Row> =
            self.rows.iter().filter(|(scenario, threads, _)| *threads <= 2 && !scenario.targets.is_empty()).collect();
        let mut readme = Document::open("README.md")?;
        readme.put("ratios", &format!("{}\n{}", report::ratios(aimed), report::legend(self.rounds)))?;
        readme.save()?;

        self.draw(&memory)
    }

    fn draw(&self, memory: &[Value]) -> Result<(), Box<dyn Error>> {
        let plots = root().join("benches/plots");
        std::fs::create_dir_all(&plots)?;

        let mut by_threads: Vec<Panel> = Vec::new();
        for (scenario, threads, measured) in &self.rows {
            let Some(measured) = measured.as_ref().filter(|_| scenario.threads.len() > 2) else { continue };
            if by_threads.last().is_none_or(|panel| panel.title != scenario.name) {
                by_threads.push(panel(scenario.name, "threads"));
            }
            // All threads together, so that what scales goes down.
            let threads = *threads as f64;
            add(by_threads.last_mut().expect("one was pushed"), threads, |name| {
                measured.of(name).map(|timings| median(&timings.ns) / threads)
            });
        }
        let time = "ns per decision";
        let title = "Time against threads, all threads together";
        Drawing { title, up: time, panels: by_threads }.write(&plots.join("threads.svg"))?;

        let mut against_keys = panel("uniform, every decision a denial, 1 thread", "keys");
        for (keys, measured) in &self.by_keys {
            add(&mut against_keys, *keys as f64, |name| measured.of(name).map(|timings| median(&timings.ns)));
        }
        let panels = vec![against_keys];
        Drawing { title: "Time against keys", up: time, panels }.write(&plots.join("keys.svg"))?;

        let mut against_limit = panel("one key, every decision an admission, 1 thread", "limit");
        for (limit, measured) in &self.by_limit {
            add(&mut against_limit, f64::from(*limit), |name| measured.of(name).map(|timings| median(&timings.ns)));
        }
        let panels = vec![against_limit];
        Drawing { title: "Time against limit", up: time, panels }.write(&plots.join("limit.svg"))?;

        let mut bytes = panel("one live permit of 100 for each key", "keys");
        bytes.lines.iter_mut().for_each(|(name, points)| {
            let of_name = memory.iter().filter(|entry| entry["contender"] == name.label());
            points.extend(
                of_name.filter_map(|entry| Some((entry["keys"].as_f64()?, entry["bytes_requested"].as_f64()?))),
            );
        });
        let panels = vec![bytes];
        Drawing { title: "Bytes against keys", up: "bytes per key", panels }.write(&plots.join("bytes.svg"))
    }
}

fn panel(title: &str, across: &'static str) -> Panel {
    Panel { title: title.into(), across, lines: Name::ALL.map(|name| (name, vec![])).into() }
}

fn add(panel: &mut Panel, x: f64, y: impl Fn(Name) -> Option<f64>) {
    for (name, points) in &mut panel.lines {
        points.extend(y(*name).map(|y| (x, y)));
    }
}

/// What the program `memory` has to say. It is another program because counting costs time at every allocation.
fn count_bytes() -> Result<Vec<Value>, Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root()).args(["run", "--release", "--quiet", "-p", "side_by_side", "--bin", "memory"]);
    let output = command.args(["--", "--json"]).stderr(std::process::Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{command:?} failed").into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// In gigabytes, where the system tells.
fn memory_available() -> Option<u32> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().and_then(|kb| u32::try_from(kb >> 20).ok())
}
