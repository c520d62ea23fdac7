//! A log in memory: the events of all sources in time order, and an account of every line that is not one.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::errors::{FileError, LineCounts, LineError, RunError};
use crate::filter::Selection;
use crate::formats::{self, Format, Stamp, Wanted};
use crate::input::{Extent, LONGEST_LINE, Source};
use crate::key::{Field, KeyText};
use crate::progress::Progress;
use crate::time::Nanos;

/// How many of the lines that could not be used are shown.
const SHOWN: usize = 5;

/// A request as the log has it. Kept small, since a log may have a hundred million of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) time: Nanos,
    pub(crate) cost: u32,
    /// Where the log has its keys.
    row: u32,
}

/// The number of a key that a request does not have.
const NO_KEY: u32 = u32::MAX;

/// A line that could not be used.
#[derive(Debug)]
pub(crate) struct Unusable {
    pub(crate) file: String,
    pub(crate) line: u64,
    pub(crate) error: LineError,
    pub(crate) text: Vec<u8>,
}

/// Everything that was read.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// In time order once [`Log::read`] returns.
    pub(crate) events: Vec<Event>,
    /// The keys of each dimension.
    pub(crate) keys: Vec<Keys>,
    /// The numbers of each request's keys, a row of them a request, in the order read.
    numbers: Vec<u32>,
    pub(crate) lines: LineCounts,
    /// The first few of the lines that could not be used.
    pub(crate) unusable: Vec<Unusable>,
    /// The files that could not be read, or not to the end.
    pub(crate) unread: Vec<(String, FileError)>,
}

impl Log {
    /// Reads all there is. What can't be read or used is kept account of and the rest goes on.
    ///
    /// # Errors
    ///
    /// Only [`RunError::TooManyKeys`] and [`RunError::TooManyRequests`].
    pub(crate) fn read(
        sources: &[Source],
        format: Option<Format>,
        wanted: &Wanted,
        keys: &[Vec<Field>],
        selection: &Selection,
    ) -> Result<Self, RunError> {
        let total = sources.iter().map(Source::size).sum::<Option<u64>>();
        let progress = Rc::new(RefCell::new(Progress::new(total)));
        let mut log = Self { keys: keys.iter().map(|_| Keys::default()).collect(), ..Self::default() };
        // The values that filters look at come after the keys, as more of them.
        let sizes = keys.iter().map(Vec::len).chain(selection.filters.iter().map(|_| 1));
        let mut key = KeyText::of_sizes(sizes);
        for source in sources {
            log.read_source(source, format, wanted, &mut key, selection, &progress)?;
        }
        // Stable: requests of the same time stay in the order they were logged in.
        log.events.sort_by_key(|event| event.time);
        Ok(log)
    }

    fn read_source(
        &mut self,
        source: &Source,
        format: Option<Format>,
        wanted: &Wanted,
        key: &mut KeyText,
        selection: &Selection,
        progress: &Rc<RefCell<Progress>>,
    ) -> Result<(), RunError> {
        let name = source.name();
        let opened = source.open(progress).and_then(|mut lines| {
            let parser = formats::parser_for(&mut lines, format, wanted)?;
            Ok((lines, parser))
        });
        let (mut lines, mut parser) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.unread.push((name, error));
                return Ok(());
            }
        };
        let mut line = Vec::new();
        loop {
            let extent = match lines.next_into(&mut line) {
                Ok(Some(extent)) => extent,
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.unread.push((name, error));
                    return Ok(());
                }
            };
            self.lines.read += 1;
            if extent == Extent::Whole && formats::is_blank(&line) {
                self.lines.not_records += 1;
                continue;
            }
            key.clear();
            let parsed = match extent {
                // Zeros before a line are what a crash leaves behind; they would make another client of its first word.
                Extent::Whole if line.contains(&0) => Err(LineError::Binary),
                Extent::Whole => parser.parse(&line, key),
                Extent::TooLong => Err(LineError::TooLong { most: LONGEST_LINE }),
            };
            match parsed {
                Ok(Some(stamp)) if !selection.keeps(stamp.time, key.each().skip(self.keys.len())) => {
                    self.lines.left_out += 1;
                }
                Ok(Some(stamp)) if key.each().take(self.keys.len()).any(|key| key.is_some()) => {
                    self.add(stamp, key)?;
                }
                Ok(Some(_)) => self.lines.without_key += 1,
                Ok(None) => self.lines.not_records += 1,
                Err(error) => self.note_unusable(&name, lines.number(), &line, error),
            }
        }
    }

    fn add(&mut self, stamp: Stamp, key: &KeyText) -> Result<(), RunError> {
        let row = u32::try_from(self.events.len()).map_err(|_| RunError::TooManyRequests)?;
        for (keys, key) in self.keys.iter_mut().zip(key.each()) {
            self.numbers.push(key.map_or(Ok(NO_KEY), |key| keys.number_of(key))?);
        }
        self.events.push(Event { time: stamp.time, cost: stamp.cost, row });
        Ok(())
    }

    /// When the first and the last request came.
    pub(crate) fn span(&self) -> (Nanos, Nanos) {
        let time = |event: Option<&Event>| event.map_or(0, |event| event.time);
        (time(self.events.first()), time(self.events.last()))
    }

    /// The number of the request's key in a dimension; `None` where it has none.
    pub(crate) fn key(&self, event: &Event, dimension: usize) -> Option<usize> {
        // No platform that the standard library runs on with files and terminals has a smaller usize.
        let number = self.numbers[event.row as usize * self.keys.len() + dimension];
        (number != NO_KEY).then_some(number as usize)
    }

    /// The request's keys, one for each dimension.
    pub(crate) fn key_texts(&self, event: &Event) -> impl Iterator<Item = Option<&str>> {
        self.keys.iter().enumerate().map(|(at, keys)| Some(keys.text(self.key(event, at)?)))
    }

    fn note_unusable(&mut self, file: &str, line: u64, text: &[u8], error: LineError) {
        self.lines.unusable += 1;
        if self.unusable.len() < SHOWN {
            let error = if formats::is_binary(text) { LineError::Binary } else { error };
            let text = text[..text.len().min(256)].to_vec();
            self.unusable.push(Unusable { file: file.to_owned(), line, error, text });
        }
    }
}

/// The different keys of a log, numbered in the order they were first seen.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    numbers: HashMap<Rc<str>, u32>,
    texts: Vec<Rc<str>>,
}

impl Keys {
    fn number_of(&mut self, text: &str) -> Result<u32, RunError> {
        if let Some(&number) = self.numbers.get(text) {
            return Ok(number);
        }
        let number = u32::try_from(self.texts.len()).ok().filter(|&number| number != NO_KEY);
        let number = number.ok_or(RunError::TooManyKeys)?;
        let shared: Rc<str> = Rc::from(text);
        self.texts.push(Rc::clone(&shared));
        self.numbers.insert(shared, number);
        Ok(number)
    }

    pub(crate) fn text(&self, number: usize) -> &str {
        &self.texts[number]
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }
}
