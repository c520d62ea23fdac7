//! A request as an algorithm sees it, and the answer.

use super::account::{Account, Verdict};
use super::cell::{AtomicWord, Hint, Key, Word};
use super::ring::Rings;
use crate::decision::{FastDecision, PerQuota, Shadowed};
use crate::fingerprint::Fingerprint;

/// An algorithm, with the numbers of its quotas.
pub(super) trait Algorithm: Send + Sync {
    /// Decides a request for at most as many permits as the least limit, on a word that was loaded
    /// before the clock was read, and that is not held; nor frozen, unless the request peeks. Writes
    /// the permits left after the answer to `left`.
    fn propose(&self, seen: Seen<'_>, request: Request, left: Option<&mut PerQuota>) -> Proposal;

    /// The word after a refund of all but `kept` of `cost` permits with this mark, or of fewer, and
    /// the number of them. If none can be refunded, the word is the same, or `None` if another
    /// thread has changed it.
    fn refund(&self, seen: Seen<'_>, cost: u32, kept: u32, mark: u128) -> Option<(Word, u32)>
    where
        Self: Sized;

    /// The word after a charge of so many permits, whether they fit or not. A key without permits
    /// is seen as [`first`](Self::first) says.
    fn owe(&self, seen: Seen<'_>, cost: u32) -> Word
    where
        Self: Sized;

    /// A key without permits, as its first charge sees it: its permits count as granted no earlier
    /// than `not_before`.
    fn first<'a>(&self, seen: Seen<'a>, not_before: u64) -> Seen<'a>;

    /// The first time from which a key with this word is no different from a new one.
    fn over_at(&self, cell: CellRef<'_>, word: Word) -> u64;

    /// A frozen word of a key, as it goes on under the quotas of another arena.
    fn moved(&self, seen: Seen<'_>, under: &Self, to: &Rings) -> Word
    where
        Self: Sized;

    /// The time before which the key gets no permit once it is forgotten: a permit as of it has no
    /// earlier stamp than the word. If the newest stamp is reserved, it is the reading.
    fn latest(&self, _: Word, reading: u64) -> u64 {
        reading
    }

    /// The slots that a word takes in another arena, at most.
    fn slots(&self, _: Word) -> usize {
        0
    }

    /// Bytes on the heap.
    fn bytes(&self) -> usize {
        0
    }
}

/// What all algorithms have in common is compiled once.
impl dyn Algorithm + '_ {
    /// Decides a request, and swaps the word. `None` if another thread was faster.
    pub(super) fn decide(&self, seen: Seen<'_>, cost: u32, left: Option<&mut PerQuota>) -> Option<FastDecision> {
        let (decision, new, _) = self.propose(seen, Request::acquire(cost), left).answer()?;
        // A lost swap gives no answer: the proposal follows from a word that has changed. An answer that
        // changes no word holds as of the load.
        let is_swapped = new.is_none_or(|new| new == seen.word || seen.cell.word.swap(seen.word, new));
        is_swapped.then_some(decision)
    }

    /// The same as `propose` for a key without permits. Its permits count as granted no earlier than
    /// `not_before`. Waits are counted from the clock, and a request that need not wait has no delay.
    pub(super) fn propose_first(
        &self,
        seen: Seen<'_>,
        not_before: u64,
        request: Request,
        mut left: Option<&mut PerQuota>,
    ) -> Proposal {
        let first = self.first(seen, not_before);
        let lag = first.now - seen.now;
        let proposal = self.propose(first, request, left.as_deref_mut());
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
}

/// An account has its whole state in the word.
impl<A: Account> Algorithm for A {
    #[inline(always)]
    fn propose(&self, seen: Seen<'_>, request: Request, left: Option<&mut PerQuota>) -> Proposal {
        let (state, Request { cost, kind, within, peeks, .. }) = (seen.word.state(), request);
        let within = matches!(kind, RequestKind::Reserve | RequestKind::More).then_some(within);
        // A peek at no permits is admitted at once, and leaves the state as it is.
        let verdict = match cost {
            0 => Verdict::Admit { state, delay_ns: 0 },
            _ => self.decide(state, seen.now, cost, within),
        };
        let (proposal, new) = match verdict {
            Verdict::Admit { state: new, delay_ns } => {
                (Proposal::Admit { word: Word::of(new), mark: new, delay_ns }, (!peeks).then_some(new))
            }
            Verdict::Deny { wait_ns, state: opened } => {
                (Proposal::Deny { wait_ns, quota: 0, word: opened.map(Word::of) }, opened)
            }
        };
        if let Some(left) = left {
            left.set([self.left(new.unwrap_or(state), seen.now, within)]);
        }
        proposal
    }

    fn refund(&self, seen: Seen<'_>, cost: u32, kept: u32, mark: u128) -> Option<(Word, u32)> {
        let refunded = Account::refund(self, seen.word.state(), seen.now, mark, cost, kept);
        Some(refunded.map_or((seen.word, 0), |(state, permits)| (Word::of(state), permits)))
    }

    fn owe(&self, seen: Seen<'_>, cost: u32) -> Word {
        Word::of(Account::owe(self, seen.word.state(), seen.now, cost))
    }

    fn first<'a>(&self, seen: Seen<'a>, not_before: u64) -> Seen<'a> {
        Seen { word: Word::NEW, now: seen.now.max(not_before), ..seen }
    }

    fn over_at(&self, _: CellRef<'_>, word: Word) -> u64 {
        Account::over_at(self, word.state())
    }

    fn moved(&self, seen: Seen<'_>, under: &Self, _: &Rings) -> Word {
        let state = seen.word.state();
        Word::of(if self == under { state } else { under.converted(self, state, seen.now) })
    }
}

/// The word and the hint of a key, and the rings of its arena.
#[derive(Clone, Copy)]
pub(crate) struct CellRef<'a> {
    pub(super) word: &'a AtomicWord,
    pub(super) hint: &'a Hint,
    pub(super) rings: &'a Rings,
}

/// A key's word as a thread has loaded it, and the clock as it has read it afterwards; in a sweep,
/// perhaps before.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(super) cell: CellRef<'a>,
    pub(super) word: Word,
    pub(super) now: u64,
}

impl Seen<'_> {
    /// Whether the word is still the same, so that the slots that were read belong to it.
    #[inline]
    pub(super) fn stands(&self) -> bool {
        self.cell.word.load() == self.word
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
}

impl Proposal {
    /// The decision, the word to be swapped in, and the mark of the permits. `None` if another thread
    /// has changed the word.
    #[inline(always)]
    pub(super) fn answer(self) -> Option<(FastDecision, Option<Word>, u128)> {
        Some(match self {
            Self::Admit { word, mark, delay_ns } => (FastDecision::admitted(delay_ns), Some(word), mark),
            Self::Deny { wait_ns, quota, word } => (FastDecision::denied(wait_ns, quota), word, 0),
            Self::Lost => return None,
        })
    }
}

/// A request, as the quotas of its key see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    pub(crate) cost: u32,
    pub(crate) kind: RequestKind,
    /// How many nanoseconds ahead its permits may be, if they are reserved.
    pub(crate) within: u64,
    /// Only the answer is wanted: the request grants and writes nothing, and its cost may be zero.
    pub(crate) peeks: bool,
    /// The caller tells when the request is over: until then it is in flight.
    pub(crate) enters: bool,
}

/// A request of some keys.
#[derive(Clone, Copy)]
pub(crate) struct KeyedRequest<'a> {
    /// The keys by dimension. An absent one is not asked.
    pub(crate) keys: &'a [Option<Fingerprint>],
    /// The request to each of them.
    pub(crate) request: Request,
    /// Whether a key without a place is skipped.
    pub(crate) admits_without_place: bool,
    /// The keys whose denials are overruled.
    pub(crate) shadowed: Shadowed,
}

impl KeyedRequest<'_> {
    /// The keys that are asked, with their dimensions.
    pub(super) fn present(&self) -> impl Iterator<Item = (usize, Key)> {
        self.keys.iter().enumerate().filter_map(|(dimension, key)| Some((dimension, Key::of((*key)?))))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequestKind {
    /// Grants if possible. A queue may let the request wait.
    Acquire,
    /// Grants, now or ahead.
    Reserve,
    /// Reserves for a request that has been admitted before: it may be in flight.
    More,
    /// Grants nothing, because something else denies the request. It counts, if refused requests do.
    Refused,
}

impl Request {
    #[inline(always)]
    pub(crate) const fn acquire(cost: u32) -> Self {
        Self { cost, kind: RequestKind::Acquire, within: 0, peeks: false, enters: false }
    }

    pub(crate) const fn more(cost: u32) -> Self {
        Self { kind: RequestKind::More, ..Self::reserve(cost, 0) }
    }

    pub(crate) const fn reserve(cost: u32, within: u64) -> Self {
        Self { cost, kind: RequestKind::Reserve, within, peeks: false, enters: false }
    }

    /// The same without a charge.
    pub(crate) const fn peek(self) -> Self {
        Self { peeks: true, ..self }
    }
}
