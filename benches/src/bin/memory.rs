//! Counts the bytes that tollgate and its peers take for each live key and each live permit, and
//! prints markdown.
//!
//! Each figure comes from a process of its own, so that nobody profits from memory that another has
//! given back. Two figures for each: the bytes asked of the allocator, and the growth of resident
//! memory (on Linux), which has the allocator's own overhead in it and leaves out pages that were
//! never touched.

use std::alloc::System;
use std::error::Error;
use std::process::Command;
use std::time::Duration;

use benches::side_by_side::contender::{
    By, Contender, Governor, Name, OneLock, RateNet, Setup, ShardedDeques, Tollgate,
};
use benches::side_by_side::keys::Key;
use benches::side_by_side::report;
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Everything granted stays live, and governor, too, replenishes nothing during a run: one of 1 M
/// permits in five minutes.
const WINDOW: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Counts bytes for each live key and each live permit.
#[derive(Parser)]
struct Options {
    /// A fiftieth of the keys and permits, to see that it works.
    #[arg(long)]
    quick: bool,
    /// JSON in place of markdown.
    #[arg(long)]
    json: bool,
    /// Only this contender, counted by its place in the table; how the program calls itself.
    #[arg(long, hide = true, requires = "figure")]
    contender: Option<usize>,
    /// Only this figure, counted by its place in the table; how the program calls itself.
    #[arg(long, hide = true)]
    figure: Option<usize>,
}

/// What is counted.
#[derive(Clone, Copy)]
enum What {
    /// Bytes a key, where every key has one live permit of 100.
    PerKey,
    /// The same, of a limiter that was told how many keys to expect.
    PerExpectedKey,
    /// Bytes a permit, where all are of one key.
    PerPermit,
    /// Bytes for refusing an exhausted key as often as it was admitted, all in all.
    ForRefusals,
}

/// A column of the table.
#[derive(Clone, Copy)]
struct Figure {
    what: What,
    /// So many keys or permits.
    units: u32,
    /// The most that tollgate may take, where we aim for something.
    target: Option<f64>,
}

impl Figure {
    const ALL: &[Self] = &[
        Self { what: What::PerKey, units: 1_000, target: None },
        Self { what: What::PerKey, units: 10_000, target: None },
        Self { what: What::PerKey, units: 100_000, target: None },
        Self { what: What::PerKey, units: 1_000_000, target: Some(64.0) },
        Self { what: What::PerKey, units: 10_000_000, target: None },
        Self { what: What::PerExpectedKey, units: 1_000_000, target: None },
        Self { what: What::PerPermit, units: 1_000_000, target: Some(9.0) },
        Self { what: What::ForRefusals, units: 1_000_000, target: Some(0.0) },
    ];

    fn all(quick: bool) -> Vec<Self> {
        let smaller = |figure: &Self| Self { units: figure.units / if quick { 50 } else { 1 }, ..*figure };
        Self::ALL.iter().map(smaller).collect()
    }

    fn label(self) -> String {
        let units = self.units;
        match self.what {
            What::PerKey => format!("a key with one live permit of 100, {units} keys"),
            What::PerExpectedKey => format!("the same, {units} keys that were expected"),
            What::PerPermit => format!("a live permit, {units} of one key"),
            What::ForRefusals => format!("{units} refusals of that key, in total"),
        }
    }

    /// GCRA and buckets keep no permits. Keys are expected by tollgate's log; its bucket takes as
    /// much.
    const fn applies_to(self, name: Name) -> bool {
        match self.what {
            What::PerPermit => name.is_exact_log(),
            What::PerExpectedKey => matches!(name, Name::Tollgate),
            What::PerKey | What::ForRefusals => true,
        }
    }

    /// What stands where a figure does not apply.
    const fn without(self) -> &'static str {
        if matches!(self.what, What::PerExpectedKey) { "n/a" } else { "keeps none" }
    }
}

/// Memory in use: asked of the allocator, and resident where the system tells.
#[derive(Clone, Copy, Debug)]
struct Bytes {
    requested: f64,
    resident: Option<f64>,
}

impl Bytes {
    fn now() -> Self {
        let stats = COUNTED.stats();
        Self { requested: (stats.bytes_allocated - stats.bytes_deallocated) as f64, resident: resident() }
    }

    fn since(self, before: Self, by: f64) -> Self {
        let grown = |(now, before): (f64, f64)| (now - before) / by;
        Self {
            requested: grown((self.requested, before.requested)),
            resident: self.resident.zip(before.resident).map(grown),
        }
    }
}

fn resident() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<f64>().ok().map(|kb| kb * 1024.0)
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let figures = Figure::all(options.quick);
    if let (Some(contender), Some(figure)) = (options.contender, options.figure) {
        let name = *Name::ALL.get(contender).ok_or("no such contender")?;
        let figure = *figures.get(figure).ok_or("no such figure")?;
        let Bytes { requested, resident } = count(name, figure);
        println!("{requested} {}", resident.unwrap_or(f64::NAN));
        return Ok(());
    }

    let progress = ProgressBar::new((Name::ALL.len() * figures.len()) as u64);
    progress.set_style(ProgressStyle::with_template("{wide_bar} {percent} %, {eta} left: {msg}")?);
    let mut table = Vec::new();
    for (contender, name) in Name::ALL.into_iter().enumerate() {
        for (place, &figure) in figures.iter().enumerate() {
            progress.set_message(format!("bytes, {}", name.label()));
            let applies = figure.applies_to(name);
            let bytes = applies.then(|| in_own_process(contender, place, options.quick)).transpose()?;
            table.push((name, figure, bytes));
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    if options.json {
        println!("{}", Value::from(json(&table)));
    } else {
        print!("{}", report::memory(&json(&table)));
    }
    Ok(())
}

/// A contender's row for each figure; no bytes where it keeps no such thing.
type Entry = (Name, Figure, Option<Bytes>);

fn json(table: &[Entry]) -> Vec<Value> {
    let entry = |(name, figure, bytes): &Entry| {
        serde_json::json!({
            "contender": name.label(),
            "figure": figure.label(),
            "keys": matches!(figure.what, What::PerKey).then_some(figure.units),
            "bytes_requested": bytes.map(|bytes| bytes.requested),
            "bytes_resident": bytes.and_then(|bytes| bytes.resident),
            "cell": cell(&(*name, *figure, *bytes)),
        })
    };
    table.iter().map(entry).collect()
}

/// What this program prints when it is asked for one figure only.
fn in_own_process(contender: usize, figure: usize, quick: bool) -> Result<Bytes, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--contender", &contender.to_string(), "--figure", &figure.to_string()]);
    if quick {
        command.arg("--quick");
    }
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let printed = String::from_utf8(output.stdout)?;
    let (requested, resident) = printed.trim().split_once(' ').ok_or("two figures were expected")?;
    let resident: f64 = resident.parse()?;
    Ok(Bytes { requested: requested.parse()?, resident: (!resident.is_nan()).then_some(resident) })
}

fn cell(&(name, figure, bytes): &Entry) -> String {
    let Some(bytes) = bytes else { return figure.without().into() };
    let resident = bytes.resident.map_or(String::new(), |resident| format!(" ({resident:.1})"));
    let verdict = match (name, figure.target) {
        (Name::Tollgate, Some(target)) if bytes.requested <= target => format!(", <= {target}: met"),
        (Name::Tollgate, Some(target)) => format!(", <= {target}: **not met**"),
        _ => String::new(),
    };
    format!("{:.1}{resident}{verdict}", bytes.requested)
}

fn count(name: Name, figure: Figure) -> Bytes {
    match name {
        Name::Tollgate if matches!(figure.what, What::PerExpectedKey) => count_of(Expecting::new, figure),
        Name::Tollgate => count_of(|setup| Tollgate::new(By::Log, setup), figure),
        Name::Bucket => count_of(|setup| Tollgate::new(By::Bucket, setup), figure),
        Name::Governor => count_of(Governor::new, figure),
        Name::RateNet => count_of(RateNet::new, figure),
        Name::ShardedDeques => count_of(ShardedDeques::new, figure),
        Name::OneLock => count_of(OneLock::new, figure),
    }
}

/// tollgate's log, told how many keys there will be.
struct Expecting(tollgate::Limiter<u64>);

impl Expecting {
    fn new(setup: Setup) -> Self {
        let builder = tollgate::Limiter::builder(tollgate::Quota::new(setup.limit, setup.window));
        Self(builder.expected_keys(setup.keys).build().expect("a usable quota"))
    }
}

impl Contender<u64> for Expecting {
    fn try_acquire(&self, key: &u64) -> bool {
        self.0.try_acquire(key).is_admitted()
    }

    fn try_acquire_n(&self, key: &u64, cost: u32) -> bool {
        self.0.try_acquire_n(key, cost).expect("a cost within the limit").is_admitted()
    }
}

fn count_of<C: Contender<u64>>(new: impl FnOnce(Setup) -> C, figure: Figure) -> Bytes {
    let before = Bytes::now();
    let Figure { what, units, .. } = figure;
    let (limit, keys) =
        if matches!(what, What::PerKey | What::PerExpectedKey) { (100, u64::from(units)) } else { (units, 1) };
    let setup = Setup { limit, window: WINDOW, keys: usize::try_from(keys).expect("64 bits"), cap: false };
    // Boxed, so that what it takes itself counts too.
    let contender = Box::new(new(setup));
    for rank in 0..units.into() {
        assert!(contender.try_acquire(&u64::of_rank(rank % keys)), "permit {rank} was refused");
    }
    let filled = Bytes::now();
    match what {
        What::PerKey | What::PerExpectedKey | What::PerPermit => filled.since(before, units.into()),
        What::ForRefusals => {
            let admitted = (0..units).filter(|_| contender.try_acquire(&u64::of_rank(0))).count();
            assert_eq!(admitted, 0, "the limit is used up");
            Bytes::now().since(filled, 1.0)
        }
    }
}
