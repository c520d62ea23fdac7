//! Counts the bytes that tollgate and its peers take for each live key and each live permit, and prints markdown.
//!
//! Each figure comes from a process of its own, so that nobody profits from memory that another has given back. Two figures
//! for each: the bytes asked of the allocator, and the growth of resident memory (on Linux), which has the allocator's own
//! overhead in it and leaves out pages that were never touched.

use std::alloc::System;
use std::error::Error;
use std::process::Command;
use std::time::Duration;

use clap::Parser;
use side_by_side::contender::{Contender, Governor, Name, OneLock, RateNet, Setup, ShardedDeques, Tollgate};
use side_by_side::keys::Key;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Everything granted stays live, and governor, too, replenishes nothing during a run: one of 1 M permits in five minutes.
const WINDOW: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Counts bytes for each live key and each live permit.
#[derive(Parser)]
struct Options {
    /// A fiftieth of the keys and permits, to see that it works.
    #[arg(long)]
    quick: bool,
    /// Only this contender, counted by its place in the table; how the program calls itself.
    #[arg(long, hide = true, requires = "figure")]
    contender: Option<usize>,
    /// Only this figure, counted by its place in the table; how the program calls itself.
    #[arg(long, hide = true)]
    figure: Option<usize>,
}

/// What is counted, in the order of the table's columns.
#[derive(Clone, Copy)]
enum Figure {
    /// Bytes a key, where every key has one live permit of 100.
    PerKey,
    /// Bytes a permit, where all are of one key.
    PerPermit,
    /// Bytes for refusing an exhausted key as often as it was admitted, all in all.
    ForRefusals,
}

impl Figure {
    const ALL: [Self; 3] = [Self::PerKey, Self::PerPermit, Self::ForRefusals];

    const fn label(self) -> &'static str {
        match self {
            Self::PerKey => "a key with one live permit of 100",
            Self::PerPermit => "a live permit, all of one key",
            Self::ForRefusals => "refusals of that key, in total",
        }
    }

    /// The most that tollgate may take.
    const fn target(self) -> f64 {
        match self {
            Self::PerKey => 64.0,
            Self::PerPermit => 9.0,
            Self::ForRefusals => 0.0,
        }
    }

    /// governor keeps no permits.
    const fn applies_to(self, name: Name) -> bool {
        name.is_exact_log() || !matches!(self, Self::PerPermit)
    }
}

/// Memory in use: asked of the allocator, and resident where the system tells.
#[derive(Clone, Copy)]
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
    let units = if options.quick { 20_000 } else { 1_000_000 };
    if let (Some(contender), Some(figure)) = (options.contender, options.figure) {
        let name = *Name::ALL.get(contender).ok_or("no such contender")?;
        let figure = *Figure::ALL.get(figure).ok_or("no such figure")?;
        let Bytes { requested, resident } = count(name, figure, units);
        println!("{requested} {}", resident.unwrap_or(f64::NAN));
        return Ok(());
    }

    println!(
        "| bytes requested (resident), {units} keys or permits | {} |",
        Figure::ALL.map(Figure::label).join(" | ")
    );
    println!("| --- | {} |", Figure::ALL.map(|_| "---:").join(" | "));
    for (contender, name) in Name::ALL.into_iter().enumerate() {
        let mut cells = vec![String::from(name.label())];
        for (place, figure) in Figure::ALL.into_iter().enumerate() {
            cells.push(if figure.applies_to(name) {
                cell(name, figure, &in_own_process(contender, place, options.quick)?)
            } else {
                String::from("keeps none")
            });
        }
        println!("| {} |", cells.join(" | "));
    }
    Ok(())
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

fn cell(name: Name, figure: Figure, bytes: &Bytes) -> String {
    let target = figure.target();
    let resident = bytes.resident.map_or(String::new(), |resident| format!(" ({resident:.1})"));
    let verdict = match name {
        Name::Tollgate if bytes.requested <= target => format!(", <= {target}: met"),
        Name::Tollgate => format!(", <= {target}: **not met**"),
        _ => String::new(),
    };
    format!("{:.1}{resident}{verdict}", bytes.requested)
}

fn count(name: Name, figure: Figure, units: u32) -> Bytes {
    match name {
        Name::Tollgate => count_of(Tollgate::new, figure, units),
        Name::Governor => count_of(Governor::new, figure, units),
        Name::RateNet => count_of(RateNet::new, figure, units),
        Name::ShardedDeques => count_of(ShardedDeques::new, figure, units),
        Name::OneLock => count_of(OneLock::new, figure, units),
    }
}

fn count_of<C: Contender<u64>>(new: impl FnOnce(Setup) -> C, figure: Figure, units: u32) -> Bytes {
    let before = Bytes::now();
    let (limit, keys) = if matches!(figure, Figure::PerKey) { (100, u64::from(units)) } else { (units, 1) };
    // Boxed, so that what it takes itself counts too.
    let contender = Box::new(new(Setup { limit, window: WINDOW, keys: usize::try_from(keys).expect("64 bits") }));
    for rank in 0..units.into() {
        assert!(contender.try_acquire(&u64::of_rank(rank % keys)), "permit {rank} was refused");
    }
    let filled = Bytes::now();
    match figure {
        Figure::PerKey | Figure::PerPermit => filled.since(before, units.into()),
        Figure::ForRefusals => {
            let admitted = (0..units).filter(|_| contender.try_acquire(&u64::of_rank(0))).count();
            assert_eq!(admitted, 0, "the limit is used up");
            Bytes::now().since(filled, 1.0)
        }
    }
}
