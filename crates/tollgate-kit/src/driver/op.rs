//! What can be done with a limiter.

use tollgate::{CostExceedsLimit, Decision, Status};

use crate::facade::Facade;

/// How many permits to ask for, whatever the limit is.
#[derive(Debug, Clone, Copy)]
pub enum Cost {
    Zero,
    One,
    /// 1 to the limit.
    Some(u32),
    Limit,
    PastLimit,
}

impl Cost {
    pub fn of(self, limit: u32) -> u32 {
        match self {
            Self::Zero => 0,
            Self::One => 1,
            Self::Some(any) => 1 + any % limit,
            Self::Limit => limit,
            Self::PastLimit => limit + 1,
        }
    }
}

/// How far to move the clock forward.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    Nothing,
    OneNanosecond,
    WindowLessOne,
    Window,
    WindowAndOne,
    /// This many parts in 65,536 of two windows.
    Part(u16),
}

/// One operation.
#[derive(Debug, Clone, Copy)]
pub enum Op {
    /// `try_acquire`.
    AcquireOne {
        key: u32,
    },
    /// `try_acquire_n`.
    Acquire {
        key: u32,
        cost: Cost,
    },
    /// `try_acquire_status`.
    Status {
        key: u32,
        cost: Cost,
    },
    Peek {
        key: u32,
    },
    PeekN {
        key: u32,
        cost: Cost,
    },
    Forget {
        key: u32,
    },
    Clear,
    Advance(Step),
    /// To the very moment at which the key's next request of this cost will succeed, or a
    /// nanosecond before or after.
    AdvanceToRetry {
        key: u32,
        cost: Cost,
        off_by: i8,
    },
    /// Sets the clock back by this many parts in 65,536 of two windows.
    Back(u16),
    /// Sets the clock back to zero.
    BackToZero,
    /// Far ahead: years.
    Leap(u64),
}

/// The calls that ask for permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    One,
    Some,
    Status,
}

impl Call {
    pub fn make<S: Facade>(self, subject: &S, key: u32, cost: u32) -> Result<Said, CostExceedsLimit> {
        Ok(match self {
            Self::One => Said { decision: subject.acquire_one(&[Some(key)]), status: None },
            Self::Some => Said { decision: subject.acquire(&[Some(key)], cost)?, status: None },
            Self::Status => {
                let status = subject.status(&[Some(key)], cost)?;
                Said { decision: status.decision(), status: Some(status) }
            }
        })
    }
}

/// What a call was told.
pub struct Said {
    pub decision: Decision,
    pub status: Option<Status>,
}

impl Said {
    pub fn is_counted(&self) -> bool {
        matches!(self.decision, Decision::Admitted(admission) if admission.is_counted())
    }
}

/// How far that is, for a key with this window.
pub fn length(step: Step, window: u64) -> u64 {
    match step {
        Step::Nothing => 0,
        Step::OneNanosecond => 1,
        Step::WindowLessOne => window - 1,
        Step::Window => window,
        Step::WindowAndOne => window + 1,
        Step::Part(part) => u64::try_from((u128::from(window) * u128::from(part)) >> 15).expect("at most two windows"),
    }
}
