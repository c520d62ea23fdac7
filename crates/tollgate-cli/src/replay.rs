//! `tollgate replay` from start to end.

use std::path::Path;

use crate::args::{ReplayArgs, ReportFormat};
use crate::chart::write_svg;
use crate::decide::Decider;
use crate::decisions::DecisionsFile;
use crate::errors::RunError;
use crate::events::Event;
use crate::log::Log;
use crate::outcome::{Answer, Outcome, Verdict};
use crate::plan::Plan;
use crate::plot;
use crate::reading::{self, Asked, Ending};
use crate::report::{Report, columns_for_chart};
use crate::terminal::{self, Style};
use crate::timeline::Timeline;
use crate::too_big;

/// Reads, decides, and reports.
///
/// # Errors
///
/// [`RunError`] when there is no report.
pub(crate) fn replay(args: &ReplayArgs) -> Result<Ending, RunError> {
    // Before an hour of reading, not after.
    let plan = Plan::new(args)?;
    let inputs = args.input.files.iter().chain(&args.policy).map(AsRef::as_ref);
    let (plot, html, decisions) = (args.output.plot.as_deref(), args.output.html.as_deref(), args.decisions.as_deref());
    reading::spare_inputs(inputs, &[("--plot", plot), ("--html", html), ("--decisions", decisions)])?;
    reading::check_ending("--plot", "svg", plot)?;
    reading::check_ending("--html", "html", html)?;

    let keys = plan.keys();
    let asked = Asked {
        keys: &keys,
        needed: plan.dimensions.len(),
        key_option: plan.key_option(),
        clients: &plan.clients,
        cost_column: args.cost.cost_column.as_deref(),
        actual_cost_column: args.cost.actual_cost_column.as_deref(),
    };
    let mut beside = Beside::new(&plan);
    let mut log = reading::read_beside(&args.input, asked, |log| {
        // The file of decisions is begun once all is read: a log that turns out not to be in order
        // is decided anew.
        if decisions.is_none() {
            beside.go_on(log, |_, _| Ok(()));
        }
    })?;
    if !log.was_in_order() {
        beside = Beside::new(&plan);
    }
    let mut file = decisions.map(|path| DecisionsFile::create(path, &plan)).transpose()?;
    beside.go_on(&log, |event, verdict| file.as_mut().map_or(Ok(()), |file| file.add(event, &log, verdict)));
    let (outcome, answers) = beside.finish()?;
    if let Some(file) = file {
        file.finish()?;
    }

    log.account.lines.without_key += outcome.without_key;
    if outcome.totals.is_all_too_big() {
        too_big::complain(&log, &plan, args.cost.cost_column.as_deref());
    }
    let to_stdout = decisions == Some(Path::new("-"));
    let style = Style::new(!to_stdout, args.output.width, args.output.color);
    let (first, last) = log.span();
    let mut shown = Timeline::new(first, last, columns_for_chart(style));
    let mut plotted = Timeline::new(first, last, plot::STEPS_AT_MOST);
    for (event, answer) in log.events().zip(&answers) {
        shown.add(event.time, *answer);
        plotted.add(event.time, *answer);
    }
    if let Some(path) = plot {
        write_svg(path, &plan.title(), &plot::charts(&plotted))?;
    }
    let report = Report { log: &log, outcome: &outcome, timeline: &shown, plan: &plan, top: args.worst.top, style };
    if let Some(path) = html {
        report.page(&plot::charts(&plotted)).write(path)?;
    }
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

/// The decisions, made while the log is still read.
struct Beside<'a> {
    decider: Result<Decider<'a>, RunError>,
    /// What became of each request.
    answers: Vec<Answer>,
}

impl<'a> Beside<'a> {
    fn new(plan: &'a Plan) -> Self {
        Self { decider: Decider::new(plan), answers: Vec::new() }
    }

    /// Decides what is settled. After an error nothing is decided any more: it is told once all is
    /// read.
    fn go_on(&mut self, log: &Log, mut witness: impl FnMut(&Event, Verdict) -> Result<(), RunError>) {
        let Ok(decider) = &mut self.decider else { return };
        let answers = &mut self.answers;
        let went = decider.go_on(log, |event, verdict, _| {
            answers.push(verdict.answer());
            witness(event, verdict)
        });
        if let Err(error) = went {
            self.decider = Err(error);
        }
    }

    fn finish(self) -> Result<(Outcome, Vec<Answer>), RunError> {
        Ok((self.decider?.outcome(), self.answers))
    }
}
