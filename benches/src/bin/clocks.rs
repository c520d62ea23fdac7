//! How far the default clock runs from that of the operating system, and prints a line.
//!
//! ```sh
//! cargo run --release -p benches -- clocks
//! ```
//!
//! The default clock is calibrated once in each process. So each figure comes from a process of its own,
//! which reads both clocks at the start and at the end of some time. Figures are millionths: 12 means
//! that a day of the clock is a second longer than one of the system.

use std::error::Error;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Parser;
use tollgate::{Clock, MonotonicClock};

/// Measures how far the default clock runs from that of the operating system.
#[derive(Parser)]
struct Options {
    /// The processes.
    #[arg(long, default_value_t = 50)]
    processes: usize,
    /// Those that run at a time.
    #[arg(long, default_value_t = 10)]
    together: usize,
    /// The seconds that each runs.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Only one figure; how the program calls itself.
    #[arg(long, hide = true)]
    once: bool,
}

/// The readings of both clocks, in nanoseconds: those of the narrowest of many looks.
fn both(clock: &MonotonicClock, origin: Instant) -> (f64, f64) {
    let look = |_| {
        let (before, reading, after) = (origin.elapsed(), clock.now(), origin.elapsed());
        (after - before, reading as f64, (before + after).as_nanos() as f64 / 2.0)
    };
    let (_, reading, system) = (0..1000).map(look).min_by_key(|&(width, ..)| width).expect("some looks");
    (reading, system)
}

/// By how many millionths the default clock is faster than that of the system.
fn drift(time: Duration) -> f64 {
    let (clock, origin) = (MonotonicClock::new(), Instant::now());
    let (reading, system) = both(&clock, origin);
    std::thread::sleep(time);
    let (later, by_system) = both(&clock, origin);
    ((later - reading) / (by_system - system) - 1.0) * 1e6
}

fn main() -> Result<(), Box<dyn Error>> {
    let Options { processes, together, seconds, once } = Options::parse();
    if once {
        println!("{}", drift(Duration::try_from_secs_f64(seconds)?));
        return Ok(());
    }
    let this = std::env::current_exe()?;
    let mut figures: Vec<f64> = Vec::new();
    while figures.len() < processes {
        let start = |_| {
            let mut command = Command::new(&this);
            command.args(["--once", "--seconds", &seconds.to_string()]).stdout(Stdio::piped()).spawn()
        };
        let started = (0..together.clamp(1, processes - figures.len())).map(start).collect::<Result<Vec<_>, _>>()?;
        for process in started {
            let output = process.wait_with_output()?;
            figures.push(String::from_utf8(output.stdout)?.trim().parse()?);
        }
    }
    figures.sort_by(f64::total_cmp);
    let at = |part: usize| figures[(figures.len() - 1) * part / 100];
    println!("{processes} processes, millionths beside the clock of the system: {:+.1} to {:+.1}", at(0), at(100));
    println!("of 100 processes 90 are from {:+.1} to {:+.1}, the middle one is at {:+.1}", at(5), at(95), at(50));
    Ok(())
}
