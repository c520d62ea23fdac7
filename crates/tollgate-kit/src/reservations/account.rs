//! A key of any algorithm.

use super::bucket::Bucket;
use super::log::Log;
use super::queue::Queue;
use super::steps::Steps;
use super::windows::{Kind, Windows};
use super::{Answer, Naive, Number};
use crate::oracle::meter::Meter;

pub enum Account {
    Bucket(Bucket),
    Log(Log),
    Queue(Queue),
    Steps(Steps),
    Windows(Windows),
}

impl Account {
    /// A new key, under a clock with this origin.
    pub fn of(meter: Meter, origin: u64) -> Self {
        let boundary = |phase: u128| i128::try_from(phase + u128::from(origin)).expect("small");
        match meter {
            Meter::TokenBucket { capacity, refill, per, start } => {
                Self::Bucket(Bucket::new(capacity, refill, per, start))
            }
            Meter::LeakyBucket { capacity, leak, per } => Self::Bucket(Bucket::new(capacity, leak, per, capacity)),
            Meter::LeakyQueue { leak, per, max_delay } => Self::Queue(Queue {
                permits: leak.into(),
                period: per.into(),
                max_delay,
                limit: meter.limit(),
                next: 0,
                places: vec![],
                charges: 0,
            }),
            Meter::FixedWindow { limit, window, phase } => {
                let kind = phase.map_or(Kind::Floating, |phase| Kind::Aligned(boundary(phase)));
                Self::Windows(Windows::new(limit, window, kind))
            }
            Meter::SlidingCounter { limit, window, phase } => {
                Self::Windows(Windows::new(limit, window, Kind::Counter(boundary(phase))))
            }
            Meter::QuantisedLog { limit, window, resolution } => {
                Self::Steps(Steps { limit, window, resolution, grants: vec![], charges: 0 })
            }
        }
    }

    /// Limits and windows.
    pub fn of_logs(quotas: Vec<(u32, u64)>, counts_refused: bool) -> Self {
        Self::Log(Log { counts_refused, quotas, permits: vec![], charges: 0 })
    }
}

impl Naive for Account {
    fn request(&mut self, now: u64, cost: u32, within: Option<u64>) -> Answer {
        match self {
            Self::Bucket(account) => account.request(now, cost, within),
            Self::Log(account) => account.request(now, cost, within),
            Self::Queue(account) => account.request(now, cost, within),
            Self::Steps(account) => account.request(now, cost, within),
            Self::Windows(account) => account.request(now, cost, within),
        }
    }

    fn refund(&mut self, now: u64, number: Number, kept: u32) -> u32 {
        match self {
            Self::Bucket(account) => account.refund(now, number, kept),
            Self::Log(account) => account.refund(now, number, kept),
            Self::Queue(account) => account.refund(now, number, kept),
            Self::Steps(account) => account.refund(now, number, kept),
            Self::Windows(account) => account.refund(now, number, kept),
        }
    }

    fn owe(&mut self, now: u64, cost: u32) {
        match self {
            Self::Bucket(account) => account.owe(now, cost),
            Self::Log(account) => account.owe(now, cost),
            Self::Queue(account) => account.owe(now, cost),
            Self::Steps(account) => account.owe(now, cost),
            Self::Windows(account) => account.owe(now, cost),
        }
    }

    fn remaining(&self, now: u64) -> u32 {
        match self {
            Self::Bucket(account) => account.remaining(now),
            Self::Log(account) => account.remaining(now),
            Self::Queue(account) => account.remaining(now),
            Self::Steps(account) => account.remaining(now),
            Self::Windows(account) => account.remaining(now),
        }
    }

    fn changed(self, now: u64, fresh: Self) -> Self {
        match (self, fresh) {
            (Self::Bucket(account), Self::Bucket(fresh)) => Self::Bucket(account.changed(now, fresh)),
            (Self::Log(account), Self::Log(fresh)) => Self::Log(account.changed(now, fresh)),
            (Self::Queue(account), Self::Queue(fresh)) => Self::Queue(account.changed(now, fresh)),
            (Self::Steps(account), Self::Steps(fresh)) => Self::Steps(account.changed(now, fresh)),
            (Self::Windows(account), Self::Windows(fresh)) => Self::Windows(account.changed(now, fresh)),
            _ => panic!("another algorithm"),
        }
    }
}
