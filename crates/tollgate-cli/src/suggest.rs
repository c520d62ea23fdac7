//! `tollgate suggest`: which limit to set, from what the keys of a log asked for.

mod html;
mod json;
mod plot;
mod policy;
mod report;
pub(crate) mod share;
mod slots;
mod suggestion;

use std::time::Duration;

use tollgate::Quota;

use crate::args::{ReportFormat, SuggestArgs};
use crate::chart::write_svg;
use crate::errors::RunError;
use crate::key::{Field, describe_all};
use crate::log::Log;
use crate::reading::{self, Asked, Ending};
use crate::terminal::{self, Style};
use share::{Of, Share};
use slots::{HitKey, Spread, TimesByKey, least_limit};
use suggestion::{Candidate, Ladder, Suggestion};

/// Reads, measures, and reports.
///
/// # Errors
///
/// [`RunError`] when there is no report.
pub(crate) fn suggest(args: &SuggestArgs) -> Result<Ending, RunError> {
    let windows = windows_of(args)?;
    let (plot, html, policy_out) =
        (args.output.plot.as_deref(), args.output.html.as_deref(), args.policy_out.as_deref());
    let inputs = args.input.files.iter().map(AsRef::as_ref);
    reading::spare_inputs(inputs, &[("--plot", plot), ("--html", html), ("--policy-out", policy_out)])?;
    reading::check_ending("--plot", "svg", plot)?;
    reading::check_ending("--html", "html", html)?;

    let clients = args.clients.clients()?.unwrap_or_default();
    let keys: [Vec<Field>; 1] = [args.keys.key.iter().map(|field| field.by(&clients)).collect()];
    let asked = Asked {
        keys: &keys,
        needed: 1,
        key_option: "--key",
        clients: &clients,
        cost_column: None,
        actual_cost_column: None,
    };
    let log = reading::read(&args.input, asked)?;
    let (windows, longer) = windows_within(&log, windows)?;
    let times = TimesByKey::new(&log);
    let spreads: Vec<Spread> = windows.iter().map(|window| Spread::new(&times, nanos(*window))).collect();
    let ladders = args.deny.iter().map(|&share| ladder(&log, &times, &spreads, share, args.of)).collect();
    let first = args.deny.first().copied().ok_or_else(|| RunError::Options("--deny names no share".to_owned()))?;
    let chosen = policy::choose(&log, (&args.keys.key, &clients), &spreads, &longer, first, args.of)?;

    let mut to_stdout = true;
    if let Some(path) = policy_out {
        to_stdout = path != std::path::Path::new("-");
        policy::write(path, &chosen)?;
    }
    let style = Style::new(to_stdout, args.output.width, args.output.color);
    let key = describe_all(&keys);
    let (of, top) = (args.of, args.worst.top);
    let suggestion = Suggestion { log: &log, key, of, spreads, longer, ladders, chosen, top, style };
    if let Some(path) = html {
        suggestion.page().write(path)?;
    }
    if let Some(path) = plot {
        write_svg(path, &suggestion.plot_title(), &suggestion.charts())?;
    }
    let text = match args.output.format {
        ReportFormat::Text => suggestion.text(),
        ReportFormat::Json => terminal::json_text(&suggestion.json()),
    };
    if to_stdout {
        terminal::print(&text)?
    } else {
        terminal::complain(text.trim_end())
    }
    Ok(Ending::of(&log))
}

/// The windows, each once, the shortest first.
fn windows_of(args: &SuggestArgs) -> Result<Vec<Duration>, RunError> {
    let mut windows = args.window.clone();
    windows.sort_unstable();
    windows.dedup();
    for window in &windows {
        Quota::new(1, *window).validate().map_err(|error| RunError::Limit(error.into()))?;
    }
    Ok(windows)
}

/// The windows that fit into the log, and those that are longer. Of these the log does not say what
/// they would hold.
///
/// # Errors
///
/// [`RunError::LogTooShort`] if none fits.
fn windows_within(log: &Log, windows: Vec<Duration>) -> Result<(Vec<Duration>, Vec<u64>), RunError> {
    let (first, last) = log.span();
    let span = last.abs_diff(first);
    let (within, longer): (Vec<Duration>, Vec<Duration>) =
        windows.into_iter().partition(|window| nanos(*window) <= span);
    let longer: Vec<u64> = longer.into_iter().map(nanos).collect();
    if within.is_empty() { Err(RunError::LogTooShort { span, windows: longer }) } else { Ok((within, longer)) }
}

fn nanos(window: Duration) -> u64 {
    u64::try_from(window.as_nanos()).unwrap_or(u64::MAX)
}

fn ladder(log: &Log, times: &TimesByKey, spreads: &[Spread], share: Share, of: Of) -> Ladder {
    let candidate = |spread: &Spread| {
        let limit = least_limit(spread, log, share, of);
        let mut hit = spread.hit(times, limit);
        let text = |hit: &HitKey| log.keys[0].text(hit.key);
        hit.sort_by(|a, b| b.denied.cmp(&a.denied).then_with(|| text(a).cmp(text(b))));
        let quota = Quota::new(limit, Duration::from_nanos(spread.window));
        Candidate { quota, denied: spread.denied(limit), hit }
    };
    Ladder { share, candidates: spreads.iter().map(candidate).collect() }
}
