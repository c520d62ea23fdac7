//! The file of decisions: a line of CSV an event, in the order decided.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use crate::errors::RunError;
use crate::log::Event;
use crate::replay::Verdict;
use crate::time;

/// Writes `time,key,allowed,retry_after_ns`.
///
/// `retry_after_ns` is 0 for what was admitted and empty for what could never be.
#[derive(Debug)]
pub(crate) struct DecisionsFile {
    name: String,
    csv: csv::Writer<BufWriter<File>>,
}

impl DecisionsFile {
    pub(crate) fn create(path: &Path) -> Result<Self, RunError> {
        let name = path.display().to_string();
        let file = File::create(path).map_err(|error| RunError::Write { what: name.clone(), error })?;
        let mut decisions = Self { name, csv: csv::Writer::from_writer(BufWriter::new(file)) };
        decisions.write(["time", "key", "allowed", "retry_after_ns"])?;
        Ok(decisions)
    }

    pub(crate) fn add(&mut self, event: &Event, key: &str, verdict: Verdict) -> Result<(), RunError> {
        let (allowed, retry_after) = match verdict {
            Verdict::Admitted => ("1", "0".to_owned()),
            Verdict::Denied { retry_after_ns } => ("0", retry_after_ns.to_string()),
            Verdict::NeverPasses => ("0", String::new()),
        };
        self.write([&time::rfc3339(event.time), key, allowed, &retry_after])
    }

    /// Sees everything onto the disk; a full one is noticed here at the latest.
    pub(crate) fn finish(mut self) -> Result<(), RunError> {
        self.csv.flush().map_err(|error| RunError::Write { what: self.name, error })
    }

    fn write(&mut self, record: [&str; 4]) -> Result<(), RunError> {
        self.csv
            .write_record(record)
            .map_err(|error| RunError::Write { what: self.name.clone(), error: io::Error::from(error) })
    }
}
