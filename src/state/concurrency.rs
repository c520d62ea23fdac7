//! Requests in flight: a concurrency limit counts those of a key that are not over.
//!
//! The word has the count, and the number of the key's *life*, which no other life of any key has. A
//! request takes the number with it, and leaves that life alone. So a key that was forgotten while its
//! requests were in flight counts anew from zero, and those requests count no more. The bound: **when
//! a request enters, at most `limit` requests of the key's life are in flight**, and it is one of them.
//!
//! Two equal words are of one life, and of as many requests (INV-IN-FLIGHT).

use super::cell::{Key, Word};
use super::request::{Algorithm, CellRef, Proposal, Request, RequestKind, Seen};
use super::ring::Rings;
use crate::decision::{Denial, Left, PerQuota};
use crate::sync::plain::{AtomicU64, Ordering};

/// The concurrency limit of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Concurrency {
    pub(super) limit: u32,
}

/// The requests of a key that are in flight.
///
/// ```text
/// { requests: 32, open: 32, life: 61 }
/// ```
///
/// `open` is one, so that a word without requests is not that of a new key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Count {
    pub(super) life: u64,
    requests: u32,
}

/// The lives of all keys. One for each nanosecond would last for 73 years.
static LIVES: AtomicU64 = AtomicU64::new(0);

impl Count {
    /// No requests, in a new life.
    fn new() -> Self {
        // The number alone matters: nothing else is read by it.
        Self { life: LIVES.fetch_add(1, Ordering::Relaxed), requests: 0 }
    }

    /// In a word that may be frozen.
    #[expect(clippy::cast_possible_truncation, reason = "halves, and the lower half of one")]
    #[inline(always)]
    pub(super) const fn of(word: Word) -> Self {
        let state = word.state();
        Self { life: (state >> 64) as u64, requests: state as u32 }
    }

    #[inline(always)]
    pub(super) const fn word(self) -> Word {
        Word::of_halves([1 << 32 | self.requests as u64, self.life])
    }

    /// One request more; `None` if there are as many as the limit.
    #[inline(always)]
    pub(super) fn entered(self, limit: u32) -> Option<Self> {
        (self.requests < limit).then(|| Self { requests: self.requests + 1, ..self })
    }

    /// Without a request of this life; `None` if none is counted.
    #[inline(always)]
    pub(super) fn left(self, life: u64) -> Option<Self> {
        // The requests of a life that was forgotten are counted no more.
        (self.life == life).then_some(Self { requests: self.requests.checked_sub(1)?, life })
    }
}

/// A request in flight. It leaves once.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(super) key: Key,
    pub(super) life: u64,
}

/// Of the marks of permits, those of requests in flight have this bit. The others are states of words.
const ENTRY: u128 = 1 << 127;

impl Entry {
    /// As numbers, for a type that is outside of this crate.
    pub(crate) fn into_numbers(self) -> [u64; 2] {
        [self.key.tag, self.life]
    }

    pub(crate) fn of_numbers([tag, life]: [u64; 2]) -> Self {
        Self { key: Key { tag }, life }
    }

    /// The request with this mark, if it is one in flight.
    #[expect(clippy::cast_possible_truncation, reason = "a life was put in")]
    pub(super) fn of(key: Key, mark: u128) -> Option<Self> {
        (mark & ENTRY != 0).then_some(Self { key, life: mark as u64 })
    }
}

impl Concurrency {
    fn left(self, Count { requests, .. }: Count) -> Left {
        // A request may end at any time.
        let wait_ns = if requests == 0 { 0 } else { Denial::NEVER };
        let remaining = self.limit.saturating_sub(requests);
        Left { limit: self.limit, remaining, next_after_ns: wait_ns, reset_after_ns: wait_ns }
    }
}

const fn admit(count: Count, mark: u128) -> Proposal {
    Proposal::Admit { word: count.word(), mark, delay_ns: 0 }
}

impl Algorithm for Concurrency {
    fn propose(&self, seen: Seen<'_>, request: Request, left: Option<&mut PerQuota>) -> Proposal {
        // A peek may see a key without permits.
        let is_vacant = seen.word.vacant_until().is_some();
        let count = if is_vacant { Count { life: 0, requests: 0 } } else { Count::of(seen.word) };
        let enters = request.enters && request.cost > 0 && !request.peeks;
        let (after, proposal) = match count.entered(self.limit) {
            Some(entered) if enters => (entered, admit(entered, ENTRY | u128::from(entered.life))),
            // A further charge is not denied by the place of its own request.
            None if request.cost > 0 && request.kind != RequestKind::More => {
                (count, Proposal::Deny { wait_ns: Denial::NEVER, quota: Denial::IN_FLIGHT, word: None })
            }
            // A request without a guard is over at once.
            _ => (count, admit(count, 0)),
        };
        if let Some(left) = left {
            left.set_in_flight(self.left(after));
        }
        proposal
    }

    /// There are no permits to refund: requests leave.
    fn refund(&self, seen: Seen<'_>, _: u32, _: u32, _: u128) -> Option<(Word, u32)> {
        Some((seen.word, 0))
    }

    /// Nor is there debt.
    fn owe(&self, seen: Seen<'_>, _: u32) -> Word {
        seen.word
    }

    fn first<'a>(&self, seen: Seen<'a>, _: u64) -> Seen<'a> {
        Seen { word: Count::new().word(), ..seen }
    }

    fn over_at(&self, _: CellRef<'_>, word: Word) -> u64 {
        if Count::of(word).requests == 0 { 0 } else { u64::MAX }
    }

    /// Under a lower limit more may be in flight. They stay, and no other enters meanwhile.
    fn moved(&self, seen: Seen<'_>, _: &Self, _: &Rings) -> Word {
        Count::of(seen.word).word()
    }
}
