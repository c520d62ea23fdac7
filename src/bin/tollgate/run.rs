//! `tollgate replay` from start to end.

use std::path::Path;
use std::process::ExitCode;

use crate::args::{ReplayArgs, ReportFormat};
use crate::decisions::DecisionsFile;
use crate::errors::RunError;
use crate::key::Field;
use crate::log::Log;
use crate::plan::Plan;
use crate::plot;
use crate::reading::{self, Asked};
use crate::replay::decide;
use crate::report::{Report, columns_for_chart};
use crate::terminal::{self, Style};
use crate::timeline::Timeline;

/// How a run ended that came to a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Complete,
    /// The report lacks what is in a file that could not be read.
    SomeUnread,
}

impl Ending {
    pub(crate) fn of(log: &Log) -> Self {
        if log.unread.is_empty() { Self::Complete } else { Self::SomeUnread }
    }

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
    let inputs = args.input.files.iter().chain(&args.policy).map(AsRef::as_ref);
    let (plot, decisions) = (args.plot.as_deref(), args.decisions.as_deref());
    reading::spare_inputs(inputs, &[("--plot", plot), ("--decisions", decisions)])?;
    plot.map_or(Ok(()), plot::check_name)?;

    let keys: Vec<Vec<Field>> = plan.dimensions.iter().map(|dimension| dimension.key.clone()).collect();
    let asked = Asked { keys: &keys, key_option: plan.key_option(), cost_column: args.cost_column.as_deref() };
    let log = reading::read(&args.input, asked)?;
    let (first, last) = log.span();

    let to_stdout = decisions == Some(Path::new("-"));
    let style = Style::new(!to_stdout, args.output.width, args.output.color);
    let mut shown = Timeline::new(first, last, columns_for_chart(style));
    let mut plotted = Timeline::new(first, last, plot::STEPS_AT_MOST);
    let mut decisions = decisions.map(|path| DecisionsFile::create(path, &plan)).transpose()?;
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
    if let Some(path) = plot {
        plot::write(path, &plan.title(), &plotted)?;
    }
    let report = Report { log: &log, outcome: &outcome, timeline: &shown, plan: &plan, top: args.top, style };
    let text = match args.output.format {
        ReportFormat::Text => report.text(),
        ReportFormat::Json => terminal::json_text(&report.json()),
    };
    if to_stdout {
        terminal::complain(text.trim_end())
    } else {
        terminal::print(&text)?
    }
    Ok(Ending::of(&log))
}
