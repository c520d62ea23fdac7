//! A request on one word, for tests.

#[cfg(not(tollgate_loom))]
use super::Plain;
use super::{LogPlan, LogState, Permits};
use crate::decision::{Decision, PerQuota};
use crate::quota::Quota;
use crate::state::cell::Word;
use crate::state::request::{Algorithm, CellRef, Proposal, Request, Seen};
use core::time::Duration;

/// The answer to a request that changed the word if it had to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    Admitted { stamp: u64, delay_ns: u64 },
    Denied { wait_ns: u64, quota: u8 },
}

pub(super) fn plan(quotas: &[(u32, u64)]) -> LogPlan<Permits> {
    let quota = |&(limit, window)| Quota::new(limit, Duration::from_nanos(window));
    LogPlan::<Permits>::new(&quotas.iter().map(quota).collect::<Vec<_>>())
}

/// `None` if another thread has changed the word.
impl LogPlan<Permits> {
    pub(super) fn decide(&self, cell: CellRef<'_>, word: Word, now: u64, cost: u32, within: u64) -> Option<Answer> {
        let seen = Seen { cell, word, now };
        if within > 0 {
            return self.reserve(seen, Request::reserve(cost, within));
        }
        if let Some((wait_ns, quota)) = self.denied_by_hint(seen, cost, None) {
            return Some(Answer::Denied { wait_ns, quota });
        }
        #[cfg(not(tollgate_loom))]
        self.answers_alike(seen, cost);
        Some(match Decision::from(self.decide_shortly(seen, cost)?) {
            Decision::Admitted(admission) => {
                assert!(admission.delay().is_zero());
                Answer::Admitted { stamp: now.max(LogState::newest_in(word)), delay_ns: 0 }
            }
            Decision::Denied(denial) => Answer::Denied {
                wait_ns: u64::try_from(denial.retry_after().as_nanos()).expect("short"),
                quota: u8::try_from(denial.quota()).expect("few"),
            },
        })
    }

    fn reserve(&self, seen: Seen<'_>, request: Request) -> Option<Answer> {
        let (new, answer) = match self.propose(seen, request, None) {
            Proposal::Admit { word, mark, delay_ns } => {
                let stamp = u64::try_from(mark).expect("a stamp");
                (Some(word), Answer::Admitted { stamp, delay_ns })
            }
            Proposal::Deny { wait_ns, quota, word } => (word, Answer::Denied { wait_ns, quota }),
            Proposal::Lost => return None,
        };
        new.is_none_or(|new| seen.cell.word.swap(seen.word, new)).then_some(answer)
    }

    /// The same plan without its short way.
    #[cfg(tollgate_loom)]
    pub(super) fn without_short_way(mut self) -> Self {
        self.single = None;
        self
    }

    /// The general way gives the answer of the short one, where that has one. No other thread runs.
    #[cfg(not(tollgate_loom))]
    fn answers_alike(&self, seen: Seen<'_>, cost: u32) {
        let plain = self.decide_plainly(seen, cost);
        if matches!(plain, Plain::Unknown) {
            return;
        }
        match (plain, self.propose(seen, Request::acquire(cost), None)) {
            (Plain::Granted(word), Proposal::Admit { word: other, delay_ns: 0, .. }) => assert_eq!(word, other),
            (Plain::Denied(until), Proposal::Deny { wait_ns, quota: 0, word: None }) => {
                assert_eq!(until - seen.now, wait_ns);
            }
            (_, other) => panic!("the short way differs from {other:?}"),
        }
    }

    /// Refunds, and returns how many permits.
    pub(super) fn take_back(&self, cell: CellRef<'_>, word: Word, now: u64, cost: u32, stamp: u64) -> Option<u32> {
        let (new, permits) = self.refund(Seen { cell, word, now }, cost, 0, stamp.into())?;
        (permits == 0 || cell.word.swap(word, new)).then_some(permits)
    }

    /// The answer that a request would get, and the permits left.
    pub(super) fn seen(&self, cell: CellRef<'_>, word: Word, now: u64, cost: u32) -> Option<(Answer, PerQuota)> {
        let mut left = PerQuota::NONE;
        let answer = match self.propose(Seen { cell, word, now }, Request::acquire(cost).peek(), Some(&mut left)) {
            Proposal::Admit { delay_ns, .. } => Answer::Admitted { stamp: 0, delay_ns },
            Proposal::Deny { wait_ns, quota, .. } => Answer::Denied { wait_ns, quota },
            Proposal::Lost => return None,
        };
        Some((answer, left))
    }

    pub(super) fn left(&self, cell: CellRef<'_>, word: Word, now: u64) -> Option<PerQuota> {
        self.seen(cell, word, now, 0).map(|seen| seen.1)
    }
}
