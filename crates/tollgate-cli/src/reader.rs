//! Reads sources and takes their lines apart, with an account of every line that is not a request.

use std::cell::RefCell;
use std::rc::Rc;

use crate::batch::Batch;
use crate::errors::{FileError, LineCounts, LineError};
use crate::filter::Selection;
use crate::formats::{self, LineParser, Wanted};
use crate::input::{Extent, LONGEST_LINE, Lines, Source};
use crate::key::{Field, KeyText};
use crate::progress::Progress;

/// How many of the lines that could not be used are shown.
const SHOWN: usize = 5;

/// A line that could not be used.
#[derive(Debug)]
pub(crate) struct Unusable {
    pub(crate) file: String,
    pub(crate) line: u64,
    pub(crate) error: LineError,
    pub(crate) text: Vec<u8>,
    /// The fields that the line has, of the first line that has none that fits.
    pub(crate) fields: Vec<String>,
}

/// What became of files and lines.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) lines: LineCounts,
    /// The first few of the lines that could not be used.
    pub(crate) unusable: Vec<Unusable>,
    /// The files that could not be read, or not to the end.
    pub(crate) unread: Vec<(String, FileError)>,
    /// The parts of keys and the filters, by their numbers, that no record has a value for.
    pub(crate) never_found: Vec<usize>,
    /// Whether any record has the header field of proxies.
    pub(crate) is_forwarded: bool,
    /// The fields of the first record that lacks one of them, where records have their own.
    pub(crate) fields: Vec<String>,
}

/// What is read, and what of it is kept.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    pub(crate) wanted: Wanted,
    /// The fields of the keys of each dimension.
    pub(crate) keys: &'a [Vec<Field>],
    pub(crate) selection: Selection,
}

/// `false` from what takes the requests: no more are wanted.
struct Stopped;

/// Reads all sources, one after the other.
pub(crate) struct Reader<'a, S> {
    question: &'a Question<'a>,
    take: S,
    account: Account,
    batch: Batch,
    key: KeyText,
    /// The fields of a record were asked for.
    is_told_of_fields: bool,
}

impl<'a, S: FnMut(Batch) -> bool> Reader<'a, S> {
    /// `take` is given the requests in the order read, and says whether it wants more.
    pub(crate) fn new(question: &'a Question<'a>, take: S) -> Self {
        // The values that filters look at come after the keys, as more of them.
        let filters = question.selection.filters.iter().map(|_| 1);
        let key = KeyText::of_sizes(question.keys.iter().map(Vec::len).chain(filters));
        Self {
            question,
            take,
            account: Account::default(),
            batch: Batch::new(question.keys.len()),
            key,
            is_told_of_fields: false,
        }
    }

    /// Reads all there is. What can't be read or used is kept account of and the rest goes on.
    pub(crate) fn read(mut self, sources: &[Source]) -> Account {
        let total = sources.iter().map(Source::size).sum::<Option<u64>>();
        let progress = Rc::new(RefCell::new(Progress::new(total)));
        for source in sources {
            let name = source.name();
            match self.open(source, &progress) {
                Ok((lines, parser)) => {
                    if self.read_lines(&name, lines, parser).is_err() {
                        return self.account;
                    }
                }
                Err(error) => self.account.unread.push((name, error)),
            }
        }
        if !self.batch.is_empty() {
            (self.take)(self.batch);
        }
        self.account.never_found = self.key.never_found().collect();
        self.account.is_forwarded = self.key.is_forwarded();
        self.account
    }

    fn open(
        &self,
        source: &Source,
        progress: &Rc<RefCell<Progress>>,
    ) -> Result<(Lines, Box<dyn LineParser>), FileError> {
        let mut lines = source.open(progress)?;
        let parser = formats::parser_for(&mut lines, &self.question.wanted)?;
        Ok((lines, parser))
    }

    fn read_lines(&mut self, name: &str, mut lines: Lines, mut parser: Box<dyn LineParser>) -> Result<(), Stopped> {
        let mut line = Vec::new();
        loop {
            let extent = match lines.next_into(&mut line) {
                Ok(Some(extent)) => extent,
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.account.unread.push((name.to_owned(), error));
                    return Ok(());
                }
            };
            self.account.lines.read += 1;
            if extent == Extent::Whole && formats::is_blank(&line) {
                self.account.lines.not_records += 1;
                continue;
            }
            match self.read_line(&line, extent, &mut *parser) {
                Ok(()) => {}
                Err(error) => self.note_unusable(name, lines.number(), &line, error, &*parser),
            }
            if self.batch.is_full() {
                let full = core::mem::replace(&mut self.batch, Batch::new(self.question.keys.len()));
                if !(self.take)(full) {
                    return Err(Stopped);
                }
            }
        }
    }

    fn read_line(&mut self, line: &[u8], extent: Extent, parser: &mut dyn LineParser) -> Result<(), LineError> {
        // Zeros before a line are what a crash leaves behind; they would make another client of its
        // first word.
        match extent {
            Extent::TooLong => return Err(LineError::TooLong { most: LONGEST_LINE }),
            Extent::Whole if memchr::memchr(0, line).is_some() => return Err(LineError::Binary),
            Extent::Whole => {}
        }
        self.key.clear();
        let Some(stamp) = parser.parse(line, &mut self.key)? else {
            self.account.lines.not_records += 1;
            return Ok(());
        };
        if !self.is_told_of_fields && !self.key.is_whole() {
            self.account.fields = parser.fields(line);
            self.is_told_of_fields = true;
        }
        let dimensions = self.question.keys.len();
        if !self.question.selection.keeps(stamp.time, self.key.each().skip(dimensions)) {
            self.account.lines.left_out += 1;
        } else if self.key.each().take(dimensions).all(|key| key.is_none()) {
            self.account.lines.without_key += 1;
        } else {
            self.batch.push(stamp, self.key.each());
        }
        Ok(())
    }

    fn note_unusable(&mut self, file: &str, line: u64, text: &[u8], error: LineError, parser: &dyn LineParser) {
        self.account.lines.unusable += 1;
        if self.account.unusable.len() < SHOWN {
            let error = if formats::is_binary(text) { LineError::Binary } else { error };
            let is_first = self.account.unusable.iter().all(|other| other.error != error);
            let has_others = is_first && matches!(error, LineError::NoField { .. });
            let fields = if has_others { parser.fields(text) } else { Vec::new() };
            let text = text[..text.len().min(256)].to_vec();
            self.account.unusable.push(Unusable { file: file.to_owned(), line, error, text, fields });
        }
    }
}
