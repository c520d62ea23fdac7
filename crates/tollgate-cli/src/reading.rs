//! Reading what the command line names, and saying what could not be read or used.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use crate::args::InputArgs;
use crate::clients::Clients;
use crate::errors::{LineError, NothingToDecide, RunError, fields_in_words};
use crate::filter::{Filter, Selection};
use crate::formats::{MATCH, Wanted};
use crate::input::Source;
use crate::key::{Field, describe_all};
use crate::log::Log;
use crate::reader::Question;
use crate::terminal;
use crate::text::{excerpt, harmless};
use crate::time::{length, rfc3339};
use crate::times::TimeOptions;
use crate::words::{count_of, human};

/// How a run ended that came to a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Complete,
    /// The report lacks what is in a file that could not be read.
    SomeUnread,
}

impl Ending {
    pub(crate) fn of(log: &Log) -> Self {
        if log.account.unread.is_empty() { Self::Complete } else { Self::SomeUnread }
    }

    pub(crate) fn exit_code(self) -> ExitCode {
        match self {
            Self::Complete => ExitCode::SUCCESS,
            Self::SomeUnread => ExitCode::FAILURE,
        }
    }
}

/// The keys that requests are told apart by, and how to ask for others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) keys: &'a [Vec<Field>],
    /// So many of them, the first, are keys. At the others only matches look.
    pub(crate) needed: usize,
    pub(crate) key_option: &'static str,
    /// The rules by which filters find clients.
    pub(crate) clients: &'a Clients,
    pub(crate) cost_column: Option<&'a str>,
    pub(crate) actual_cost_column: Option<&'a str>,
}

/// Reads all logs, and complains on standard error. `beside` looks on while they are read, as
/// [`Log::read`] says.
///
/// # Errors
///
/// [`RunError::NothingToDecide`] if there is not one request, and those of [`Log::read`].
pub(crate) fn read_beside(args: &InputArgs, asked: Asked<'_>, beside: impl FnMut(&Log)) -> Result<Log, RunError> {
    let sources = Source::all(&args.files);
    let selection = Selection::new(args.from, args.until, args.filters.clone());
    selection.filters.iter().filter_map(Filter::hint).for_each(|hint| terminal::complain(&hint));
    let (needed, matched) = asked.keys.split_at(asked.needed);
    let wanted = Wanted {
        format: args.log_format,
        pattern: args.pattern.clone(),
        key: needed.concat(),
        key_option: asked.key_option,
        matched: matched.concat(),
        filters: selection.filters.iter().map(|filter| filter.field.by(asked.clients)).collect(),
        time_column: args.time_column.clone(),
        times: TimeOptions { unit: args.time_unit, format: args.time_format.clone(), year: args.year },
        cost_column: asked.cost_column.map(str::to_owned),
        actual_cost_column: asked.actual_cost_column.map(str::to_owned),
    };
    if sources.iter().any(|source| matches!(source, Source::Stdin)) && io::stdin().is_terminal() {
        terminal::complain("reading a log from standard input (end it with Ctrl-D); --help says what else there is");
    }
    let question = Question { wanted, keys: asked.keys, selection };
    let mut log = Log::read(&sources, &question, beside)?;
    let unnamed = never_found(&log, &question);
    if log.requests() == 0 {
        complain_about_lines(&log);
        return Err(RunError::NothingToDecide(Box::new(NothingToDecide {
            lines: log.account.lines,
            sources: sources.iter().map(Source::name).collect(),
            unread: core::mem::take(&mut log.account.unread),
            key: describe_all(needed),
            key_option: asked.key_option,
            unnamed,
        })));
    }
    unnamed.iter().for_each(|words| terminal::complain(words));
    if let Some(header) = lacks_header(&log, asked) {
        terminal::complain(&format!("no line has the header field {header}: all that came by a proxy have one key"));
    }
    for (file, error) in &log.account.unread {
        terminal::complain(&format!("{}: {error}", harmless(file)));
    }
    complain_about_lines(&log);
    Ok(log)
}

/// Reads all logs, and complains on standard error.
///
/// # Errors
///
/// Those of [`read_beside`].
pub(crate) fn read(args: &InputArgs, asked: Asked<'_>) -> Result<Log, RunError> {
    read_beside(args, asked, |_| ())
}

/// The header field of proxies that counts for keys, if no line has it.
fn lacks_header<'a>(log: &Log, asked: Asked<'a>) -> Option<&'a str> {
    let mut clients = asked.keys.iter().flatten().filter_map(Field::clients);
    clients.find_map(|clients| clients.address().header()).filter(|_| !log.account.is_forwarded)
}

/// The fields of keys and filters that no record has, each with the fields that there are.
fn never_found(log: &Log, question: &Question<'_>) -> Vec<String> {
    let lines = &log.account.lines;
    if count_of(log.requests()) + lines.left_out + lines.without_key == 0 {
        return Vec::new();
    }
    let wanted: Vec<(&Field, &str)> = question.wanted.parts().collect();
    let missing = log.account.never_found.iter().filter_map(|&part| wanted.get(part));
    let words = missing.map(|(field, option)| {
        let field = harmless(&field.to_string());
        let effect = if *option == MATCH { ", so that no match that looks at it holds" } else { "" };
        format!("no record has a {field}{effect}{}", fields_in_words(&log.account.fields, option))
    });
    // Two dimensions may have the same field.
    let mut all: Vec<String> = Vec::new();
    words.for_each(|words| {
        if !all.contains(&words) {
            all.push(words)
        }
    });
    all
}

/// When the requests came.
pub(crate) fn span_words(log: &Log) -> Vec<String> {
    let (first, last) = log.span();
    if first == last {
        return vec![format!("all at {}", rfc3339(first))];
    }
    vec![format!("over {},", length(last.abs_diff(first))), format!("from {}", rfc3339(first))]
}

/// What the lines were that are not requests with such a key.
pub(crate) fn lines_words(log: &Log, key: &str) -> Vec<String> {
    let lines = &log.account.lines;
    let without_key = format!("without a {key}");
    let kinds = [
        (lines.unusable, "could not be used"),
        (lines.left_out, "left out by filters"),
        (lines.without_key, without_key.as_str()),
        (lines.not_records, "blank or header"),
    ];
    let there = kinds.iter().filter(|(count, _)| *count > 0);
    let mut parts: Vec<String> = there.map(|(count, kind)| format!("{} {},", human(*count), harmless(kind))).collect();
    match parts.last_mut() {
        None => return vec!["each a request".to_owned()],
        Some(last) => drop(last.pop()),
    }
    parts[0].insert_str(0, "of them ");
    parts
}

/// Refuses to write over a file that is to be read.
///
/// # Errors
///
/// [`RunError::WouldOverwriteInput`].
pub(crate) fn spare_inputs<'a>(
    inputs: impl Iterator<Item = &'a Path>,
    outputs: &[(&'static str, Option<&Path>)],
) -> Result<(), RunError> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    for input in inputs.filter(|input| *input != Path::new("-")) {
        for (option, output) in outputs {
            if output.is_some_and(|output| real(output) == real(input)) {
                return Err(RunError::WouldOverwriteInput { option, path: input.to_owned() });
            }
        }
    }
    Ok(())
}

/// Refuses names of files of another kind than what is to be written.
///
/// # Errors
///
/// [`RunError::WrongEnding`].
pub(crate) fn check_ending(option: &'static str, ending: &'static str, path: Option<&Path>) -> Result<(), RunError> {
    let Some(path) = path else { return Ok(()) };
    let is_fit = path.extension().is_none_or(|kind| kind.eq_ignore_ascii_case(ending)) && path != Path::new("-");
    if is_fit { Ok(()) } else { Err(RunError::WrongEnding { option, ending, path: path.to_owned() }) }
}

/// Tells on standard error which lines could not be used, and where they are.
fn complain_about_lines(log: &Log) {
    for unusable in &log.account.unusable {
        let (file, line) = (harmless(&unusable.file), unusable.line);
        let fields = match unusable.error {
            LineError::NoField { option, .. } => fields_in_words(&unusable.fields, option),
            _ => String::new(),
        };
        terminal::complain(&format!("{file}:{line}: {}{fields}", unusable.error));
        if unusable.error != LineError::Binary {
            terminal::complain(&format!("    {}", excerpt(&unusable.text)));
        }
    }
    let shown = u64::try_from(log.account.unusable.len()).unwrap_or(u64::MAX);
    if log.account.lines.unusable > shown {
        terminal::complain(&format!(
            "... and {} more lines that could not be used",
            log.account.lines.unusable - shown
        ));
    }
}
