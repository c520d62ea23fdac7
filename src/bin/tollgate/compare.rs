//! `tollgate compare`: one log through several policies and algorithms, side by side.

mod bursts;
mod contenders;
mod plot;
mod report;

use std::time::Duration;

use tollgate::Quota;

use crate::args::{CompareArgs, ReportFormat};
use crate::errors::RunError;
use crate::key::Field;
use crate::log::Log;
use crate::reading::{self, Asked};
use crate::replay::{Outcome, Verdict, decide};
use crate::run::Ending;
use crate::terminal::{self, Style};
use crate::timeline::Timeline;
use bursts::{Burst, Granted};
use contenders::Contender;

/// What one contender did.
#[derive(Debug)]
struct Finish {
    outcome: Outcome,
    /// The waits of the requests that were denied and could pass later, ascending.
    waits: Vec<u64>,
    /// The largest burst in each of the windows.
    bursts: Vec<Burst>,
    timeline: Timeline,
}

/// Everything that the report is made of.
#[derive(Debug)]
struct Comparison<'a> {
    log: &'a Log,
    keys: &'a [Vec<Field>],
    windows: Vec<u64>,
    all: Vec<(Contender, Finish)>,
    style: Style,
}

/// Reads once, decides by each contender, and reports.
///
/// # Errors
///
/// [`RunError`] when there is no report.
pub(crate) fn compare(args: &CompareArgs) -> Result<Ending, RunError> {
    let mut contenders = contenders::all(args)?;
    let windows = windows_of(args)?;
    let plot = args.plot.as_deref();
    let inputs = args.input.files.iter().chain(&args.policy).map(AsRef::as_ref);
    reading::spare_inputs(inputs, &[("--plot", plot)])?;
    plot.map_or(Ok(()), crate::plot::check_name)?;

    let keys = contenders::share_keys(&mut contenders);
    let asked = Asked { keys: &keys, key_option: "--key", cost_column: args.cost_column.as_deref() };
    let log = reading::read(&args.input, asked)?;
    let (first, last) = log.span();
    let mut all = Vec::with_capacity(contenders.len());
    for contender in contenders {
        let mut timeline = Timeline::new(first, last, plot::STEPS_AT_MOST);
        let mut granted = Granted::new(&contender.plan);
        let mut waits = Vec::new();
        let outcome = decide(&log, &contender.plan, |event, verdict| {
            timeline.add(event.time, verdict);
            match verdict {
                Verdict::Admitted { delay_ns } => granted.add(&log, event, delay_ns),
                Verdict::Denied(denial) => {
                    waits.push(u64::try_from(denial.retry_after().as_nanos()).unwrap_or(u64::MAX));
                }
                Verdict::NeverPasses => {}
            }
            Ok(())
        })?;
        waits.sort_unstable();
        let bursts = granted.largest(&windows);
        all.push((contender, Finish { outcome, waits, bursts, timeline }));
    }
    let style = Style::new(true, args.output.width, args.output.color);
    let comparison = Comparison { log: &log, keys: &keys, windows, all, style };
    if let Some(path) = plot {
        plot::write(path, &comparison)?;
    }
    terminal::print(&match args.output.format {
        ReportFormat::Text => comparison.text(),
        ReportFormat::Json => terminal::json_text(&comparison.json()),
    })?;
    Ok(Ending::of(&log))
}

/// The windows that bursts are looked for in, in nanoseconds, the shortest first.
fn windows_of(args: &CompareArgs) -> Result<Vec<u64>, RunError> {
    let usual = || args.per.map_or_else(|| vec![Duration::from_secs(1), Duration::from_secs(60)], |per| vec![per]);
    let mut windows = if args.window.is_empty() { usual() } else { args.window.clone() };
    windows.sort_unstable();
    windows.dedup();
    for window in &windows {
        Quota::new(1, *window).validate().map_err(|error| RunError::Limit(error.into()))?;
    }
    Ok(windows.iter().map(|window| u64::try_from(window.as_nanos()).unwrap_or(u64::MAX)).collect())
}

impl Finish {
    fn keys(&self) -> usize {
        self.outcome
            .dimensions
            .iter()
            .map(|dimension| dimension.by_key.iter().filter(|key| key.requests > 0).count())
            .sum()
    }

    fn keys_denied(&self) -> usize {
        let denied = |dimension: &crate::replay::DimensionOutcome| {
            dimension.by_key.iter().filter(|key| key.turned_away > 0).count()
        };
        self.outcome.dimensions.iter().map(denied).sum()
    }

    /// The wait that half of those denied were not told to exceed: the nearest rank.
    fn median_wait(&self) -> u64 {
        self.waits.get(self.waits.len().div_ceil(2).saturating_sub(1)).copied().unwrap_or(0)
    }

    fn longest_wait(&self) -> u64 {
        self.waits.last().copied().unwrap_or(0)
    }
}
