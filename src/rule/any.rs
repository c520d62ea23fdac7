//! Any of the rules.

use super::account::{Account, Effect, Given, Opening, Since, saturated};
use super::bucket::Bucket;
use super::counter::Counter;
use super::queue::Queue;
#[cfg(feature = "snapshot")]
use super::window::Grid;
use super::window::Window;
use crate::quota::{Kind, Quota};

/// A rule with its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    Bucket(Bucket),
    Queue(Queue),
    Window(Window),
    Counter(Counter),
}

/// Calls the same function of whichever rule it is.
macro_rules! ask {
    ($rule:expr, $question:ident($($with:expr),*)) => {
        match $rule {
            Rule::Bucket(bucket) => bucket.$question($($with),*),
            Rule::Queue(queue) => queue.$question($($with),*),
            Rule::Window(window) => window.$question($($with),*),
            Rule::Counter(counter) => counter.$question($($with),*),
        }
    };
}

impl Rule {
    /// The rule of a validated quota. `origin` is the time of the clock's origin. `None` for logs.
    pub(crate) fn of(quota: Quota, origin: u64) -> Option<Self> {
        debug_assert!(quota.validate().is_ok());
        let limit = quota.limit();
        Some(match quota.kind() {
            Kind::Log | Kind::QuantisedLog { .. } => return None,
            Kind::TokenBucket { refill, per } => {
                Self::Bucket(Bucket::new(limit, refill, nanos(per), quota.start().unwrap_or(limit)))
            }
            Kind::LeakyBucket { leak, per } => Self::Bucket(Bucket::new(limit, leak, nanos(per), limit)),
            Kind::LeakyQueue { leak, per, max_delay } => {
                Self::Queue(Queue::new(limit, leak, nanos(per), nanos(max_delay)))
            }
            Kind::FixedWindow => {
                let first = quota.phase().map(|phase| first_boundary(origin, phase, quota.window_ns()));
                Self::Window(Window::new(limit, quota.window_ns(), first))
            }
            Kind::SlidingCounter { window } => {
                let window = nanos(window);
                Self::Counter(Counter::new(
                    limit,
                    window,
                    first_boundary(origin, quota.phase().unwrap_or_default(), window),
                ))
            }
        })
    }

    /// Decides a request of `cost` permits, at least 1 and at most the limit.
    #[inline]
    pub(crate) fn effect(&self, account: Account, now: u64, cost: u32) -> Effect {
        ask!(self, effect(account, now, cost))
    }

    /// Decides a request to an account that is over, of which nothing is used.
    pub(crate) fn effect_once_over(&self, over: Account, now: u64, cost: u32) -> Effect {
        match self {
            // By a clock that lags, it may not be over yet.
            Self::Queue(queue) if cost > 0 => queue.effect(over, now, cost),
            _ => Effect::Open { used: cost.into() },
        }
    }

    /// The effect of a request that accepts a wait of `within`, and its wait, in place of the
    /// effect of one that accepts none. Only buckets and queues let requests wait, a bucket at most
    /// as long as it takes to fill.
    pub(crate) fn reserve(&self, account: Account, now: u64, cost: u32, effect: Effect, within: u64) -> (Effect, u64) {
        match (self, effect) {
            (Self::Bucket(bucket), Effect::Deny { wait_ns }) => bucket.reserve(account, now, cost, wait_ns, within),
            (Self::Queue(queue), effect) => queue.reserve(account, now, effect, within),
            (_, effect) => (effect, 0),
        }
    }

    /// The account after a refund of up to `cost` permits; `None` if they no longer count.
    pub(crate) fn refund(&self, account: Account, now: u64, cost: u32, since: Since) -> Option<Given> {
        ask!(self, refund(account, now, cost, since))
    }

    /// A running account of another version, as it continues under this one from a time on; `None`
    /// if it continues unchanged, in windows of another length or with another limit.
    ///
    /// A bucket lacks as many permits as the other did at that time, rounded up, at most all; and
    /// it owes as many as the other did, at most as many again. The next place of a queue leaves
    /// when it would have, or less than one interval later, if the queue can be that long. An
    /// account that was charged after `at` owes for as long as the other would have. If windows of
    /// the same length begin at other times, the permits count in the window that runs at that
    /// time.
    pub(crate) fn converted(&self, other: &Self, account: Account, at: u64) -> Option<Account> {
        match (self, other) {
            (Self::Bucket(bucket), Self::Bucket(other)) => {
                Some(Account { anchor: at, used: bucket.lacks_after(other, account, at) })
            }
            (Self::Queue(queue), Self::Queue(other)) => {
                Some(Account { anchor: at, used: queue.places_after(other, account, at) })
            }
            (Self::Window(window), Self::Window(other)) => window.shifted(other, account, at),
            (Self::Counter(counter), Self::Counter(other)) => counter.shifted(other, account, at),
            _ => None,
        }
    }

    /// The anchor after [`Effect::Advance`].
    #[inline]
    pub(crate) fn advanced(&self, anchor: u64) -> u64 {
        ask!(self, advanced(anchor))
    }

    /// The anchor of an account that opens now: no later than now.
    #[inline]
    pub(crate) fn anchor_at(&self, now: u64) -> u64 {
        match self {
            Self::Bucket(_) | Self::Queue(_) => now,
            Self::Window(window) => window.anchor_at(now),
            Self::Counter(counter) => counter.anchor_at(now),
        }
    }

    /// Where its windows begin, if they are aligned.
    #[cfg(feature = "snapshot")]
    pub(crate) fn grid(&self) -> Option<Grid> {
        match self {
            Self::Bucket(_) | Self::Queue(_) => None,
            Self::Window(window) => window.grid(),
            Self::Counter(counter) => Some(counter.grid()),
        }
    }

    /// What is used in a window that goes on as one that ends `earlier` nanoseconds sooner.
    #[cfg(feature = "snapshot")]
    pub(crate) fn ends_earlier(&self, used: u64, earlier: u64) -> u64 {
        if let Self::Counter(counter) = self { counter.ends_earlier(used, earlier) } else { used }
    }

    /// An upper bound of `used`, at most 2^32.
    pub(crate) fn used_below(&self) -> u64 {
        ask!(self, used_below())
    }

    /// The same for an account that an earlier version may have written. A window keeps its
    /// permits, however small its limit becomes.
    #[cfg(feature = "snapshot")]
    pub(crate) fn used_ever_below(&self) -> u64 {
        if let Self::Window(_) = self { u64::from(Quota::MAX_CAPACITY) + 1 } else { self.used_below() }
    }

    /// The first time at which all permits are free, without further grants.
    pub(crate) fn all_free_at(&self, account: Account) -> u64 {
        ask!(self, all_free_at(account))
    }

    /// Whether every change of quotas moves the anchor.
    pub(crate) fn is_moved(&self) -> bool {
        matches!(self, Self::Bucket(_) | Self::Queue(_))
    }

    /// The time from which an account with used permits is over, even if they are refunded later.
    pub(crate) fn ends_at(&self, account: Account) -> u64 {
        match self {
            Self::Window(window) => window.end_of(account.anchor),
            Self::Counter(counter) => counter.ends_at(account),
            _ => self.all_free_at(account),
        }
    }

    /// The first time from which the account is no different from a new one; `u64::MAX` if there is
    /// none.
    pub(crate) fn over_at(&self, account: Account) -> u64 {
        ask!(self, over_at(account))
    }

    /// Whether an account ever becomes no different from a new one.
    pub(crate) fn is_ever_over(&self) -> bool {
        self.over_at(Account { anchor: 0, used: 1 }) != u64::MAX
    }

    /// The permits that one request could get now. A request is admitted if and only if its cost is
    /// no more.
    pub(crate) fn remaining(&self, account: Account, now: u64) -> u32 {
        ask!(self, remaining(account, now))
    }

    /// Nanoseconds until every permit is free, without further grants.
    pub(crate) fn reset_after(&self, account: Account, now: u64) -> u64 {
        self.all_free_at(account).saturating_sub(now)
    }

    /// Nanoseconds until [`remaining`](Self::remaining) grows, without further grants; zero if it
    /// is the `limit`.
    pub(crate) fn next_after(&self, account: Account, now: u64, remaining: u32, limit: u32) -> u64 {
        if remaining >= limit {
            return 0;
        }
        match self.effect(account, now, remaining + 1) {
            Effect::Deny { wait_ns } => wait_ns,
            _ => 0,
        }
    }

    /// The wait of a request that is admitted now, given the account before it. Zero except for
    /// queues.
    pub(crate) fn delay_ns(&self, before: Account, now: u64) -> u64 {
        match self {
            Self::Queue(queue) => queue.delay_ns(before, now),
            _ => 0,
        }
    }

    /// Decides the first request of a new key. A cost of zero gives the account before it.
    pub(crate) fn opening(&self, cost: u32) -> Opening {
        match self {
            Self::Bucket(bucket) => bucket.opening(cost),
            _ => Opening { used: cost.into(), wait_ns: None },
        }
    }
}

pub(super) fn nanos(duration: core::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The first boundary at or after time zero, if one lies `phase` after `origin` and they repeat
/// each window.
fn first_boundary(origin: u64, phase: core::time::Duration, window: u64) -> u64 {
    let boundary = (u128::from(origin) + phase.as_nanos()).checked_rem(window.into());
    boundary.map_or(0, saturated)
}
