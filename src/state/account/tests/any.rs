//! Any of the accounts, as tests name them.

use super::super::bucket::Bucket;
use super::super::calendar::CalendarWindow;
use super::super::line::{Queue, WarmUp};
use super::super::windows::{Counter, Window};
use super::super::{Account, Verdict};
use crate::decision::Left;
use crate::quota::Quota;
use crate::state::code::Numbers;
use crate::state::plan::Plan;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AnyAccount {
    Bucket(Bucket),
    Queue(Queue),
    Window(Window),
    Counter(Counter),
    WarmUp(WarmUp),
    Calendar(CalendarWindow),
}

/// Calls the same function of whichever account it is.
macro_rules! ask {
    ($account:expr, $question:ident($($with:expr),*)) => {
        match $account {
            AnyAccount::Bucket(bucket) => bucket.$question($($with),*),
            AnyAccount::Queue(queue) => queue.$question($($with),*),
            AnyAccount::Window(window) => window.$question($($with),*),
            AnyAccount::Counter(counter) => counter.$question($($with),*),
            AnyAccount::WarmUp(warm_up) => warm_up.$question($($with),*),
            AnyAccount::Calendar(calendar) => calendar.$question($($with),*),
        }
    };
}

impl AnyAccount {
    /// The account of a validated quota. `None` for logs and concurrency limits. Blocks are none of a quota.
    pub(crate) fn of(quota: Quota, origin: u64) -> Option<Self> {
        Some(match Plan::new(&[quota], origin, 0).numbers {
            Numbers::Log(_) | Numbers::QuantisedLog(_) | Numbers::Concurrency(_) | Numbers::Blocks(_) => return None,
            Numbers::Bucket(bucket) => Self::Bucket(bucket),
            Numbers::Queue(queue) => Self::Queue(queue),
            Numbers::Window(window) => Self::Window(window),
            Numbers::Counter(counter) => Self::Counter(counter),
            Numbers::WarmUp(warm_up) => Self::WarmUp(warm_up),
            Numbers::Calendar(calendar) => Self::Calendar(calendar),
        })
    }
}

impl Account for AnyAccount {
    fn decide(&self, state: u128, now: u64, cost: u32, within: Option<u64>) -> Verdict {
        let verdict = ask!(self, decide(state, now, cost, within));
        if state > 0 && within.is_none() {
            assert_eq!(ask!(self, decide_open(state, now, cost)), verdict, "the short way answers the same");
        }
        verdict
    }

    fn refund(&self, state: u128, now: u64, after: u128, cost: u32, kept: u32) -> Option<(u128, u32)> {
        ask!(self, refund(state, now, after, cost, kept))
    }

    fn owe(&self, state: u128, now: u64, cost: u32) -> u128 {
        ask!(self, owe(state, now, cost))
    }

    fn converted(&self, from: &Self, state: u128, now: u64) -> u128 {
        match (self, from) {
            _ if self == from || state == 0 => state,
            (Self::Bucket(to), Self::Bucket(from)) => to.converted(from, state, now),
            (Self::Queue(to), Self::Queue(from)) => to.converted(from, state, now),
            (Self::Window(to), Self::Window(from)) => to.converted(from, state, now),
            (Self::Counter(to), Self::Counter(from)) => to.converted(from, state, now),
            (Self::WarmUp(to), Self::WarmUp(from)) => to.converted(from, state, now),
            (Self::Calendar(to), Self::Calendar(from)) => to.converted(from, state, now),
            _ => 0,
        }
    }

    #[cfg(feature = "snapshot")]
    fn moved_in_time(&self, state: u128, by: i128, now: u64) -> u128 {
        if state == 0 { 0 } else { ask!(self, moved_in_time(state, by, now)) }
    }

    fn left(&self, state: u128, now: u64, within: Option<u64>) -> Left {
        ask!(self, left(state, now, within))
    }

    fn over_at(&self, state: u128) -> u64 {
        ask!(self, over_at(state))
    }
}
