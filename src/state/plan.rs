//! A plan: the quotas of a key, made ready to decide by.

use super::account::any::AnyAccount;
use super::account::{Account, Verdict};
use super::log::steps::Steps;
use super::log::{LogPlan, Permits};
use super::request::{Ask, AskKind, Place, Proposal, Seen};
use super::ring::Rings;
use super::word::{TIME_ZERO, Word};
use crate::decision::PerQuota;
use crate::quota::Quota;

/// The quotas of a key, by their algorithm.
#[derive(Debug)]
pub(super) enum Plan {
    Log(LogPlan<Permits>),
    QuantisedLog(LogPlan<Steps>),
    Account(AnyAccount),
}

impl Plan {
    /// The plan of validated quotas.
    pub(crate) fn new(quotas: &[Quota]) -> Self {
        let quantised = || LogPlan::<Steps>::of(&quotas[0]).map(Self::QuantisedLog);
        let account = AnyAccount::of(quotas[0], TIME_ZERO).map(Self::Account);
        account.or_else(quantised).unwrap_or_else(|| Self::Log(LogPlan::new(quotas)))
    }

    /// Decides a request for at most as many permits as the least limit, on a word that was loaded
    /// before the clock was read, and that is not held; nor frozen, unless the request peeks. Writes
    /// the permits left after the answer to `left`.
    #[inline(always)]
    pub(crate) fn propose(&self, seen: Seen<'_>, ask: Ask, left: Option<&mut PerQuota>) -> Proposal {
        match self {
            Self::Log(log) => log.propose(seen, ask, left),
            Self::QuantisedLog(log) => log.propose(seen, ask, left),
            Self::Account(account) => propose_to(account, seen.word, seen.now, ask, left),
        }
    }

    /// The same for a key without permits, which gets none before that time, whatever the clock
    /// reads. Waits are counted from the clock.
    pub(crate) fn propose_first(
        &self,
        seen: Seen<'_>,
        not_before: u64,
        ask: Ask,
        mut left: Option<&mut PerQuota>,
    ) -> Proposal {
        let account = match self {
            Self::Log(log) => return log.propose_first(seen, not_before, ask, left),
            Self::QuantisedLog(log) => return log.propose_first(seen, not_before, ask, left),
            Self::Account(account) => account,
        };
        let lag = not_before.saturating_sub(seen.now);
        let proposal = propose_to(account, Word::NEW, seen.now + lag, ask, left.as_deref_mut());
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
        match self {
            Self::Log(log) => log.bytes(),
            Self::QuantisedLog(log) => log.bytes(),
            Self::Account(_) => 0,
        }
    }

    /// The word after a refund of up to `cost` permits with this mark, and the number of them. If
    /// none can be refunded, the word is the same, or `None` if another thread has changed it.
    pub(crate) fn refund(&self, seen: Seen<'_>, cost: u32, mark: u128) -> Option<(Word, u32)> {
        match self {
            Self::Log(log) => log.refund(seen, cost, stamp_of(mark)),
            Self::QuantisedLog(log) => log.refund(seen, cost, stamp_of(mark)),
            Self::Account(account) => {
                let refunded = account.refund(seen.word.state(), seen.now, mark, cost);
                Some(refunded.map_or((seen.word, 0), |(state, permits)| (Word::of(state), permits)))
            }
        }
    }

    /// The first time from which a key with this word is no different from a new one.
    pub(super) fn over_at(&self, place: Place<'_>, word: Word) -> u64 {
        match self {
            Self::Log(log) => log.over_at(place, word),
            Self::QuantisedLog(log) => log.over_at(place, word),
            Self::Account(account) => account.over_at(word.state()),
        }
    }

    /// A frozen word of a key under these quotas, as it goes on under others of the same algorithm
    /// in another arena.
    pub(super) fn moved(&self, seen: Seen<'_>, under: &Self, to: &Rings) -> Word {
        match (self, under) {
            (Self::Log(log), Self::Log(under)) => log.moved(seen, under, to),
            (Self::QuantisedLog(log), Self::QuantisedLog(under)) => log.moved(seen, under, to),
            (Self::Account(account), Self::Account(under)) => {
                Word::of(under.converted(account, seen.word.state(), seen.now))
            }
            _ => Word::NEW,
        }
    }

    /// A time that is no earlier than any stamp of a word: forgotten, the key gets none before it.
    /// Reserved stamps are left out.
    pub(super) fn latest(&self, word: Word, reading: u64) -> u64 {
        match self {
            Self::Log(log) => log.latest(word, reading),
            Self::QuantisedLog(log) => log.latest(word, reading),
            Self::Account(_) => reading,
        }
    }

    /// The slots that a word takes in another arena, at most.
    pub(super) fn slots(&self, word: Word) -> usize {
        match self {
            Self::Log(_) => LogPlan::<Permits>::slots(word),
            Self::QuantisedLog(_) => LogPlan::<Steps>::slots(word),
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
