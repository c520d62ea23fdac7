//! The file of decisions: a line of CSV an event, in the order decided.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use tollgate::{Denial, DenialReason};
use tollgate_policy::Action;

use crate::errors::RunError;
use crate::events::Event;
use crate::key::KeyText;
use crate::log::Log;
use crate::outcome::Verdict;
use crate::plan::{Plan, quota_in_words};
use crate::time;

/// Writes `time,key,allowed,retry_after_ns`.
///
/// `retry_after_ns` is 0 for what was admitted and empty for what could never be. Keys of several
/// dimensions are put together as one of several parts is.
///
/// Where there is more to a decision than that, `delay_ns,dimension,quota,in_the_way` follow: how
/// long to wait in a queue, and of a denial the dimension and quota that decide how long to wait,
/// and all the dimensions that are in the way. A rule that decided stands for a quota: `rule 1`.
pub(crate) struct DecisionsFile<'a> {
    name: String,
    csv: csv::Writer<Box<dyn Write>>,
    plan: &'a Plan,
    keys: KeyText,
}

impl<'a> DecisionsFile<'a> {
    pub(crate) fn create(path: &Path, plan: &'a Plan) -> Result<Self, RunError> {
        let (name, file): (String, Box<dyn Write>) = if path == Path::new("-") {
            ("standard output".to_owned(), Box::new(io::stdout().lock()))
        } else {
            let name = path.display().to_string();
            let file = File::create(path).map_err(|error| RunError::Write { what: name.clone(), error })?;
            (name, Box::new(BufWriter::new(file)))
        };
        let csv = csv::WriterBuilder::new().buffer_capacity(1 << 16).from_writer(file);
        let keys = KeyText::of_sizes([plan.dimensions.len()]);
        let mut decisions = Self { name, csv, plan, keys };
        let (first, more) =
            (["time", "key", "allowed", "retry_after_ns"], ["delay_ns", "dimension", "quota", "in_the_way"]);
        decisions.write(first, more)?;
        Ok(decisions)
    }

    pub(crate) fn add(&mut self, event: &Event, log: &Log, verdict: Verdict) -> Result<(), RunError> {
        self.keys.clear();
        log.key_texts(event).take(self.plan.dimensions.len()).for_each(|key| self.keys.push(key.map(str::as_bytes)));
        let key = self.keys.each().flatten().collect::<String>();
        let (mut delay, mut dimension, mut quota, mut in_the_way) = Default::default();
        let (allowed, retry_after) = match verdict {
            Verdict::Admitted { delay_ns, .. } => {
                delay = delay_ns.to_string();
                ("1", "0".to_owned())
            }
            Verdict::Denied { denial, set } => {
                (dimension, quota, in_the_way) = self.reasons(denial, set);
                ("0", denial.retry_after().as_nanos().to_string())
            }
            Verdict::NeverPasses => ("0", String::new()),
            Verdict::Rule { rule, action } => {
                quota = format!("rule {}", rule + 1);
                if action == Action::Admit { ("1", "0".to_owned()) } else { ("0", String::new()) }
            }
            Verdict::Unlimited => ("1", "0".to_owned()),
            Verdict::WithoutKey => return Ok(()),
        };
        let time = time::rfc3339(event.time);
        self.write([&time, &key, allowed, &retry_after], [&delay, &dimension, &quota, &in_the_way])
    }

    fn reasons(&self, denial: Denial, set: usize) -> (String, String, String) {
        let decider = &self.plan.dimensions[denial.dimension()];
        let quota = match denial.reason() {
            DenialReason::KeyCap => "key cap".to_owned(),
            DenialReason::Penalty => "penalty".to_owned(),
            _ => quota_in_words(&decider.set(set)[denial.quota()]),
        };
        let all: Vec<&str> = denial.violated().map(|at| self.plan.dimensions[at].name.as_str()).collect();
        (decider.name.clone(), quota, all.join(" + "))
    }

    /// Sees everything onto the disk; a full one is noticed here at the latest.
    pub(crate) fn finish(mut self) -> Result<(), RunError> {
        self.csv.flush().map_err(|error| RunError::Write { what: self.name, error })
    }

    fn write(&mut self, first: [&str; 4], more: [&str; 4]) -> Result<(), RunError> {
        let more = more.into_iter().filter(|_| !self.plan.is_plain());
        self.csv
            .write_record(first.into_iter().chain(more))
            .map_err(|error| RunError::Write { what: self.name.clone(), error: io_error(error) })
    }
}

/// The error of the file itself, so that a closed pipe is known as one.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
