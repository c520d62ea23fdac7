//! One run of whatever was chosen, and the report on all of it.

use std::error::Error;

use benches::documents::{Document, root};
use benches::programs;
use benches::side_by_side::contender::Name;
use benches::side_by_side::flood::{self, Flooded};
use benches::side_by_side::measured::{Measured, Plan};
use benches::side_by_side::plot::{Drawing, Panel};
use benches::side_by_side::report::{self, Row};
use benches::side_by_side::scenario::Scenario;
use benches::statistics::median;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

/// The scenarios of the README's table. The last is the one that loses most.
const HEADLINE: [&str; 5] = [
    "one key, denied",
    "one key, admitted",
    "Zipf(1.0), 100 k keys",
    "uniform, 1 M keys",
    "Zipf(1.0), 100 k keys, cost 8",
];

/// What is to be measured.
pub(crate) struct Run {
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) admitted_by_limit: Vec<Scenario>,
    pub(crate) denied_by_limit: Vec<Scenario>,
    pub(crate) denied_by_keys: Vec<Scenario>,
    pub(crate) flood: bool,
    rounds: usize,
    flood_size: flood::Size,
}

/// What came out.
pub(crate) struct Results {
    pub(crate) rows: Vec<Row>,
    admitted_by_limit: Vec<Point>,
    denied_by_limit: Vec<Point>,
    denied_by_keys: Vec<Point>,
    flooded: Vec<Flooded>,
    legend: String,
}

/// What came out for one value of what is varied.
type Point = (usize, Measured);

impl Run {
    pub(crate) fn new(rounds: usize, quick: bool) -> Self {
        let flood_size = match quick {
            true => flood::Size { cap: 5_000, flood: 5_000, rounds: 1 },
            // These take longer.
            false => flood::Size { cap: 100_000, flood: 200_000, rounds: rounds.div_ceil(4) },
        };
        let (admitted_by_limit, denied_by_limit, denied_by_keys) = (vec![], vec![], vec![]);
        let (scenarios, flood) = (vec![], false);
        Self { scenarios, admitted_by_limit, denied_by_limit, denied_by_keys, flood, rounds, flood_size }
    }

    pub(crate) fn measure(&self) -> Result<Results, Box<dyn Error>> {
        let legend = report::legend(self.rounds);
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
        let series = |scenarios: &[Scenario], varied: fn(&Scenario) -> usize| -> Vec<Point> {
            scenarios.iter().map(|scenario| (varied(scenario), measure(scenario, 1))).collect()
        };
        let admitted_by_limit = series(&self.admitted_by_limit, |scenario| scenario.limit as usize);
        let denied_by_limit = series(&self.denied_by_limit, |scenario| scenario.limit as usize);
        let denied_by_keys = series(&self.denied_by_keys, |scenario| scenario.popularity.keys());
        progress.set_message("a flood of new keys");
        let flooded = if self.flood { flood::measure(self.flood_size, &progress) } else { vec![] };
        progress.finish_and_clear();
        Ok(Results { rows, admitted_by_limit, denied_by_limit, denied_by_keys, flooded, legend })
    }

    fn turns(&self) -> usize {
        let of = |scenario: &Scenario| scenario.threads.len() * scenario.who.len() * (self.rounds + 1);
        let series = [&self.admitted_by_limit, &self.denied_by_limit, &self.denied_by_keys].into_iter().flatten();
        let flood = if self.flood { self.flood_size.rounds * Name::ALL.len() } else { 0 };
        self.scenarios.iter().chain(series).map(of).sum::<usize>() + flood
    }
}

impl Results {
    pub(crate) fn markdown(&self) -> String {
        let mut parts = Vec::new();
        if !self.rows.is_empty() {
            parts.extend([report::times(&self.rows), report::ratios(&self.rows)]);
        }
        let mut series = |points: &[Point], about: &str, across: &str| {
            if !points.is_empty() {
                parts.push(format!("{about}:\n\n{}", report::series(across, points)));
            }
        };
        series(&self.admitted_by_limit, "One key, admitted", "limit");
        series(&self.denied_by_limit, "One key, denied", "limit");
        series(&self.denied_by_keys, "Uniform, denied", "keys");
        if !self.flooded.is_empty() {
            parts.push(report::floods(&self.flooded));
        }
        parts.push(self.legend.clone());
        parts.join("\n")
    }

    /// The tables into the documents, and the plots beside them.
    pub(crate) fn write_report(&self) -> Result<(), Box<dyn Error>> {
        let memory: Vec<Value> = serde_json::from_str(&programs::printed_by("memory", &["--json".into()])?)?;
        let figures = std::fs::read_to_string(root().join("benches/instructions/figures.tsv"))?;

        let mut benchmarks = Document::open("BENCHMARKS.md")?;
        benchmarks.put("ratios", &report::ratios(&self.rows))?;
        benchmarks.put("times", &format!("{}\n{}", report::times(&self.rows), self.legend))?;
        benchmarks.put("flood", &report::floods(&self.flooded))?;
        benchmarks.put("losses", &report::losses(&self.rows))?;
        benchmarks.put("admitted against the limit", &report::series("limit", &self.admitted_by_limit))?;
        benchmarks.put("denied against the limit", &report::series("limit", &self.denied_by_limit))?;
        benchmarks.put("against keys", &report::series("keys", &self.denied_by_keys))?;
        benchmarks.put("memory", &report::memory(&memory))?;
        benchmarks.put("instructions", &report::instructions(&figures))?;
        benchmarks.save()?;

        let mut readme = Document::open("README.md")?;
        readme.put("ratios", &report::headline(&self.rows, &HEADLINE))?;
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

        let against = |points: &[Point], title: &str, across: &'static str| {
            let mut panel = panel(title, across);
            for (x, measured) in points {
                add(&mut panel, *x as f64, |name| measured.of(name).map(|timings| median(&timings.ns)));
            }
            panel
        };
        let panels = vec![against(&self.denied_by_keys, "uniform, denied, 1 thread", "keys")];
        Drawing { title: "Time against keys", up: time, panels }.write(&plots.join("keys.svg"))?;

        let panels = vec![
            against(&self.denied_by_limit, "one key, denied, 1 thread", "limit"),
            against(&self.admitted_by_limit, "one key, admitted, 1 thread", "limit"),
        ];
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

/// In gigabytes, where the system tells.
fn memory_available() -> Option<u32> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().and_then(|kb| u32::try_from(kb >> 20).ok())
}
