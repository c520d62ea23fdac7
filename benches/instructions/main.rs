//! A guard that needs no quiet machine: how many instructions a decision takes, how many of them
//! are locked, and how many stores go to memory that other threads can see.
//!
//! `cargo bench -p benches` counts and compares with `figures.tsv`, next to this file; `--
//! --accept` writes what it counted into that file. The figures are the same on every machine with
//! the same compiler, and nearly so with another. Needs valgrind and objdump; where they can't be
//! had it says so loudly, and fails nobody.

mod figures;
mod paths;
mod repeat;
mod valgrind;

use std::process::ExitCode;

use figures::Figures;
use paths::Path;
use repeat::Repeat;
use valgrind::{Counter, Counts};

const USAGE: &str = "cargo bench -p benches [-- --accept]";

fn main() -> ExitCode {
    let in_main = 0;
    // cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        [] | ["--test"] => check(false),
        ["--accept"] => check(true),
        // What runs under valgrind.
        ["repeat", name, times] => repeat_path(name, times, &in_main),
        _ => Err(format!("usage: {USAGE}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn repeat_path(name: &str, times: &str, in_main: &u8) -> Result<(), String> {
    let path = paths::ALL.iter().find(|path| path.name == name).ok_or("no such path")?;
    let times = times.parse().map_err(|_| "how many times?")?;
    (path.run)(&mut Repeat::new(times, in_main));
    Ok(())
}

fn check(accept: bool) -> Result<(), String> {
    let mut counter = match Counter::find() {
        Ok(counter) => counter,
        Err(missing) => {
            skip(&missing);
            return Ok(());
        }
    };
    let committed = Figures::read()?;
    let compiler = figures::compiler()?;
    let tolerance = committed.tolerance(&compiler);
    println!("instructions of one decision, with {compiler}; committed: with {}", committed.compiler);
    println!("{:<34} {:>12} {:>10} {:>7} {:>13}", "", "instructions", "committed", "locked", "shared stores");

    let (mut complaints, mut gains, mut counted) = (Vec::new(), Vec::new(), Vec::new());
    for path in paths::ALL {
        let counts = counter.count(path.name).map_err(|error| format!("{}: {error}", path.name))?;
        let before = committed.of(path.name);
        let shown = before.map_or("none".into(), |before| format!("{:.1}", before.instructions));
        let Counts { instructions, locked, stores } = counts;
        println!("{:<34} {instructions:>12.1} {shown:>10} {locked:>7.1} {stores:>13.1}", path.name);
        complaints.extend(broken_promises(path, counts));
        if path.name == paths::DEFAULT_CLOCK {
            continue;
        }
        if !accept {
            match before {
                Some(before) => figures::compare(path.name, before, counts, tolerance, &mut complaints, &mut gains),
                None => complaints.push(format!("{}: there is no committed figure", path.name)),
            }
        }
        counted.push((path.name, counts));
    }

    complaints.extend(dear_statuses(&counted));
    if accept {
        Figures::write(&compiler, &counted)?;
        println!("written; please say in the commit why the figures are what they are now");
    }
    for gain in &gains {
        println!("note: {gain}; `{USAGE_OF_ACCEPT}` keeps the gain", USAGE_OF_ACCEPT = figures::ACCEPT);
    }
    if complaints.is_empty() {
        return Ok(());
    }
    Err(format!(
        "\nDECISIONS HAVE BECOME DEARER, or do what they are not to do:\n  {}\n\
         Find out why (`git bisect run cargo bench -p benches` does it for you). If it is worth its price, or comes \
         from a new compiler:\n  {}\nwrites the new figures, to be committed. What is promised without a figure can't be \
         accepted so: see `benches/instructions/paths.rs`.",
        complaints.join("\n  "),
        figures::ACCEPT
    ))
}

/// What is promised holds whatever has been accepted.
fn broken_promises(path: &Path, counts: Counts) -> impl Iterator<Item = String> {
    let limits = [
        ("locked instructions", counts.locked, path.promise.locked),
        ("stores to shared memory", counts.stores, path.promise.stores),
    ];
    limits.into_iter().filter_map(|(what, count, most)| {
        // On average: a few of the repetitions may do something else once.
        let most = most.filter(|&most| count > f64::from(most) + 0.05)?;
        Some(format!("{}: {count:.1} {what} a decision; {most} at most are promised", path.name))
    })
}

/// Statuses that cost too much beside the bare decision.
fn dear_statuses(counted: &[(&str, Counts)]) -> Vec<String> {
    let instructions = |name| counted.iter().find(|(path, _)| *path == name).map(|(_, counts)| counts.instructions);
    let ratios = paths::STATUSES.iter().filter_map(|&(status, bare, most)| {
        let ratio = instructions(status)? / instructions(bare)?;
        println!("{status:<34} {ratio:>12.2} times what the bare decision takes");
        (ratio > most).then(|| format!("{status}: {ratio:.2} times what `{bare}` takes; {most} at most is promised"))
    });
    ratios.collect()
}

fn skip(missing: &str) {
    let line = "!".repeat(100);
    eprintln!("{line}\n!!! SKIPPED, NOTHING WAS CHECKED: the guard on instruction counts can't run: {missing}.");
    eprintln!("!!! It needs valgrind and binutils (Debian: apt-get install valgrind binutils).\n{line}");
}
