//! Tasks that wait for permits of one key, by tollgate-wait and by its peers:
//!
//! ```sh
//! cargo run --release -p benches -- waits
//! ```
//!
//! All tasks come at once, to a token bucket of 10 permits that gets 10,000 permits a second. The
//! tasks are those of one thread.

mod contender;
mod counted;

use std::alloc::System;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use benches::table::Table;
use contender::Contender;
use counted::readings;
use cpu_time::ProcessTime;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::runtime::Builder;
use tokio::task::{LocalSet, yield_now};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// A run with so many tasks.
struct Run {
    served_in: Duration,
    processor: Duration,
    /// Readings of the limiter's clock: each look and each decision takes one or more.
    readings: u64,
    /// How many that came later were served before the unluckiest task.
    overtaken: usize,
    /// Bytes for each task, once all wait.
    bytes: usize,
}

fn run(contender: &Contender, tasks: usize) -> Run {
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    let set = LocalSet::new();
    let served = Rc::new(RefCell::new(Vec::with_capacity(tasks)));
    let asks = contender.start(&runtime);
    set.block_on(&runtime, async {
        let (region, start, processor) = (Region::new(ALLOCATOR), Instant::now(), ProcessTime::now());
        let before = readings();
        let all: Vec<_> = (0..tasks)
            .map(|number| {
                let (ask, served) = (asks(), Rc::clone(&served));
                tokio::task::spawn_local(async move {
                    ask.await;
                    served.borrow_mut().push(number);
                })
            })
            .collect();
        // Each task has been polled once.
        yield_now().await;
        let change = region.change();
        let bytes = change.bytes_allocated.saturating_sub(change.bytes_deallocated) / tasks;
        for task in all {
            task.await.expect("no panic");
        }
        let overtaken = overtaken(&served.borrow());
        let readings = readings() - before;
        Run { served_in: start.elapsed(), processor: processor.elapsed(), readings, overtaken, bytes }
    })
}

/// Of the tasks in the order in which they were served: how many larger numbers are before one, at
/// most.
fn overtaken(served: &[usize]) -> usize {
    let later = |place: usize| served[..place].iter().filter(|number| **number > served[place]).count();
    (0..served.len()).map(later).max().unwrap_or(0)
}

/// The readings for each grant. A contender without a clock that counts has none.
fn a_grant(readings: u64, tasks: usize) -> String {
    if readings == 0 { "-".to_owned() } else { format!("{:.1}", readings as f64 / tasks as f64) }
}

fn main() {
    let mut table = Table::with_text_at(
        1,
        &[
            "waiting tasks",
            "by",
            "served in",
            "processor time a grant",
            "clock readings a grant",
            "overtaken at most by",
            "bytes a task",
        ],
    );
    for (tasks, shown) in [(1, "1"), (100, "100"), (10_000, "10,000")] {
        for contender in Contender::ALL {
            // The first run warms up.
            let mut runs: Vec<Run> = (0..6).map(|_| run(&contender, tasks)).skip(1).collect();
            runs.sort_by_key(|run| run.processor);
            let overtaken = runs.iter().map(|run| run.overtaken).max().unwrap_or(0);
            let middle = &runs[runs.len() / 2];
            let processor = middle.processor.as_secs_f64() * 1e6 / f64::from(u32::try_from(tasks).expect("few"));
            table.row(&[
                shown.into(),
                contender.name().into(),
                format!("{:.1} ms", middle.served_in.as_secs_f64() * 1e3),
                format!("{processor:.2} us"),
                a_grant(middle.readings, tasks),
                overtaken.to_string(),
                middle.bytes.to_string(),
            ]);
        }
    }
    print!("{table}");
}
