//! Any of the accounts.

use super::bucket::Bucket;
use super::line::{Queue, WarmUp};
use super::windows::{Counter, Window};
use super::{Account, Verdict};
use crate::clock::nanos;
use crate::decision::Left;
use crate::quota::{Kind, Quota};

/// An account with its numbers. Two that are equal decide alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AnyAccount {
    Bucket(Bucket),
    Queue(Queue),
    Window(Window),
    Counter(Counter),
    WarmUp(WarmUp),
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
        }
    };
}

impl AnyAccount {
    /// The account of a validated quota. `origin` is the time of the clock's origin. `None` for
    /// logs.
    pub(crate) fn of(quota: Quota, origin: u64) -> Option<Self> {
        debug_assert!(quota.validate().is_ok());
        let limit = quota.limit();
        let boundary = |window: u64| {
            // A phase may be longer than every clock.
            let first = quota.phase()?.as_nanos() % u128::from(window.max(1));
            Some(origin.saturating_add(u64::try_from(first).unwrap_or_default()))
        };
        Some(match quota.kind() {
            Kind::Log | Kind::QuantisedLog { .. } => return None,
            Kind::TokenBucket { refill: permits, per } | Kind::LeakyBucket { leak: permits, per } => {
                Self::Bucket(Bucket::new(limit, permits, nanos(per), quota.start().unwrap_or(limit)))
            }
            Kind::LeakyQueue { leak, per, max_delay } => {
                Self::Queue(Queue::new(limit, leak, nanos(per), nanos(max_delay)))
            }
            Kind::WarmUp { rate, per, warm_up } => Self::WarmUp(WarmUp::new(limit, rate, nanos(per), nanos(warm_up))),
            Kind::FixedWindow => {
                let window = quota.window_ns();
                Self::Window(Window::new(limit, window, boundary(window)))
            }
            Kind::SlidingCounter { window } => {
                let window = nanos(window);
                Self::Counter(Counter::new(limit, window, boundary(window).or(Some(origin))))
            }
        })
    }

    /// The state under this account of a key that was under another one. It is the same state if
    /// the accounts are equal, and that of a new key if they are of different algorithms.
    pub(crate) fn converted(&self, from: &Self, state: u128, now: u64) -> u128 {
        if self == from || state == 0 {
            return state;
        }
        match (self, from) {
            (Self::Bucket(to), Self::Bucket(from)) => to.converted(from, state, now),
            (Self::Queue(to), Self::Queue(from)) => to.converted(from, state, now),
            (Self::Window(to), Self::Window(from)) => to.converted(from, state, now),
            (Self::Counter(to), Self::Counter(from)) => to.converted(from, state, now),
            (Self::WarmUp(to), Self::WarmUp(from)) => to.converted(from, state, now),
            _ => 0,
        }
    }
}

impl Account for AnyAccount {
    #[inline(always)]
    fn decide(&self, state: u128, now: u64, cost: u32, within: Option<u64>) -> Verdict {
        // A peek at no permits is admitted by any account, at once, and leaves the state as it is.
        if cost == 0 { Verdict::Admit { state, delay_ns: 0 } } else { ask!(self, decide(state, now, cost, within)) }
    }

    fn refund(&self, state: u128, now: u64, after: u128, cost: u32) -> Option<(u128, u32)> {
        ask!(self, refund(state, now, after, cost))
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
