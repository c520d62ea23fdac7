//! `tollgate suggest`: which limit to set, from what the keys of a log asked for.

mod json;
mod plot;
mod policy;
mod report;
mod share;
mod slots;

use std::time::Duration;

use tollgate::Quota;

use crate::args::{ReportFormat, SuggestArgs};
use crate::errors::RunError;
use crate::log::Log;
use crate::reading::{self, Asked};
use crate::run::Ending;
use crate::terminal::{self, Style};
use crate::words::count_of;
use policy::Chosen;
pub(crate) use share::{Of, Share};
use slots::{HitKey, Spread, TimesByKey};

/// Where the distribution over keys is looked at, in keys of a thousand.
const QUANTILES: [(&str, usize); 5] = [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999), ("max", 1000)];

/// A limit, and what it alone would have done.
#[derive(Debug)]
struct Candidate {
    quota: Quota,
    denied: u64,
    /// The keys that it hits, those with the most denials first.
    hit: Vec<HitKey>,
}

/// The limits for one share, one for each window.
#[derive(Debug)]
struct Ladder {
    share: Share,
    candidates: Vec<Candidate>,
}

/// Everything that the report is made of.
#[derive(Debug)]
struct Suggestion<'a> {
    log: &'a Log,
    key: String,
    of: Of,
    spreads: Vec<Spread>,
    ladders: Vec<Ladder>,
    chosen: Chosen,
    top: usize,
    style: Style,
}

/// Reads, measures, and reports.
///
/// # Errors
///
/// [`RunError`] when there is no report.
pub(crate) fn suggest(args: &SuggestArgs) -> Result<Ending, RunError> {
    let windows = windows_of(args)?;
    let (plot, policy_out) = (args.plot.as_deref(), args.policy_out.as_deref());
    let inputs = args.input.files.iter().map(AsRef::as_ref);
    reading::spare_inputs(inputs, &[("--plot", plot), ("--policy-out", policy_out)])?;
    plot.map_or(Ok(()), crate::plot::check_name)?;

    let keys = [args.key.clone()];
    let log = reading::read(&args.input, Asked { keys: &keys, key_option: "--key", cost_column: None })?;
    let times = TimesByKey::new(&log);
    let spreads: Vec<Spread> = windows.iter().map(|window| Spread::new(&times, nanos(*window))).collect();
    let ladders = args.deny.iter().map(|&share| ladder(&log, &times, &spreads, share, args.of)).collect();
    let first = args.deny.first().copied().ok_or_else(|| RunError::Options("--deny names no share".to_owned()))?;
    let chosen = policy::choose(&log, &args.key, &spreads, first, args.of)?;

    let mut to_stdout = true;
    if let Some(path) = policy_out {
        to_stdout = path != std::path::Path::new("-");
        policy::write(path, &chosen)?;
    }
    let style = Style::new(to_stdout, args.output.width, args.output.color);
    let key = reading::describe_all(&keys);
    let (of, top) = (args.of, args.top);
    let suggestion = Suggestion { log: &log, key, of, spreads, ladders, chosen, top, style };
    if let Some(path) = plot {
        plot::write(path, &suggestion)?;
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

fn nanos(window: Duration) -> u64 {
    u64::try_from(window.as_nanos()).unwrap_or(u64::MAX)
}

/// The least limit of a window that denies no more than the share.
fn least_limit(spread: &Spread, log: &Log, share: Share, of: Of) -> u32 {
    let (requests, keys) = (count_of(log.events.len()), count_of(log.keys[0].len()));
    spread.least_limit(|denied, hit| match of {
        Of::Requests => share.allows(denied, requests),
        Of::Keys => share.allows(count_of(hit), keys),
    })
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
