//! A plan: the quotas of a key, made ready to decide by.

use core::ops::Deref;

use super::account::bucket::Bucket;
use super::account::line::{Queue, WarmUp};
use super::account::windows::{Counter, Window};
use super::log::steps::Steps;
use super::log::{LogPlan, Permits};
use super::request::{Algorithm, Ask, Seen};
use super::ring::Rings;
use super::word::Word;
use crate::clock::nanos;
use crate::decision::PerQuota;
use crate::quota::{Kind, Quota};

/// The quotas of a key, by their algorithm.
#[derive(Debug)]
pub(super) enum Plan {
    Log(LogPlan<Permits>),
    QuantisedLog(LogPlan<Steps>),
    Bucket(Bucket),
    Queue(Queue),
    Window(Window),
    Counter(Counter),
    WarmUp(WarmUp),
}

/// An expression of the algorithm of a plan, compiled for each.
macro_rules! with_algorithm {
    ($plan:expr, $algorithm:ident => $answer:expr) => {
        match $plan {
            Plan::Log($algorithm) => $answer,
            Plan::QuantisedLog($algorithm) => $answer,
            Plan::Bucket($algorithm) => $answer,
            Plan::Queue($algorithm) => $answer,
            Plan::Window($algorithm) => $answer,
            Plan::Counter($algorithm) => $answer,
            Plan::WarmUp($algorithm) => $answer,
        }
    };
}
#[cfg(feature = "snapshot")]
pub(super) use with_algorithm;

impl Plan {
    /// The plan of validated quotas, of a clock that reads zero at `origin`.
    pub(super) fn new(quotas: &[Quota], origin: u64) -> Self {
        let (quota, limit) = (&quotas[0], quotas[0].limit());
        let boundary = |window: u64| {
            // A phase may be longer than every clock.
            let first = quota.phase()?.as_nanos() % u128::from(window.max(1));
            Some(origin.saturating_add(u64::try_from(first).unwrap_or_default()))
        };
        match quota.kind() {
            Kind::Log => Self::Log(LogPlan::<Permits>::new(quotas)),
            Kind::QuantisedLog { window, resolution } => {
                Self::QuantisedLog(LogPlan::<Steps>::new(quota, nanos(window), nanos(resolution)))
            }
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
        }
    }

    /// The wait of a request that a hint denies, and the number of the quota. Saves the look at the
    /// ring.
    #[inline(always)]
    pub(super) fn denied_by_hint(&self, seen: Seen<'_>, ask: Ask, left: Option<&mut PerQuota>) -> Option<(u64, u8)> {
        if ask != Ask::acquire(1) {
            return None;
        }
        match self {
            Self::Log(log) => log.denied_by_hint(seen, left),
            Self::QuantisedLog(log) => log.denied_by_hint(seen, left),
            _ => None,
        }
    }

    /// A frozen word of a key under these quotas, as it goes on under others in another arena: as
    /// that of a new key, if their algorithm is another.
    pub(super) fn moved(&self, seen: Seen<'_>, under: &Self, to: &Rings) -> Word {
        match (self, under) {
            (Self::Log(of), Self::Log(under)) => of.moved(seen, under, to),
            (Self::QuantisedLog(of), Self::QuantisedLog(under)) => of.moved(seen, under, to),
            (Self::Bucket(of), Self::Bucket(under)) => of.moved(seen, under, to),
            (Self::Queue(of), Self::Queue(under)) => of.moved(seen, under, to),
            (Self::Window(of), Self::Window(under)) => of.moved(seen, under, to),
            (Self::Counter(of), Self::Counter(under)) => of.moved(seen, under, to),
            (Self::WarmUp(of), Self::WarmUp(under)) => of.moved(seen, under, to),
            // Each is named, so that a new one is not forgotten here.
            (Self::Log(_) | Self::QuantisedLog(_) | Self::Bucket(_) | Self::Queue(_), _)
            | (Self::Window(_) | Self::Counter(_) | Self::WarmUp(_), _) => Word::NEW,
        }
    }
}

/// The algorithm of the plan.
impl Deref for Plan {
    type Target = dyn Algorithm;

    fn deref(&self) -> &Self::Target {
        with_algorithm!(self, algorithm => algorithm)
    }
}
