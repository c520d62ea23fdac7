//! A limiter on shards, as small as can be, for the benchmark `benches/one_word`: one quota, one
//! permit at a time.

use core::hash::Hash;

use super::account::any::AnyAccount;
use super::account::{Account, Verdict};
use super::arena::Key;
use super::log::{Answer, Attempt, LogPlan, Place};
use super::ring::Rings;
use super::shard::{Algorithm, Request, Shard};
use super::word::Word;
use crate::clock::{Clock, MonotonicClock};
use crate::fingerprint::{DefaultFingerprinter, Fingerprinter};
use crate::quota::Quota;
use crate::sync::CachePadded;

/// Shards of a limiter.
const SHARDS: usize = 64;

/// The time of a clock that reads zero: past the longest window.
const TIME_ZERO: u64 = 1 << 60;

impl Algorithm for AnyAccount {
    fn over_at(&self, word: Word) -> u64 {
        Account::over_at(self, word.state())
    }

    fn moved(&self, _: Place<'_>, word: Word, _: u64, _: &Rings) -> Option<Word> {
        Some(Word::of(word.state()))
    }

    fn slots(&self, _: Word) -> usize {
        0
    }
}

/// A request of one permit.
struct Ask<'a, A>(&'a A);

impl Request for Ask<'_, LogPlan> {
    type Answer = Answer;

    #[inline(always)]
    fn attempt(&self, place: Place<'_>, word: Word, now: u64) -> Attempt<Answer> {
        self.0.decide(place, word, now, 1, 0)
    }
}

impl Request for Ask<'_, AnyAccount> {
    type Answer = Answer;

    #[inline(always)]
    fn attempt(&self, place: Place<'_>, word: Word, now: u64) -> Attempt<Answer> {
        let (state, answer) = match self.0.decide(word.state(), now, 1) {
            Verdict::Admit { state, delay_ns } => (Some(state), Answer::Admitted { stamp: now, delay_ns }),
            Verdict::Deny { wait_ns, state } => (state, Answer::Denied { wait_ns, quota: 0 }),
        };
        let done = state.is_none_or(|state| place.word.swap(word, Word::of(state)));
        if done { Attempt::Done(answer) } else { Attempt::Lost }
    }
}

/// A limiter of many keys.
///
/// ```
/// use tollgate::Quota;
/// use tollgate::heart::measured::Measured;
///
/// let limiter = Measured::new(Quota::per_hour(1));
/// assert!(limiter.try_acquire("alice"));
/// assert!(!limiter.try_acquire("alice"));
/// assert!(limiter.bytes() > 1000);
/// ```
#[derive(Debug)]
pub struct Measured {
    shards: Box<[CachePadded<Shard>]>,
    clock: MonotonicClock,
    fingerprinter: DefaultFingerprinter,
    plan: Plan,
}

#[derive(Debug)]
enum Plan {
    Log(LogPlan),
    Account(AnyAccount),
}

impl Measured {
    /// A limiter with one quota, which must be valid.
    #[must_use]
    pub fn new(quota: Quota) -> Self {
        let plan = AnyAccount::of(quota, TIME_ZERO).map_or_else(|| Plan::Log(LogPlan::new(&[quota])), Plan::Account);
        Self {
            shards: (0..SHARDS).map(|_| CachePadded(Shard::new(0))).collect(),
            clock: MonotonicClock::new(),
            fingerprinter: DefaultFingerprinter::new(),
            plan,
        }
    }

    /// Whether one permit was granted.
    #[inline]
    pub fn try_acquire<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let fingerprint = self.fingerprinter.fingerprint(key);
        let shard = &self.shards[(fingerprint.low >> 58) as usize];
        let key = Key::new(fingerprint.high);
        let clock = || TIME_ZERO + self.clock.now();
        match &self.plan {
            Plan::Log(plan) => matches!(shard.decide(plan, key, &clock, &Ask(plan)), Answer::Admitted { .. }),
            Plan::Account(account) => {
                matches!(shard.decide(account, key, &clock, &Ask(account)), Answer::Admitted { .. })
            }
        }
    }

    /// Bytes on the heap.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.shards) + self.shards.iter().map(|shard| shard.bytes()).sum::<usize>()
    }
}
