//! What the terminal allows: width and colours.

use std::io::{self, Write};

use clap::ValueEnum;

use crate::errors::RunError;
use crate::words::{put, put_wrapped};

/// Columns to write in where there is no terminal to ask.
const WIDTH_WITHOUT_TERMINAL: u16 = 72;
/// Wider than this a chart only gets harder to read.
const WIDTH_AT_MOST: u16 = 120;

/// Whether to colour a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

/// How the report is to look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) width: usize,
    coloured: bool,
}

impl Style {
    /// For standard output, or for standard error.
    pub(crate) fn new(stdout: bool, width: Option<u16>, color: When) -> Self {
        let term = if stdout { console::Term::stdout() } else { console::Term::stderr() };
        let terminal = term.size_checked().map(|(_rows, columns)| columns);
        let fitting = || terminal.unwrap_or(WIDTH_WITHOUT_TERMINAL).clamp(40, WIDTH_AT_MOST);
        let declined = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let coloured = match color {
            When::Always => true,
            When::Never => false,
            When::Auto => term.is_term() && !declined,
        };
        Self { width: usize::from(width.unwrap_or_else(fitting)), coloured }
    }

    pub(crate) fn heading(self, text: &str) -> String {
        self.painted(text, "1")
    }

    pub(crate) fn admitted(self, text: &str) -> String {
        self.painted(text, "34")
    }

    pub(crate) fn denied(self, text: &str) -> String {
        self.painted(text, "31")
    }

    fn painted(self, text: &str, code: &str) -> String {
        if self.coloured && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Writes to standard output, all at once.
pub(crate) fn print(text: &str) -> Result<(), RunError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| RunError::Write { what: "standard output".to_owned(), error })
}

/// Writes lines to standard error, if they can be written. A terminal gets them wrapped between
/// words.
pub(crate) fn complain(text: &str) {
    let width = console::Term::stderr().size_checked().map(|(_rows, columns)| usize::from(columns));
    let mut out = String::new();
    for line in text.lines() {
        let indent: String = line.chars().take_while(|char| *char == ' ').collect();
        match width {
            Some(width) if console::measure_text_width(line) > width => {
                put_wrapped(&mut out, &indent, &[line.trim_start().to_owned()], width);
            }
            _ => put(&mut out, line),
        }
    }
    let _ = io::stderr().lock().write_all(out.as_bytes());
}

/// A report as JSON.
pub(crate) fn json_text(report: &serde_json::Value) -> String {
    format!("{report:#}\n")
}
