//! `tollgate replay` from start to end.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::args::ReplayArgs;
use crate::decisions::DecisionsFile;
use crate::errors::{LineError, RunError};
use crate::formats::Wanted;
use crate::input::Source;
use crate::log::Log;
use crate::plan::Plan;
use crate::plot;
use crate::replay::decide;
use crate::report::{Report, columns_for_chart};
use crate::terminal::{self, Style, excerpt};
use crate::timeline::Timeline;

/// How a run ended that came to a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Complete,
    /// The report lacks what is in a file that could not be read.
    SomeUnread,
}

impl Ending {
    pub(crate) fn exit_code(self) -> ExitCode {
        match self {
            Self::Complete => ExitCode::SUCCESS,
            Self::SomeUnread => ExitCode::FAILURE,
        }
    }
}

/// Reads, decides, and reports.
///
/// # Errors
///
/// [`RunError`] when there is no report.
pub(crate) fn replay(args: &ReplayArgs) -> Result<Ending, RunError> {
    // Before an hour of reading, not after.
    let plan = Plan::new(args)?;
    let sources = Source::all(&args.files);
    let policy = args.policy.iter().cloned().map(Source::File);
    let inputs: Vec<Source> = sources.iter().cloned().chain(policy).collect();
    spare_input(&inputs, "--plot", args.plot.as_deref())?;
    spare_input(&inputs, "--decisions", args.decisions.as_deref())?;

    let wanted = Wanted {
        key: plan.dimensions.iter().flat_map(|dimension| dimension.key.clone()).collect(),
        key_option: plan.key_option(),
        time_column: args.time_column.clone(),
        time_unit: args.time_unit,
        cost_column: args.cost_column.clone(),
    };
    if sources.iter().any(|source| matches!(source, Source::Stdin)) && io::stdin().is_terminal() {
        terminal::complain("reading a log from standard input (end it with Ctrl-D); --help says what else there is");
    }
    let log = Log::read(&sources, args.format, &wanted, &plan)?;
    complain_about(&log);
    let (Some(first), Some(last)) = (log.events.first(), log.events.last()) else {
        let (unusable, without_key) = (log.lines.unusable, log.lines.without_key);
        let (unread_files, key, key_option) = (log.unread.len(), plan.describe_keys(), plan.key_option());
        return Err(RunError::NothingToDecide { unusable, without_key, unread_files, key, key_option });
    };

    let style = Style::for_stdout(args.width, args.color);
    let mut shown = Timeline::new(first.time, last.time, columns_for_chart(style));
    let mut plotted = Timeline::new(first.time, last.time, plot::STEPS_AT_MOST);
    let mut decisions = args.decisions.as_deref().map(|path| DecisionsFile::create(path, &plan)).transpose()?;
    let outcome = decide(&log, &plan, |event, verdict| {
        shown.add(event.time, verdict);
        plotted.add(event.time, verdict);
        match &mut decisions {
            Some(decisions) => decisions.add(event, &log, verdict),
            None => Ok(()),
        }
    })?;
    if let Some(decisions) = decisions {
        decisions.finish()?;
    }
    if let Some(path) = &args.plot {
        plot::write(path, &plan.title(), &plotted)?;
    }
    let report = Report { log: &log, outcome: &outcome, timeline: &shown, plan: &plan, top: args.top, style };
    terminal::print(&report.text())?;
    Ok(if log.unread.is_empty() { Ending::Complete } else { Ending::SomeUnread })
}

/// Refuses to write over a file that is to be read.
fn spare_input(sources: &[Source], option: &'static str, output: Option<&Path>) -> Result<(), RunError> {
    let Some(output) = output else { return Ok(()) };
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let target: PathBuf = real(output);
    for source in sources {
        if let Source::File(path) = source
            && real(path) == target
        {
            return Err(RunError::WouldOverwriteInput { option, path: path.clone() });
        }
    }
    Ok(())
}

/// Tells on standard error what could not be read or used, and where.
fn complain_about(log: &Log) {
    for (file, error) in &log.unread {
        terminal::complain(&format!("{}: {error}", terminal::harmless(file)));
    }
    for unusable in &log.unusable {
        let (file, line) = (terminal::harmless(&unusable.file), unusable.line);
        terminal::complain(&format!("{file}:{line}: {}", unusable.error));
        if unusable.error != LineError::Binary {
            terminal::complain(&format!("    {}", excerpt(&unusable.text)));
        }
    }
    let shown = u64::try_from(log.unusable.len()).unwrap_or(u64::MAX);
    if log.lines.unusable > shown {
        terminal::complain(&format!("... and {} more lines that could not be used", log.lines.unusable - shown));
    }
}
