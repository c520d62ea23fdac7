//! `tollgate compare`: one log through several policies and algorithms, side by side.

mod bursts;
mod comparison;
mod contenders;
mod html;
mod plot;
mod report;

use std::time::Duration;

use tollgate::Quota;

use crate::args::{CompareArgs, ReportFormat};
use crate::chart::write_svg;
use crate::decide::decide;
use crate::errors::RunError;
use crate::outcome::Verdict;
use crate::reading::{self, Asked, Ending};
use crate::terminal::{self, Style};
use crate::timeline::Timeline;
use crate::too_big;
use bursts::Granted;
use comparison::{Comparison, Finish};
use contenders::Contender;

/// Reads once, decides by each contender, and reports.
///
/// # Errors
///
/// [`RunError`] when there is no report.
pub(crate) fn compare(args: &CompareArgs) -> Result<Ending, RunError> {
    let mut contenders = contenders::all(args)?;
    if args.cost.actual_cost_column.is_some() {
        let with_costs = contenders.into_iter().map(Contender::with_actual_costs);
        contenders = with_costs.collect::<Result<_, RunError>>()?;
    }
    let windows = windows_of(args)?;
    let (plot, html) = (args.output.plot.as_deref(), args.output.html.as_deref());
    let inputs = args.input.files.iter().chain(&args.policy).map(AsRef::as_ref);
    reading::spare_inputs(inputs, &[("--plot", plot), ("--html", html)])?;
    reading::check_ending("--plot", "svg", plot)?;
    reading::check_ending("--html", "html", html)?;

    let (keys, needed) = contenders::share_keys(&mut contenders);
    let clients = contenders.first().map(|first| first.plan.clients.clone()).unwrap_or_default();
    let asked = Asked {
        keys: &keys,
        needed,
        key_option: "--key",
        clients: &clients,
        cost_column: args.cost.cost_column.as_deref(),
        actual_cost_column: args.cost.actual_cost_column.as_deref(),
    };
    let log = reading::read(&args.input, asked)?;
    let (first, last) = log.span();
    let mut all = Vec::with_capacity(contenders.len());
    for contender in contenders {
        let mut timeline = Timeline::new(first, last, plot::STEPS_AT_MOST);
        let mut granted = Granted::new(&contender.plan);
        let mut waits = Vec::new();
        let outcome = decide(&log, &contender.plan, |event, verdict, keys| {
            timeline.add(event.time, verdict.answer());
            match verdict {
                Verdict::Admitted { delay_ns, .. } => granted.add(keys, event, delay_ns),
                Verdict::Denied { denial, .. } => {
                    waits.push(u64::try_from(denial.retry_after().as_nanos()).unwrap_or(u64::MAX));
                }
                _ => {}
            }
            Ok(())
        })?;
        waits.sort_unstable();
        let bursts = granted.largest(&windows);
        all.push((contender, Finish { outcome, waits, bursts, timeline }));
    }
    let never = all.iter().find(|(_, finish)| finish.outcome.totals.is_all_too_big());
    if let Some((contender, _)) = never {
        too_big::complain(&log, &contender.plan, args.cost.cost_column.as_deref());
    }
    let style = Style::new(true, args.output.width, args.output.color);
    let comparison = Comparison { log: &log, keys: &keys[..needed], windows, all, style };
    if let Some(path) = html {
        comparison.page().write(path)?;
    }
    if let Some(path) = plot {
        write_svg(path, &comparison.title(), &comparison.charts())?;
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
