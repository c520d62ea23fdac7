//! A request on one word, for tests.

use super::{LogPlan, Permits};
use crate::decision::PerQuota;
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
        let ask = if within == 0 { Request::acquire(cost) } else { Request::reserve(cost, within) };
        if ask == Request::acquire(1) {
            if let Some((wait_ns, quota)) = self.denied_by_hint(Seen { cell, word, now }, None) {
                return Some(Answer::Denied { wait_ns, quota });
            }
        }
        let (new, answer) = match self.propose(Seen { cell, word, now }, ask, None) {
            Proposal::Admit { word, mark, delay_ns } => {
                let stamp = u64::try_from(mark).expect("a stamp");
                (Some(word), Answer::Admitted { stamp, delay_ns })
            }
            Proposal::Deny { wait_ns, quota, word } => (word, Answer::Denied { wait_ns, quota }),
            Proposal::Lost => return None,
        };
        new.is_none_or(|new| cell.word.swap(word, new)).then_some(answer)
    }

    /// Refunds, and returns how many permits.
    pub(super) fn take_back(&self, cell: CellRef<'_>, word: Word, now: u64, cost: u32, stamp: u64) -> Option<u32> {
        let (new, permits) = self.refund(Seen { cell, word, now }, cost, stamp.into())?;
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
