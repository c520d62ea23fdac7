//! `tollgate replay` from start to end.

use std::path::Path;

use crate::args::{ReplayArgs, ReportFormat};
use crate::decide::decide;
use crate::decisions::DecisionsFile;
use crate::drawing::check_name;
use crate::errors::RunError;
use crate::key::Field;
use crate::plan::Plan;
use crate::plot;
use crate::reading::{self, Asked, Ending};
use crate::report::{Report, columns_for_chart};
use crate::terminal::{self, Style};
use crate::timeline::Timeline;

/// Reads, decides, and reports.
///
/// # Errors
///
/// [`RunError`] when there is no report.
pub(crate) fn replay(args: &ReplayArgs) -> Result<Ending, RunError> {
    // Before an hour of reading, not after.
    let plan = Plan::new(args)?;
    let inputs = args.input.files.iter().chain(&args.policy).map(AsRef::as_ref);
    let (plot, decisions) = (args.output.plot.as_deref(), args.decisions.as_deref());
    reading::spare_inputs(inputs, &[("--plot", plot), ("--decisions", decisions)])?;
    plot.map_or(Ok(()), check_name)?;

    let keys: Vec<Vec<Field>> = plan.dimensions.iter().map(|dimension| dimension.key.clone()).collect();
    let asked = Asked { keys: &keys, key_option: plan.key_option(), cost_column: args.cost.cost_column.as_deref() };
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
    let report = Report { log: &log, outcome: &outcome, timeline: &shown, plan: &plan, top: args.worst.top, style };
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
