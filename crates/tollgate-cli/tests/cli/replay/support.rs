//! Running the program, and reading what it writes with nothing of its own.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub(crate) const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sample/access.log");

/// A file of the real access log; `None`, and a loud line, where it is not beside this checkout.
pub(crate) fn shared(file: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(file);
    if !path.is_file() {
        tollgate_kit::programs::skipped("the real access log: there is no ../shared/data beside this checkout");
        return None;
    }
    Some(path.to_str().unwrap().to_owned())
}

/// A directory of one test's own, removed with everything in it when the test is done.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("replay-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn with(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.file(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn tollgate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

pub(crate) fn replay(args: &[&str]) -> Output {
    tollgate().arg("replay").args(args).output().unwrap()
}

pub(crate) fn replay_stdin(args: &[&str], input: &[u8]) -> Output {
    let mut child = tollgate()
        .arg("replay")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its arguments does not read its input, which is fine.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The count in the report's line of that name.
pub(crate) fn total(output: &Output, name: &str) -> u64 {
    let report = text(&output.stdout);
    let line = report.lines().find(|line| line.split_whitespace().next() == Some(name) && line.starts_with("  "));
    let line = line.unwrap_or_else(|| panic!("no {name} in:\n{report}\n{}", text(&output.stderr)));
    line.split_whitespace().nth(1).unwrap().replace(',', "").parse().unwrap()
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) time: String,
    pub(crate) key: String,
    pub(crate) allowed: bool,
    pub(crate) retry_after_ns: Option<u64>,
}

/// Reads a decisions file with nothing of the program's own.
pub(crate) fn decisions(path: &str) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    assert_eq!(reader.headers().unwrap(), vec!["time", "key", "allowed", "retry_after_ns"]);
    let row = |record: csv::StringRecord| Row {
        time: record[0].to_owned(),
        key: record[1].to_owned(),
        allowed: match &record[2] {
            "1" => true,
            "0" => false,
            other => panic!("neither allowed nor not: {other}"),
        },
        retry_after_ns: (!record[3].is_empty()).then(|| record[3].parse().unwrap()),
    };
    reader.records().map(|record| row(record.unwrap())).collect()
}

pub(crate) fn as_digits(rows: &[Row]) -> String {
    rows.iter().map(|row| if row.allowed { '1' } else { '0' }).collect()
}

/// Numbers that look random and are the same in every run (Lehmer's generator with a 64-bit state).
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn from(seed: u64) -> Self {
        Self(2 * seed + 1)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0xda94_2042_e4dd_58b5);
        (self.0 >> 32) % bound
    }

    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }
}
