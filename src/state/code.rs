//! The numbers of each algorithm, and its code.
//!
//! A quota has the code of its algorithm from its constructor. So a program has no code of an
//! algorithm that it does not name, but for the bucket's short way, which is compiled into each caller.

use core::fmt;
use core::time::Duration;

use super::account::blocks::Blocks;
use super::account::bucket::Bucket;
use super::account::calendar::CalendarWindow;
use super::account::line::{Queue, WarmUp};
use super::account::windows::{Counter, Window};
use super::cell::{AtomicWord, Word};
use super::concurrency::Concurrency;
use super::log::steps::Steps;
use super::log::{LogPlan, Permits};
use super::request::{Algorithm, Seen};
use super::ring::Rings;
use crate::decision::{FastDecision, PerQuota};
use crate::quota::Quota;

/// The numbers of the quotas of a key, by their algorithm.
#[derive(Debug)]
pub(super) enum Numbers {
    Log(LogPlan<Permits>),
    QuantisedLog(LogPlan<Steps>),
    Bucket(Bucket),
    Queue(Queue),
    Window(Window),
    Counter(Counter),
    WarmUp(WarmUp),
    Calendar(CalendarWindow),
    Concurrency(Concurrency),
    /// No quota, but the blocks of a penalty.
    Blocks(Blocks),
}

/// An expression of the algorithm of a plan, compiled for each.
macro_rules! with_algorithm {
    ($numbers:expr, $algorithm:ident => $answer:expr) => {
        match $numbers {
            Numbers::Log($algorithm) => $answer,
            Numbers::QuantisedLog($algorithm) => $answer,
            Numbers::Bucket($algorithm) => $answer,
            Numbers::Queue($algorithm) => $answer,
            Numbers::Window($algorithm) => $answer,
            Numbers::Counter($algorithm) => $answer,
            Numbers::WarmUp($algorithm) => $answer,
            Numbers::Calendar($algorithm) => $answer,
            Numbers::Concurrency($algorithm) => $answer,
            Numbers::Blocks($algorithm) => $answer,
        }
    };
}
pub(super) use with_algorithm;

/// The code of an algorithm. It is called with numbers of the algorithm.
#[derive(Clone, Copy)]
pub(crate) struct Code {
    /// The numbers of its quotas.
    pub(super) numbers: fn(&Given<'_>) -> Option<Numbers>,
    pub(super) algorithm: fn(&Numbers) -> &(dyn Algorithm + 'static),
    /// Decides a request for so many permits on an open word, and swaps it. Writes the permits left.
    /// `None` if another thread was faster.
    pub(super) decide: fn(&Numbers, Seen<'_>, u32, Option<&mut PerQuota>) -> Option<FastDecision>,
    /// The same of an account, if it is not compiled into each caller: a call with registers alone.
    pub(super) decide_shortly: Option<Shortly>,
    /// A frozen word under the first numbers, as it goes on under the second ones. `None` if one of them
    /// is of another algorithm.
    pub(super) moved: fn(&Numbers, Seen<'_>, &Numbers, &Rings) -> Option<Word>,
    /// The same, if one of them is of an algorithm that is like this one.
    pub(super) converted: Option<Converted>,
}

pub(super) type Shortly = fn(&Numbers, &AtomicWord, Word, u64, u32) -> Option<FastDecision>;
pub(super) type Converted = fn(&Numbers, Seen<'_>, &Numbers) -> Option<Word>;

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code")
    }
}

/// The validated quotas of a key, at least one, and the clock that reads zero at `origin`, so many
/// nanoseconds after the time from which phases count.
pub(super) struct Given<'a> {
    pub(super) quotas: &'a [Quota],
    pub(super) origin: u64,
    pub(super) since_1970: u64,
}

impl Given<'_> {
    /// The first boundary of windows of this phase.
    pub(super) fn boundary(&self, phase: Duration, window: u64) -> u64 {
        // A phase may be longer than every clock.
        let (window, since_1970) = (u128::from(window.max(1)), u128::from(self.since_1970));
        let first = (phase.as_nanos() % window + window - since_1970 % window) % window;
        self.origin.saturating_add(u64::try_from(first).unwrap_or_default())
    }
}
