//! Requests on their way from the reader to the log, some thousand at a time.

use crate::formats::Stamp;

/// How many requests go together.
const SIZE: usize = 4096;

/// Requests in the order read, with their keys as text.
#[derive(Debug)]
pub(crate) struct Batch {
    stamps: Vec<Stamp>,
    text: String,
    /// Where each key ends in `text`: one for each request and dimension.
    ends: Vec<usize>,
    dimensions: usize,
}

impl Batch {
    pub(crate) fn new(dimensions: usize) -> Self {
        let (stamps, ends) = (Vec::with_capacity(SIZE), Vec::with_capacity(SIZE * dimensions));
        Self { stamps, text: String::with_capacity(SIZE * 16), ends, dimensions }
    }

    /// Adds a request. A key is never empty; no key is written as nothing.
    pub(crate) fn push<'a>(&mut self, stamp: Stamp, keys: impl Iterator<Item = Option<&'a str>>) {
        self.stamps.push(stamp);
        for key in keys.take(self.dimensions) {
            self.text.push_str(key.unwrap_or_default());
            self.ends.push(self.text.len());
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.stamps.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.stamps.len() >= SIZE
    }

    pub(crate) fn stamps(&self) -> &[Stamp] {
        &self.stamps
    }

    /// The keys of one request after the other, as many as there are dimensions for each.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Option<&str>> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let key = &self.text[start..end];
            start = end;
            (!key.is_empty()).then_some(key)
        })
    }
}
