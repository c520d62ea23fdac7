//! A log in memory: the requests of all sources in time order, and an account of every line that is
//! not one.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::mpsc::sync_channel;
use std::thread;

use crate::batch::Batch;
use crate::errors::RunError;
use crate::events::{Event, Events};
use crate::input::Source;
use crate::reader::{Account, Question, Reader};
use crate::time::Nanos;

/// How many batches may wait between the thread that reads and the one that decides.
const BATCHES_AHEAD: usize = 8;

/// Everything that was read.
#[derive(Debug)]
pub(crate) struct Log {
    events: Events,
    /// The keys of each dimension.
    pub(crate) keys: Vec<Keys>,
    pub(crate) account: Account,
}

impl Log {
    /// Reads all there is on a thread of its own. As requests come, `beside` may look at those
    /// whose places are [settled](Self::settled). What can't be read or used is kept account of and
    /// the rest goes on.
    ///
    /// # Errors
    ///
    /// Only [`RunError::TooManyKeys`] and [`RunError::TooManyRequests`].
    pub(crate) fn read(
        sources: &[Source],
        question: &Question<'_>,
        mut beside: impl FnMut(&Self),
    ) -> Result<Self, RunError> {
        let keys: Vec<Keys> = question.keys.iter().map(|_| Keys::default()).collect();
        let mut log = Self { events: Events::new(keys.len()), keys, account: Account::default() };
        let (sender, batches) = sync_channel(BATCHES_AHEAD);
        log.account = thread::scope(|scope| {
            // The channel is closed once this thread has gone: the reader stops then.
            let reader = scope.spawn(|| Reader::new(question, move |batch| sender.send(batch).is_ok()).read(sources));
            for batch in batches {
                log.add(&batch)?;
                log.events.settle();
                beside(&log);
            }
            Ok(reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })?;
        log.events.settle_all();
        Ok(log)
    }

    fn add(&mut self, batch: &Batch) -> Result<(), RunError> {
        let mut texts = batch.keys();
        for stamp in batch.stamps() {
            u32::try_from(self.events.len()).map_err(|_| RunError::TooManyRequests)?;
            self.events.add(*stamp);
            for keys in &mut self.keys {
                let key = texts.next().flatten();
                self.events.add_key(key.map(|key| keys.number_of(key)).transpose()?);
            }
        }
        Ok(())
    }

    /// How many requests there are.
    pub(crate) fn requests(&self) -> usize {
        self.events.len()
    }

    /// The first so many requests keep their places, whatever else is read.
    pub(crate) fn settled(&self) -> usize {
        self.events.settled()
    }

    /// Whether what was called settled while the log was read has stayed so.
    pub(crate) fn was_in_order(&self) -> bool {
        self.events.were_in_order()
    }

    /// The request in that place.
    pub(crate) fn event(&self, row: usize) -> Event {
        self.events.event(row)
    }

    /// The requests in time order.
    pub(crate) fn events(&self) -> impl Iterator<Item = Event> {
        (0..self.events.len()).map(|row| self.events.event(row))
    }

    /// When the first and the last request came.
    pub(crate) fn span(&self) -> (Nanos, Nanos) {
        match self.requests().checked_sub(1) {
            Some(last) => (self.event(0).time, self.event(last).time),
            None => (0, 0),
        }
    }

    /// The number of the request's key in a dimension; `None` where it has none.
    pub(crate) fn key(&self, event: &Event, dimension: usize) -> Option<u32> {
        self.events.key(event, dimension)
    }

    /// The request's keys, one for each column.
    pub(crate) fn key_texts(&self, event: &Event) -> impl Iterator<Item = Option<&str>> {
        self.keys.iter().enumerate().map(|(at, keys)| Some(keys.text(self.key(event, at)? as usize)))
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
        // The largest number stands for no key.
        let number = u32::try_from(self.texts.len()).ok().filter(|&number| number != u32::MAX);
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
