//! What the fuzz target `operations` does: turns bytes into a limiter and a script of operations,
//! and plays the script on the limiter and on the oracle.

use std::ops::Range;

use arbitrary::{Arbitrary, Unstructured};
use tollgate::{Clock, Quota};

use crate::clocks::CountedClock;
use crate::driver::{Cost, Op, Pair, Step};
use crate::facade::Facade;
use crate::oracle::{AtCap, Rule};

/// More than this and a script tells nothing that a shorter one does not.
const MOST_OPERATIONS: usize = 400;

/// Time ends for a limiter 36.5 years after its clock's origin, and the oracle's does not: clocks
/// stop just before.
const LAST_READING: u64 = (1 << 60) - (1 << 41);

/// The oracle never forgets a key and looks at all of them to count: no script goes on to more
/// fresh keys than this.
const MOST_FRESH_KEYS: u32 = 600;

/// Fresh keys of one operation, plus one: a table turns after half as many, and more only make a
/// script slow.
const MOST_AT_ONCE: usize = 64;

/// A limiter, and what is done to it.
#[derive(Debug, Arbitrary)]
pub struct Script {
    limit: Limit,
    window: Window,
    #[arbitrary(with = |bytes: &mut Unstructured<'_>| bytes.int_in_range(0..=LAST_READING / 2))]
    start: u64,
    subject: What,
    #[arbitrary(with = all_that_follow)]
    operations: Vec<Operation>,
}

/// Operations until the bytes run out. (A `Vec` of its own accord asks before each whether there is
/// another: scripts of random bytes would then end after one or two.)
fn all_that_follow(bytes: &mut Unstructured<'_>) -> arbitrary::Result<Vec<Operation>> {
    let mut operations = Vec::new();
    while !bytes.is_empty() && operations.len() < MOST_OPERATIONS {
        operations.push(bytes.arbitrary()?);
    }
    Ok(operations)
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum Limit {
    One,
    Two,
    Three,
    Five,
    /// Up to the third size of a ring, and one more.
    UpToThirtyThree(#[arbitrary(with = |bytes: &mut Unstructured<'_>| bytes.int_in_range(1..=33))] u32),
    Hundred,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum Window {
    Nanosecond,
    TenNanoseconds,
    Microsecond,
    Hour,
    Longest,
}

/// What the script is played on.
#[derive(Debug, Clone, Copy, Arbitrary)]
enum What {
    Direct,
    /// A few keys under the default cap.
    FewKeys,
    /// Up to 256 keys and fresh ones without end, under the default cap: the table grows and turns.
    ManyKeys,
    /// More keys than there are places.
    Capped {
        #[arbitrary(with = |bytes: &mut Unstructured<'_>| bytes.int_in_range(1..=8))]
        cap: u8,
        policy: Policy,
    },
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum Policy {
    Deny,
    Admit,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum Operation {
    AcquireOne {
        key: u8,
    },
    Acquire {
        key: u8,
        cost: Permits,
    },
    Status {
        key: u8,
        cost: Permits,
    },
    Peek {
        key: u8,
    },
    PeekN {
        key: u8,
        cost: Permits,
    },
    Forget {
        key: u8,
    },
    Clear,
    /// One permit for each of so many (modulo 64) keys that were never seen before.
    FreshKeys {
        count: u8,
    },
    /// One permit for each of the first keys.
    EachKey {
        count: u8,
    },
    Advance(By),
    /// To the moment that was advised, or a nanosecond before or after.
    AdvanceToRetry {
        key: u8,
        cost: Permits,
        off_by: Off,
    },
    Leap(u64),
    /// By so many parts in 65,536 of two windows.
    Back(u16),
    BackToZero,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum Permits {
    Zero,
    One,
    Some(u8),
    Limit,
    PastLimit,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum By {
    OneNanosecond,
    WindowLessOne,
    Window,
    WindowAndOne,
    /// So many parts in 65,536 of two windows.
    Part(u16),
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum Off {
    Early,
    InTime,
    Late,
}

impl Script {
    /// What the bytes say; `None` if they are too few to say anything.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        Self::arbitrary_take_rest(Unstructured::new(bytes)).ok()
    }

    /// Plays the script. `Err` says which operation was answered differently than by the oracle.
    pub fn run(&self) -> Result<(), String> {
        let rule = Rule { limit: self.limit.permits(), window: self.window.nanoseconds() };
        let keyed = |cap, keys| {
            let pair = Pair::keyed(&[rule], self.start, cap);
            let clock = pair.subject.clock().clone();
            self.play(pair, clock, keys)
        };
        match self.subject {
            What::Direct => {
                let pair = Pair::direct(&[rule], self.start);
                let clock = pair.subject.clock().clone();
                self.play(pair, clock, 1)
            }
            What::FewKeys => keyed(None, 4),
            What::ManyKeys => keyed(None, 256),
            What::Capped { cap, policy } => keyed(Some((cap.into(), policy.at_cap())), 12),
        }
    }

    fn play<S: Facade>(&self, pair: Pair<S>, clock: CountedClock, keys: u32) -> Result<(), String> {
        // Who knows no keys takes all of them for the same.
        let fresh_keys = if keys > 1 { keys..keys + MOST_FRESH_KEYS } else { 0..0 };
        let mut play = Play { pair, clock, keys, fresh_keys };
        for (position, &operation) in self.operations.iter().enumerate() {
            play.apply(operation).map_err(|difference| format!("operation {position}: {difference}"))?;
        }
        Ok(())
    }
}

/// A script being played.
struct Play<S> {
    pair: Pair<S>,
    clock: CountedClock,
    /// Operations that name a key name one of so many.
    keys: u32,
    fresh_keys: Range<u32>,
}

impl<S: Facade> Play<S> {
    fn apply(&mut self, operation: Operation) -> Result<(), String> {
        let key = |key: u8| u32::from(key) % self.keys;
        match operation {
            Operation::AcquireOne { key: number } => self.pair.apply(Op::AcquireOne { key: key(number) }),
            Operation::Acquire { key: number, cost } => {
                self.pair.apply(Op::Acquire { key: key(number), cost: cost.into() })
            }
            Operation::Status { key: number, cost } => {
                self.pair.apply(Op::Status { key: key(number), cost: cost.into() })
            }
            Operation::Peek { key: number } => self.pair.apply(Op::Peek { key: key(number) }),
            Operation::PeekN { key: number, cost } => {
                self.pair.apply(Op::PeekN { key: key(number), cost: cost.into() })
            }
            Operation::Forget { key: number } => self.pair.apply(Op::Forget { key: key(number) }),
            Operation::Clear => self.pair.apply(Op::Clear),
            Operation::FreshKeys { count } => self.acquire_fresh_keys(count),
            Operation::EachKey { count } => {
                let count = u32::from(count).min(self.keys);
                (0..count).try_for_each(|key| self.pair.apply(Op::AcquireOne { key }))
            }
            Operation::AdvanceToRetry { key: number, cost, off_by } => self.move_clock(Op::AdvanceToRetry {
                key: key(number),
                cost: cost.into(),
                off_by: off_by.nanoseconds(),
            }),
            Operation::Advance(by) => self.move_clock(Op::Advance(by.into())),
            Operation::Leap(by) => self.move_clock(Op::Leap(by)),
            Operation::Back(part) => self.pair.apply(Op::Back(part)),
            Operation::BackToZero => self.pair.apply(Op::BackToZero),
        }
    }

    fn acquire_fresh_keys(&mut self, count: u8) -> Result<(), String> {
        for key in self.fresh_keys.by_ref().take(usize::from(count) % MOST_AT_ONCE) {
            self.pair.apply(Op::AcquireOne { key })?;
        }
        Ok(())
    }

    fn move_clock(&mut self, op: Op) -> Result<(), String> {
        self.pair.apply(op)?;
        if self.clock.now() > LAST_READING {
            self.pair.set_clock(LAST_READING);
        }
        Ok(())
    }
}

impl Limit {
    fn permits(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Three => 3,
            Self::Five => 5,
            Self::UpToThirtyThree(limit) => limit,
            Self::Hundred => 100,
        }
    }
}

impl Window {
    fn nanoseconds(self) -> u64 {
        match self {
            Self::Nanosecond => 1,
            Self::TenNanoseconds => 10,
            Self::Microsecond => 1000,
            Self::Hour => 3_600_000_000_000,
            Self::Longest => u64::try_from(Quota::MAX_WINDOW.as_nanos()).expect("documented as 2^60 - 1"),
        }
    }
}

impl Policy {
    fn at_cap(self) -> AtCap {
        match self {
            Self::Deny => AtCap::Deny,
            Self::Admit => AtCap::Admit,
        }
    }
}

impl From<Permits> for Cost {
    fn from(permits: Permits) -> Self {
        match permits {
            Permits::Zero => Self::Zero,
            Permits::One => Self::One,
            Permits::Some(any) => Self::Some(any.into()),
            Permits::Limit => Self::Limit,
            Permits::PastLimit => Self::PastLimit,
        }
    }
}

impl From<By> for Step {
    fn from(by: By) -> Self {
        match by {
            By::OneNanosecond => Self::OneNanosecond,
            By::WindowLessOne => Self::WindowLessOne,
            By::Window => Self::Window,
            By::WindowAndOne => Self::WindowAndOne,
            By::Part(part) => Self::Part(part),
        }
    }
}

impl Off {
    fn nanoseconds(self) -> i8 {
        match self {
            Self::Early => -1,
            Self::InTime => 0,
            Self::Late => 1,
        }
    }
}
