//! A plan: the quotas of a key, made ready to decide by.

use super::account::any::AnyAccount;
use super::account::{Account, Verdict};
use super::hint::Hint;
use super::log::LogPlan;
use super::ring::Rings;
use super::steps::StepsPlan;
use super::word::{AtomicWord, LogState, TIME_ZERO, Word};
use crate::decision::PerQuota;
use crate::quota::Quota;

/// The word of a key, and the rings of its arena.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(super) word: &'a AtomicWord,
    pub(super) hint: &'a Hint,
    pub(super) rings: &'a Rings,
}

/// One attempt at a change of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Attempt<T> {
    Done(T),
    /// Another thread has changed the word.
    Lost,
    /// The arena has no name for another ring, until it has been rebuilt.
    NoRoom,
}

impl<T> Attempt<T> {
    /// One that is done, or had no room.
    pub(super) fn with_room(done: Option<T>) -> Self {
        done.map_or(Self::NoRoom, Self::Done)
    }

    pub(super) fn map<U>(self, done: impl FnOnce(T) -> U) -> Attempt<U> {
        match self {
            Self::Done(value) => Attempt::Done(done(value)),
            Self::Lost => Attempt::Lost,
            Self::NoRoom => Attempt::NoRoom,
        }
    }
}

/// The answer to a request, and the word that makes it so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Proposal {
    /// The request fits. `mark` names its permits to a refund. If it peeks, the word is to be left as
    /// it is.
    Admit { word: Word, mark: u128, delay_ns: u64 },
    /// The request does not fit, and without other traffic does after exactly `wait_ns`. A word is
    /// to be swapped in all the same.
    Deny { wait_ns: u64, quota: u8, word: Option<Word> },
    /// Another thread has changed the word.
    Lost,
    /// The arena has no name for another ring, until it has been rebuilt.
    NoRoom,
}

/// A request, as the quotas of its key see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ask {
    pub(crate) cost: u32,
    pub(crate) kind: AskKind,
    /// How many nanoseconds ahead its permits may be, if they are reserved.
    pub(crate) within: u64,
    /// Only the answer is wanted: the request grants and writes nothing, and its cost may be zero.
    pub(crate) peeks: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AskKind {
    /// Grants if possible. A queue may let the request wait.
    Acquire,
    /// Grants, now or ahead.
    Reserve,
    /// Grants nothing, because something else denies the request. It counts, if refused requests do.
    Refused,
}

impl Ask {
    #[inline(always)]
    pub(crate) const fn acquire(cost: u32) -> Self {
        Self { cost, kind: AskKind::Acquire, within: 0, peeks: false }
    }

    pub(crate) const fn reserve(cost: u32, within: u64) -> Self {
        Self { cost, kind: AskKind::Reserve, within, peeks: false }
    }

    /// The same without a charge.
    pub(crate) const fn peek(self) -> Self {
        Self { peeks: true, ..self }
    }
}

/// The quotas of a key, by their algorithm.
#[derive(Debug)]
pub(crate) enum Plan {
    Log(LogPlan),
    Steps(StepsPlan),
    Account(AnyAccount),
}

impl Plan {
    /// The plan of validated quotas.
    pub(crate) fn new(quotas: &[Quota]) -> Self {
        let steps = || StepsPlan::of(&quotas[0]).map(Self::Steps);
        let account = AnyAccount::of(quotas[0], TIME_ZERO).map(Self::Account);
        account.or_else(steps).unwrap_or_else(|| Self::Log(LogPlan::new(quotas)))
    }

    /// Decides a request for at most as many permits as the least limit, on a word that was loaded
    /// before the clock was read, and that is not held; nor frozen, unless the request peeks. Writes
    /// the permits left after the answer to `left`.
    #[inline(always)]
    pub(crate) fn propose(
        &self,
        place: Place<'_>,
        word: Word,
        reading: u64,
        ask: Ask,
        left: Option<&mut PerQuota>,
    ) -> Proposal {
        match self {
            Self::Log(log) => log.propose(place, word, reading, ask, left),
            Self::Steps(steps) => steps.propose(place, word, reading, ask, left),
            Self::Account(account) => propose_to(account, word, reading, ask, left),
        }
    }

    /// The same for a key without permits, which gets none before that time, whatever the clock
    /// reads. Waits are counted from the clock.
    pub(crate) fn propose_first(
        &self,
        place: Place<'_>,
        not_before: u64,
        reading: u64,
        ask: Ask,
        mut left: Option<&mut PerQuota>,
    ) -> Proposal {
        let lag = not_before.saturating_sub(reading);
        let time = reading + lag;
        let proposal = match self {
            Self::Log(log) => {
                let word = LogState { newest: not_before, ..LogState::default() }.pack();
                return log.propose(place, word, reading, ask, left);
            }
            Self::Steps(steps) => steps.propose(place, Word::NEW, time, ask, left.as_deref_mut()),
            Self::Account(account) => propose_to(account, Word::NEW, time, ask, left.as_deref_mut()),
        };
        if let Some(left) = left.filter(|_| lag > 0) {
            left.change(|left| left.after(lag));
        }
        match proposal {
            Proposal::Admit { word, mark, delay_ns } if delay_ns > 0 => {
                Proposal::Admit { word, mark, delay_ns: delay_ns + lag }
            }
            Proposal::Deny { wait_ns, quota, word } => Proposal::Deny { wait_ns: wait_ns + lag, quota, word },
            proposal => proposal,
        }
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        if let Self::Log(log) = self { log.bytes() } else { 0 }
    }

    /// The word after a refund of up to `cost` permits with this mark, and the number of them. If
    /// none can be refunded, the word is the same.
    pub(crate) fn refund(
        &self,
        place: Place<'_>,
        word: Word,
        reading: u64,
        cost: u32,
        mark: u128,
    ) -> Attempt<(Word, u32)> {
        match self {
            Self::Log(log) => log.refund(place, word, reading, cost, stamp_of(mark)),
            Self::Steps(steps) => steps.refund(place, word, reading, cost, mark),
            Self::Account(account) => {
                let refunded = account.refund(word.state(), reading, mark, cost);
                Attempt::Done(refunded.map_or((word, 0), |(state, permits)| (Word::of(state), permits)))
            }
        }
    }

    /// The first time from which a key with this word is no different from a new one.
    pub(super) fn over_at(&self, place: Place<'_>, word: Word) -> u64 {
        match self {
            Self::Log(log) => log.over_at(place, word),
            Self::Steps(steps) => steps.over_at(word),
            Self::Account(account) => account.over_at(word.state()),
        }
    }

    /// A frozen word of a key under these quotas, as it goes on under others of the same algorithm
    /// in another arena. `None` if there is no room.
    pub(super) fn moved(&self, from: Place<'_>, word: Word, reading: u64, under: &Self, to: &Rings) -> Option<Word> {
        match (self, under) {
            (Self::Log(log), Self::Log(under)) => log.moved(from, word, reading, under, to),
            (Self::Steps(steps), _) => steps.moved(from, word, reading, to),
            (Self::Account(account), Self::Account(under)) => {
                Some(Word::of(under.converted(account, word.state(), reading)))
            }
            (Self::Account(_) | Self::Log(_), _) => Some(Word::of(word.state())),
        }
    }

    /// A time that is no earlier than any stamp of a word: forgotten, the key gets none before it.
    /// Reserved stamps are left out.
    pub(super) fn latest(&self, word: Word, reading: u64) -> u64 {
        match self {
            Self::Log(_) => {
                let LogState { newest, reserved, .. } = LogState::unpack(word);
                if reserved { reading } else { reading.max(newest) }
            }
            Self::Steps(_) | Self::Account(_) => reading,
        }
    }

    /// The slots that a word takes in another arena, at most.
    pub(super) fn slots(&self, word: Word) -> usize {
        match self {
            Self::Log(_) => LogState::unpack(word).ring.len(),
            Self::Steps(steps) => steps.slots(word),
            Self::Account(_) => 0,
        }
    }
}

/// The decision of an account.
#[inline(always)]
fn propose_to(
    account: &AnyAccount,
    word: Word,
    reading: u64,
    Ask { cost, kind, within, peeks }: Ask,
    left: Option<&mut PerQuota>,
) -> Proposal {
    let state = word.state();
    let within = (kind == AskKind::Reserve).then_some(within);
    let (proposal, new) = match account.decide(state, reading, cost, within) {
        Verdict::Admit { state: new, delay_ns } => {
            (Proposal::Admit { word: Word::of(new), mark: new, delay_ns }, (!peeks).then_some(new))
        }
        Verdict::Deny { wait_ns, state: opened } => {
            (Proposal::Deny { wait_ns, quota: 0, word: opened.map(Word::of) }, opened)
        }
    };
    if let Some(left) = left {
        left.set([account.left(new.unwrap_or(state), reading, within)]);
    }
    proposal
}

/// The stamp that is the mark of a log's permits.
#[expect(clippy::cast_possible_truncation, reason = "it was made of 64 bits")]
const fn stamp_of(mark: u128) -> u64 {
    mark as u64
}
